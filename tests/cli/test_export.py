"""`perdure export`: the log, a text, and a page that needs nothing else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perdure.entries import CustomEntry, Entry, MessageEntry, image, text
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    ToolCallBlock,
)
from perdure.stores import FileStore
from tests.cli.browser import DRIVER, browser
from tests.cli.sessions import answer, conversation, placed, result, write
from tests.cli.test_command_line import perdure

EVIL = '</script><script>alert(1)</script><img src="http://evil.example/x" onerror=alert(2)>"\'&'
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


def export(folder: Path, *arguments: str) -> str:
    status, said, errors = perdure("export", *arguments, cwd=folder)
    assert (status, errors) == (0, "")
    return said


def hostile() -> list[Entry]:
    """Entries whose every text wants to be part of the page."""
    call = ToolCallBlock(id=EVIL, name=EVIL, arguments={EVIL: EVIL})
    blocks: list[ContentBlock] = [
        ImageBlock(data=PIXEL, mime_type="image/png"),
        ImageBlock(data='"><script>', mime_type="image/png"),
        ImageBlock(data=PIXEL, mime_type="image/svg+xml"),
        ImageBlock(data=PIXEL, mime_type='image/png" onload="alert(3)'),
        FileBlock(url="javascript:alert(4)", filename=EVIL),
        OpaqueBlock.model_validate({"type": EVIL}),
    ]
    failed = Message(role="assistant", content=blocks, model=EVIL, error=EVIL)
    return [
        placed(text(EVIL), f"{EVIL}1", "", 0),
        placed(answer(EVIL, call, thinks=EVIL), f"{EVIL}2", f"{EVIL}1", 1),
        placed(result(EVIL, EVIL, name=EVIL, is_error=True), f"{EVIL}3", f"{EVIL}2", 2),
        placed(MessageEntry(message=failed), f"{EVIL}4", f"{EVIL}3", 3),
        placed(CustomEntry.model_validate({"kind": EVIL, EVIL: EVIL}), "custom", f"{EVIL}3", 4),
    ]


class Tags(HTMLParser):
    """The elements of a page, and what their attributes may load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("src", "href"):
                self.links.append(value or "")


def test_jsonl_is_the_log_itself(folder: Path) -> None:
    assert export(folder, "user-42") == (folder / "sessions/user-42.jsonl").read_text()


async def test_an_exported_log_is_a_log_elsewhere(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere/user-42.jsonl").write_text(export(folder, "user-42"))
    assert await FileStore(folder / "elsewhere").load_entries("user-42") == conversation()


def test_markdown_is_the_path_as_a_person_reads_it(folder: Path) -> None:
    told = export(folder, "user-42", "--format", "md", "--leaf", "aaaaaa06")
    assert told.startswith(
        "# user-42\n\n## user\n\n<sub>2026-11-29T09:12:30Z</sub>\n\nWhere is order 7?\n"
    )
    assert '→ find\\_order\n\n```json\n{"order_id":"7","deep":[1,{}]}\n```\n' in told
    assert told.endswith("Order 8 was cancelled.\n")
    assert "Cancel 7, too." not in told


def test_a_fence_in_a_result_does_not_end_the_fence_around_it(tmp_path: Path) -> None:
    entries = [placed(result("c1", "```\n````\n# not a heading"), "a", "", 0)]
    write(tmp_path / "sessions", "s", entries)
    assert "`````\n```\n````\n# not a heading\n`````" in export(tmp_path, "s", "--format", "md")


def test_a_file_is_written_whole_and_told_of(folder: Path) -> None:
    status, said, errors = perdure(
        "export", "user-42", "-f", "html", "-o", "page.html", "--json", cwd=folder
    )
    page = folder / "page.html"
    assert (status, errors) == (0, "")
    assert json.loads(said) == {
        "session_id": "user-42",
        "format": "html",
        "path": "page.html",
        "bytes": page.stat().st_size,
        "entries": 11,
    }
    assert sorted(file.name for file in folder.iterdir()) == ["page.html", "sessions"]


def test_a_page_needs_nothing_but_itself(folder: Path) -> None:
    page = export(folder, "user-42", "--format", "html")
    tags = Tags(page)
    assert all(re.match(r"#s\d+$|data:image/", link) for link in tags.links)
    assert "link" not in tags.names
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_whatever_a_log_holds_is_text_in_the_page(tmp_path: Path) -> None:
    write(tmp_path / "sessions", "s", hostile())
    page = export(tmp_path, "s", "--format", "html")
    tags = Tags(page)
    assert tags.names.count("script") == 1
    assert tags.names.count("img") == 1
    assert [link for link in tags.links if not link.startswith("#s")] == [
        f"data:image/png;base64,{PIXEL}"
    ]
    assert not {name for name in tags.attributes if name.startswith("on")}


def test_an_empty_session_can_be_exported(tmp_path: Path) -> None:
    write(tmp_path / "sessions", "s", [])
    assert "0 entries" in export(tmp_path, "s", "--format", "html")
    assert export(tmp_path, "s", "--format", "md") == "# s\n"
    assert export(tmp_path, "s").count("\n") == 1


@pytest.mark.skipif(DRIVER is None, reason="needs Chromium and its driver")
def test_branches_are_clicked_in_a_browser(folder: Path) -> None:
    write(folder / "sessions", "evil", [*hostile(), placed(image(PIXEL, "image/png"), "i", "", 9)])
    for session_id in ("user-42", "evil"):
        page = export(folder, session_id, "--format", "html")
        (folder / f"{session_id}.html").write_text(page)
    with browser() as window:
        window.open(f"file://{folder}/user-42.html")
        shown = window.wait_for("Thanks!")
        assert "Order 8 was cancelled." not in shown

        window.click("And order 8?")
        shown = window.wait_for("Order 8 was cancelled.")
        assert "Where is order 7?" in shown
        assert "Thanks!" not in shown

        window.click("Where is order 7?")  # the trunk: the branch that was looked at stays
        assert "Order 8 was cancelled." in window.shown()
        window.click("Cancel 7, too.")
        assert "Order 8 was cancelled." not in window.wait_for("Thanks!")
        assert window.pdf() > 10_000
        assert window.complaints() == []

        window.open(f"file://{folder}/evil.html")
        assert window.run("return document.images.length") == 2
        assert window.complaints() == []
