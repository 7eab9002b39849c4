"""The Temporal UI of a live session, opened in a browser."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from perdure import local
from perdure.session_id import workflow_id
from scripts.temporal_ui_screens import SHOWN, ask, free_port, look, pages_of, support
from tests.cli.browser import DRIVER, browser

PNG = b"\x89PNG"


@pytest.mark.skipif(DRIVER is None, reason="needs Chromium and its driver")
async def test_the_temporal_ui_shows_a_session_and_how_to_answer_it() -> None:
    """The details name the signal that answers the call that waits; it does."""
    port = free_port()
    async with local(agents=[support()], ui_port=port) as sessions:
        session = await ask(sessions, "customer-42")
        pages = await pages_of(sessions, f"http://127.0.0.1:{port}", session)
        details, picture = await asyncio.to_thread(seen, pages)

        named = re.search(r"signal (\w+) with (\S+)", details)
        assert named is not None
        handle = sessions.client.get_workflow_handle(workflow_id(session.id))
        await handle.signal(named[1], json.loads(named[2]))
        while (status := await session.status()).doing is not None:
            pass

    assert picture.startswith(PNG)
    assert (status.turns, status.last_error) == (3, None)
    assert "perdure session customer-42" in details
    assert "The boots of order 4711 fell apart. I want my money back." in details


def seen(pages: dict[str, str]) -> tuple[str, bytes]:
    """The text of the details, and a picture of the history once it has shown its summaries."""
    with browser() as window:
        window.open(pages["details"])
        details = window.wait_for_text(*SHOWN["details"])
        return details, look(window, "history", pages["history"])
