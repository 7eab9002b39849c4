"""A stored session, and a worker that serves: what the tests of the commands share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.dev_server import DevServer
from tests.cli.sessions import conversation, fork_of_conversation, long_conversation, write
from tests.cli.terminal import Terminal, terminal
from tests.cli.test_command_line import PERDURE, perdure

CREW = '''
import asyncio

from perdure import Agent, tool
from perdure.testing import ScriptedModel, call


@tool(idempotent=True)
async def find_order(order_id: str) -> str:
    """Look an order up."""
    return '{"ships": "Friday"}'


@tool(needs_approval=True)
async def refund(cents: int) -> str:
    """Refund an order."""
    return f"refunded {cents}"


def answer(messages):
    last = messages[-1]
    if last.role == "tool_result":
        return "It ships on Friday."
    if last.text.startswith("Summarize"):
        return "They talked about order 7."
    if "order" in last.text:
        return [call("find_order", order_id="7")]
    if "refund" in last.text:
        return [call("refund", "pay-1", cents=900)]
    if "break" in last.text:
        raise RuntimeError("a secret")
    return f"You said {last.text!r}"


support = Agent("support", model=ScriptedModel(answer), tools=[find_order, refund])
poem = " ".join(f"word{number}" for number in range(1, 1_000))
poet = Agent("poet", model=ScriptedModel(poem, delay=300, stream=True))
slow = Agent("slow", model=ScriptedModel("at last", delay=600))
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose `sessions` hold a conversation and its fork."""
    write(tmp_path / "sessions", "user-42", conversation())
    write(tmp_path / "sessions", "what-if", fork_of_conversation(), "user-42")
    return tmp_path


@pytest.fixture(scope="session")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `sessions` hold a log of 10,000 entries with 250 branches."""
    folder = tmp_path_factory.mktemp("long")
    write(folder / "sessions", "long", long_conversation())
    return folder


@dataclass(frozen=True)
class Served:
    """A folder whose `sessions` a worker serves, and the server that it polls."""

    folder: Path
    address: str

    def perdure(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of a command in that folder."""
        settings = {"TEMPORAL_ADDRESS": self.address, "PERDURE_TASK_QUEUE": "cli"} | environment
        return perdure(*arguments, cwd=self.folder, **settings)

    def terminal(
        self, *arguments: str, columns: int = 80, **environment: str
    ) -> AbstractContextManager[Terminal]:
        """A command in that folder, in a terminal of so many columns."""
        settings = {"TEMPORAL_ADDRESS": self.address, "PERDURE_TASK_QUEUE": "cli"} | environment
        return terminal(*arguments, cwd=self.folder, columns=columns, **settings)

    def piped(self, text: str, *arguments: str) -> tuple[int, str, str]:
        """What a command makes of a standard input."""
        settings = {"TEMPORAL_ADDRESS": self.address, "PERDURE_TASK_QUEUE": "cli"}
        return perdure(*arguments, cwd=self.folder, given=text, **settings)

    def printed(self, *arguments: str) -> str:
        """What a command prints that must succeed."""
        status, said, errors = self.perdure(*arguments)
        assert status == 0, errors
        return said


@pytest.fixture(scope="session")
def served(server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A worker process that serves the agents `support`, `slow` and `poet`."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "crew.py").write_text(CREW)
    worker = subprocess.Popen(
        [PERDURE, "worker", "crew:support", "crew:slow", "crew:poet", "--task-queue", "cli"],
        cwd=folder,
        env=_environment(server),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert worker.stderr is not None
    assert "serving support, slow, poet" in worker.stderr.readline()
    try:
        yield Served(folder, server.address)
    finally:
        worker.kill()
        worker.communicate()


def _environment(server: DevServer) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    return own | {"TEMPORAL_ADDRESS": server.address}
