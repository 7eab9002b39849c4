"""Take the pictures of docs/temporal-ui.md: `python -m scripts.temporal_ui_screens [FOLDER]`.

They show a real session, on a Temporal server of its own, in headless Chromium. `chromium` and
`chromedriver` have to be installed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from perdure import Agent, Session, Sessions, local, tool
from perdure.session_id import workflow_id
from perdure.testing import ScriptedModel, call
from tests.cli.browser import Browser, browser

FOLDER = Path(__file__).parents[1] / "docs" / "images"


@tool(idempotent=True)
async def search_orders(order_id: str) -> str:
    """Look an order up."""
    return f"order {order_id}: walking boots, 89.90 EUR, delivered on Monday"


@tool(needs_approval=True)
async def refund(order_id: str, cents: int) -> str:
    """Refund an order."""
    return f"refunded {cents / 100:.2f}"


def support() -> Agent:
    """An agent that looks an order up, and wants to refund it."""
    script = ScriptedModel(
        ["Let me look that up.", call("search_orders", order_id="4711")],
        ["I am sorry! I will refund it.", call("refund", order_id="4711", cents=8990)],
        "The money is on its way.",
    )
    return Agent("support", model=script, tools=[search_orders, refund])


async def ask(sessions: Sessions, session_id: str) -> Session:
    """A session that waits for a person."""
    session = await sessions.open(session_id, agent="support")
    run = await session.run("The boots of order 4711 fell apart. I want my money back.")
    async for event in run:
        if event.type == "approval_requested":
            break
    return session


async def pages_of(sessions: Sessions, ui_url: str, session: Session) -> dict[str, str]:
    """The addresses of what is looked at, by the names of the pictures."""
    described = await sessions.client.get_workflow_handle(workflow_id(session.id)).describe()
    workflows = f"{ui_url}/namespaces/{sessions.client.namespace}/workflows"
    run = f"{workflows}/{described.id}/{described.run_id}"
    waiting = "SessionStatus%3D%22waiting%22"
    return {
        "details": f"{run}/user-metadata",
        "history": f"{run}/history",
        "list": f"{workflows}?query={waiting}",
    }


SHOWN = {
    "details": ("waiting for a person", "perdure approve customer-42", "search_orders"),
    "history": ("scripted · turn 2", 'search_orders(order_id="4711")', "append 1 entry"),
    "list": ("session:customer-42",),
}
"""What is on each page when it has loaded."""

_SIZES = {"details": (1180, 900), "history": (1340, 660), "list": (1180, 560)}

_FRAMELESS = """
for (const edge of document.querySelectorAll('nav, header')) edge.style.display = 'none';
document.querySelector('[data-testid=event-summary-table-header], h2')?.scrollIntoView();
const shapes = [...document.querySelectorAll('button')];
shapes.find((shape) => shape.innerText.trim() == 'Compact')?.click();
"""
"""Leaves only what the page is about."""


def look(window: Browser, name: str, url: str) -> bytes:
    """Open a page, wait until it shows what it is about, and take its picture."""
    window.resize(*_SIZES[name])
    window.open(url)
    window.wait_for_text(*SHOWN[name])
    window.run(_FRAMELESS)
    return window.screenshot(*_SIZES[name])


def take(folder: Path, pages: dict[str, str]) -> None:
    """Write the pictures into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as window:
        for name, url in pages.items():
            picture = folder / f"temporal-ui-{name}.png"
            picture.write_bytes(look(window, name, url))
            print(picture, f"{picture.stat().st_size:,} bytes")


async def main(folder: Path) -> None:
    """Run the session, and take the pictures while it waits."""
    port = free_port()
    async with local(agents=[support()], ui_port=port) as sessions:
        await ask(sessions, "customer-17")
        session = await ask(sessions, "customer-42")
        pages = await pages_of(sessions, f"http://127.0.0.1:{port}", session)
        await asyncio.to_thread(take, folder, pages)


def free_port() -> int:
    """A port that nobody listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
