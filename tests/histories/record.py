"""Record histories of sessions, for later versions to replay: `python -m tests.histories.record`.

Run it when a version is released, and after a change that is guarded by `workflow.patched`; commit
the new files beside the old ones, which stay as long as sessions of their version may be alive.
Each file is one run of one workflow, `<version>/<scenario>-<run>.json`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from temporalio.client import Client

from perdure import (
    Agent,
    CommandError,
    ContextOverflowError,
    CustomEntry,
    LoopContext,
    LoopError,
    McpServer,
    Message,
    PerdureError,
    RunCancelledError,
    Session,
    Sessions,
    ToolArgumentsError,
    ephemeral,
    sub_agent,
    text,
    tool,
)
from perdure.dev_server import dev_server
from perdure.loops import OnCrash
from perdure.names import SESSION_WORKFLOW, STATUS
from perdure.testing import ScriptedModel, call
from perdure.worker import build_worker

FOLDER = Path(__file__).parent

Scenario = Callable[[Session], Awaitable[object]]


class Note(CustomEntry, kind="recorded-note"):
    body: str


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(needs_approval=True)
async def ask(what: str) -> str:
    """Need an approval."""
    return what


@tool(parallel=False)
async def alone() -> str:
    """Run alone."""
    return "alone"


@tool
async def fail() -> str:
    """Fail."""
    raise RuntimeError("as asked")


class Clock:
    """A loop of its own."""

    on_crash: OnCrash = "resume"

    async def run(self, context: LoopContext) -> AsyncIterator[Message]:
        """Strike three times; the second run fails."""
        for hour in ("one", "two", "three"):
            yield Message(role="assistant", content=f"It is {hour}.")
            await asyncio.sleep(0.3)
        if len(context.messages) > 4:
            raise LoopError("the spring is broken")


def _agent(name: str, *items: Any) -> Agent:
    return Agent(name, model=ScriptedModel(*items), tools=[add, fail, ask, alone], max_turns=4)


def _narrow(messages: list[Message]) -> str | ContextOverflowError:
    if messages[-1].text.startswith("Summarize"):
        return "in short"
    is_long = sum(len(message.text) for message in messages) > 40
    return ContextOverflowError("too long") if is_long else "noted"


SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("recorded")
server.tool("twin_ran")(lambda: "ran")
server.run()
"""

AGENTS = [
    _agent("talks", "Hello.", "Again.", "Bye."),
    _agent("works", ["Adding.", call("add", a=1, b=2), call("fail")], "Done.", ""),
    Agent("narrow", model=ScriptedModel(_narrow), compact_at_tokens=1_000_000),
    Agent(
        "streams",
        model=ScriptedModel(
            ["Adding.", call("add", a=1, b=2)],
            '{"sum": "three"}',
            '{"sum": 3}',
            delay=0.3,
            stream=True,
        ),
        tools=[add],
        stream_interval=0.05,
    ),
    _agent(
        "asks",
        [call("ask", what="1"), call("ask", what="2"), call("alone"), call("ask", what="3")],
        "Done.",
        [call("ask", what="4"), call("add", a=1, b=2)],
    ),
    _agent("helps", "It is 3."),
    Agent(
        "delegates",
        model=ScriptedModel([call("helps", task="1 + 2?"), call("twin_ran")], "Done."),
        tools=[sub_agent("helps", description="Helps.")],
        mcp=[McpServer(sys.executable, "-c", SERVER)],
    ),
    _agent("never-stops", *([call("add", a=n, b=n)] for n in range(9))),
    Agent("loops", model=Clock()),
]


async def plain_turns(session: Session) -> None:
    for words in ("hello", "and again", "bye"):
        await (await session.run(words))


async def tool_turns(session: Session) -> None:
    run = await session.run(ephemeral("quietly"), text("context", meta=True), "1 + 2?")
    async for _ in run:
        pass


async def approvals(session: Session) -> None:
    """A yes, a no, changed arguments that fit and that do not, and a run cancelled as it waits."""
    run = await session.run("go")
    await _asked(session, 3)
    await session.approve("call_1_1")
    await session.approve("call_1_2", approved=False, reason="no")
    for arguments in ({"what": 7}, {"what": "other"}):
        with contextlib.suppress(ToolArgumentsError):
            await session.approve("call_1_4", arguments=arguments)
    await run
    run = await session.run("again")
    await _asked(session, 1)
    await session.cancel()
    with contextlib.suppress(RunCancelledError):
        await run


