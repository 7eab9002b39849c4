"""`perdure setup`, and what `perdure ls` has from it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from perdure import Agent, Sessions
from perdure.dev_server import dev_server
from perdure.models.scripted import ScriptedModel
from perdure.search_attributes import ATTRIBUTES
from perdure.stores import FileStore
from perdure.worker import build_worker
from tests.cli.test_command_line import perdure


async def test_setup_registers_what_is_missing_and_ls_asks_nobody_then(tmp_path: Path) -> None:
    """The worker is gone when the sessions are listed."""
    store = FileStore(tmp_path / "sessions")
    agents = [Agent("bee", model=ScriptedModel("Hello.")), Agent("ant", model=None)]
    async with dev_server(search_attributes=False) as server:

        async def said(*arguments: str) -> str:
            status, told, errors = await asyncio.to_thread(
                perdure, *arguments, cwd=tmp_path, TEMPORAL_ADDRESS=server.address
            )
            assert (status, errors) == (0, "")
            return told

        first = await said("setup", "--json")
        again = await said("setup")
        async with build_worker(server.client, agents=agents, store=store):
            sessions = Sessions(server.client, store)
            await (await (await sessions.open("a", agent="bee")).run("Hi."))
            await sessions.open("it's b", agent="ant")
        listed = {
            options: [
                (told["session_id"], told["state"], told["agent"], told["turns"])
                for told in map(json.loads, (await said("ls", "--json", *options)).splitlines())
            ]
            for options in [(), ("--state", "waiting"), ("--state", "idle", "--agent", "ant")]
        }

    assert json.loads(first) == {
        "namespace": "default",
        "search_attributes": dict(ATTRIBUTES),
        "registered": list(ATTRIBUTES),
    }
    assert again == (
        "nothing to do: namespace default knows SessionStatus, SessionTurns, SessionParent, "
        "SessionAgent\n"
    )
    both = [("a", "idle", "bee", 1), ("it's b", "idle", "ant", 0)]
    assert listed == {
        (): both,
        ("--state", "waiting"): [],
        ("--state", "idle", "--agent", "ant"): both[1:],
    }
