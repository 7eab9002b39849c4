"""A real browser, for pages that perdure makes: headless Chromium, by the WebDriver protocol."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DRIVER = shutil.which("chromedriver")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A window of the browser."""

    def __init__(self, session_url: str) -> None:
        self._url = session_url

    def open(self, url: str) -> None:
        """Go to a page."""
        _call(f"{self._url}/url", {"url": url})

    def click(self, link_text: str) -> None:
        """Click on the first link in which the text is found."""
        found = _call(f"{self._url}/element", {"using": "partial link text", "value": link_text})
        _call(f"{self._url}/element/{found[_ELEMENT]}/click", {})

    def shown(self) -> str:
        """The text of the branch that is shown; also what is further down than the window goes."""
        told: str = self.run(
            "const shown = document.querySelectorAll('section:not(.off)');"
            "return [...shown].map((section) => section.textContent).join('')"
        )
        return told

    def wait_for(self, text: str) -> str:
        """All that is shown, as soon as the text is; a page answers a click in its own time."""
        deadline = time.monotonic() + 60
        while text not in (shown := self.shown()):
            assert time.monotonic() < deadline, f"{text!r} is not shown, but {shown!r}"
        return shown

    def run(self, script: str) -> Any:
        """What a script gives."""
        return _call(f"{self._url}/execute/sync", {"script": script, "args": []})

    def text(self) -> str:
        """All the text of the page as it is shown, that in its frames included."""
        told: str = self.run(
            "const told = [document.body?.innerText];"
            "for (const frame of document.querySelectorAll('iframe'))"
            "  told.push(frame.contentDocument?.body?.innerText ?? '');"
            "return told.join('\\n')"
        )
        return told

    def wait_for_text(self, *texts: str) -> str:
        """All the text of the page, as soon as these texts are in it."""
        deadline = time.monotonic() + 60
        while any(text not in (told := self.text()) for text in texts):
            assert time.monotonic() < deadline, f"not all of {texts} are in {told!r}"
            time.sleep(0.1)
        return told

    def resize(self, width: int, height: int) -> None:
        """Make the window so large, in pixels."""
        _call(f"{self._url}/window/rect", {"width": width, "height": height})

    def screenshot(self, width: int, height: int) -> bytes:
        """A picture of the window at that size, as PNG."""
        self.resize(width, height)
        time.sleep(0.5)  # the page arranges itself
        with urllib.request.urlopen(f"{self._url}/screenshot", timeout=60) as answer:
            return base64.b64decode(json.load(answer)["value"])

    def complaints(self) -> list[str]:
        """What the browser's console says, such as what the page's policy forbade."""
        logged = _call(f"{self._url}/se/log", {"type": "browser"})
        return [entry["message"] for entry in logged]

    def pdf(self) -> int:
        """The size of the page as it is printed, in characters of base64."""
        return len(_call(f"{self._url}/print", {}))


@contextmanager
def browser(*, scripts: bool = True) -> Iterator[Browser]:
    """A headless browser, for the length of the block."""
    assert DRIVER is not None
    with subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout is not None
            port = ""
            for line in driver.stdout:
                if found := re.search(r"started successfully on port (\d+)", line):
                    port = found[1]
                    break
            base = f"http://127.0.0.1:{port}/session"
            arguments = [
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ]
            options: dict[str, Any] = {"args": arguments}
            if not scripts:
                options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
            wanted = {
                "capabilities": {
                    "alwaysMatch": {
                        "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"browser": "ALL"},
                    }
                }
            }
            opened = _call(base, wanted)
            url = f"{base}/{opened['sessionId']}"
            try:
                yield Browser(url)
            finally:
                urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=30)
        finally:
            driver.terminate()


def _call(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]