async def renewed_waiting(session: Session) -> None:
    """The workflow continues as new while a call waits: refused messages make history long."""
    run = await session.run("go")
    await _asked(session, 3)
    for _ in range(130):
        with contextlib.suppress(CommandError):
            await session.approve("nothing")
    for approval in await session.approvals():
        await session.approve(approval)
    await run


async def _asked(session: Session, count: int) -> None:
    while len(await session.approvals()) < count:  # noqa: ASYNC110 - a worker makes it true
        await asyncio.sleep(0.05)


async def failures(session: Session) -> None:
    for words in ("go", "on", "and on"):
        try:
            await (await session.run(words))
        except PerdureError:
            continue


async def asked_once(session: Session) -> None:
    await (await session.run("go"))


async def appends_and_close(session: Session) -> None:
    await session.append("for the record", Note(body="kept"))
    await session.close()


async def overflow(session: Session) -> None:
    for words in ("something to begin with", "and something more", "bye"):
        await (await session.run(words))


async def streamed_output(session: Session) -> None:
    output = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    async for _ in await session.run("1 + 2?", stream=True, output=output):
        pass


SCENARIOS: dict[str, tuple[Scenario, str, int]] = {
    "plain-turns": (plain_turns, "talks", 160),
    "renewed-at-every-step": (plain_turns, "talks", 1),
    "tool-turns": (tool_turns, "works", 160),
    "tool-turns-renewed": (tool_turns, "works", 1),
    "failures": (failures, "never-stops", 160),
    "unknown-agent": (failures, "nobody", 160),
    "overflow": (overflow, "narrow", 160),
    "streamed-output": (streamed_output, "streams", 160),
    "streamed-output-renewed": (streamed_output, "streams", 1),
    "approvals": (approvals, "asks", 160),
    "renewed-while-waiting": (renewed_waiting, "asks", 1),
    "loops": (failures, "loops", 160),
    "loops-renewed": (failures, "loops", 1),
    "sub-agent-and-server": (asked_once, "delegates", 160),
    "appends-and-close": (appends_and_close, "works", 160),
}
"""What is recorded: a scenario, its agent, and the events after which the workflow continues as
new."""


async def record(folder: Path) -> None:
    """Play every scenario on a server of its own, and write down each run of each workflow."""
    folder.mkdir(parents=True, exist_ok=True)
    async with dev_server() as server:
        client = await Client.connect(server.address, identity="recorder")
        with tempfile.TemporaryDirectory() as store:
            async with build_worker(client, agents=AGENTS, store=f"files:{store}"):
                for name, (play, agent, limit) in SCENARIOS.items():
                    sessions = Sessions(client, f"files:{store}", max_history_events=limit)
                    session = await sessions.open(name, agent=agent)
                    await play(session)
                    # A query is answered after the workflow task that is under way.
                    await client.get_workflow_handle(f"session:{name}").query(STATUS)
            await _write(client, folder)


async def _write(client: Client, folder: Path) -> None:
    runs: dict[str, int] = {}
    query = f'WorkflowType = "{SESSION_WORKFLOW}"'
    executions = [execution async for execution in client.list_workflows(query)]
    for execution in sorted(executions, key=lambda execution: execution.start_time):
        name = re.sub(r"-[0-9a-f]{12}$", "", execution.id.removeprefix("session:"))
        runs[name] = runs.get(name, 0) + 1
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        history = json.loads((await handle.fetch_history()).to_json())
        text = json.dumps(_without_stacks(history), indent=1)
        (folder / f"{name}-{runs[name]}.json").write_text(f"{text}\n")


def _without_stacks(value: Any) -> Any:
    """Stack traces name the machine's folders, and a replay does not read them."""
    if isinstance(value, dict):
        return {key: _without_stacks(item) for key, item in value.items() if key != "stackTrace"}
    if isinstance(value, list):
        return [_without_stacks(item) for item in value]
    return value


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / version("perdure")
    asyncio.run(record(target))
    print(f"recorded {len(list(target.glob('*.json')))} histories in {target}")
