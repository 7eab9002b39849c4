"""Tools of MCP servers in a run: listed once, before anything is stored, and never its end."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perdure import (
    Agent,
    AgentError,
    FileBlock,
    ImageBlock,
    McpServer,
    McpServerError,
    Message,
    RunCancelledError,
    Session,
    Sessions,
    TextBlock,
    ToolArgumentsError,
    names,
)
from perdure.activities.mcp_connections import McpConnections
from perdure.activities.toolboxes import Toolboxes
from perdure.models.scripted import ScriptedModel, call
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from tests.engine.agents import add
from tests.engine.conftest import Serving
from tests.tool_sources.servers import Folder, free_port


def using(*servers: McpServer, says: Any = (), tools: Any = ()) -> Agent:
    """An agent that says these things, with the tools of the servers."""
    return Agent("agent", model=ScriptedModel(*says, "done"), tools=tools, mcp=servers)


async def results_of(serving: Serving, agent: Agent, session_id: str) -> list[Message]:
    """What the model read."""
    async with serving(agent) as sessions:
        session = await sessions.open(f"mcp-{session_id}", agent="agent")
        messages = await (await session.run("go"))
        return [message for message in messages if message.role == "tool_result"]


async def scheduled(sessions: Sessions, session: Session) -> Counter[str]:
    """The regular activities in the session's history, by name."""
    history = await sessions.client.get_workflow_handle(workflow_id(session.id)).fetch_history()
    events = [event.activity_task_scheduled_event_attributes for event in history.events]
    return Counter(event.activity_type.name for event in events if event.activity_type.name)


async def test_the_tools_are_listed_once_per_run_and_keep_their_place(
    serving: Serving, folder: Folder
) -> None:
    """The agent's own first; each call of the model is told the same."""
    agent = using(folder.server(only=["pid", "fail"]), says=[[call("pid")], [call("pid")]])
    with_own = Agent("agent", model=agent.model, tools=[add], mcp=agent.mcp)
    model: Any = with_own.model
    async with serving(with_own) as sessions:
        session = await sessions.open("mcp-listed", agent="agent")
        first, *_ = await (await session.run("go"))
        assert first.tool_calls
        assert await scheduled(sessions, session) == {
            names.LIST_TOOLS: 1,
            names.CALL_MODEL: 3,
            names.RUN_TOOL: 2,
        }
    assert folder.steps()["started"] == 1
    assert len(model.requests) == 3


async def test_a_model_is_told_of_the_tools_as_the_server_describes_them(folder: Folder) -> None:
    toolboxes = Toolboxes()
    agent = using(folder.server(prefix="calc", only=["add"]), tools=[add])
    _, toolbox = await toolboxes.listed(agent)
    own, listed = toolbox.specs
    assert (own.name, listed.name) == ("add", "calc_add")
    assert listed.description == "Add two numbers."
    assert listed.parameters["required"] == ["a", "b"]
    await toolboxes.close()


async def test_an_agent_without_servers_lists_nothing(serving: Serving) -> None:
    async with serving(using(says=[[call("add", a=1, b=2)]], tools=[add])) as sessions:
        session = await sessions.open("mcp-without", agent="agent")
        await (await session.run("go"))
        assert names.LIST_TOOLS not in await scheduled(sessions, session)


async def test_results_of_every_kind_are_what_a_model_reads(
    serving: Serving, folder: Folder
) -> None:
    says = [[call("everything")], [call("only_structured")], [call("add", a=1, b=2)]]
    everything, structured, plain = await results_of(
        serving, using(folder.server(), says=says), "kinds"
    )
    data = base64.b64encode(b"\x89PNG not quite").decode()
    assert everything.content == (
        TextBlock(text="words"),
        ImageBlock(data=data, mime_type="image/png"),
        FileBlock(data=base64.b64encode(b"sound").decode(), mime_type="audio/wav"),
        TextBlock(text="manual <https://shop.example/manual.pdf> (application/pdf): how it works"),
        TextBlock(text="a note"),
        FileBlock(data="aGk=", mime_type="application/pdf", filename="a.pdf"),
    )
    assert structured.text == '{"price":7,"name":"Schuh"}'
    assert plain.text == "3"
    assert not any(result.is_error for result in (everything, structured, plain))


async def test_what_goes_wrong_in_a_server_is_a_result_that_the_model_reads(
    serving: Serving, folder: Folder
) -> None:
    says = [
        [call("fail")],
        [call("add", a="many")],
        [call("add", INVALID_JSON="{a:")],
        [call("nope")],
        [call("die")],
        [call("add", a=1, b=2)],
    ]
    only = ["fail", "add", "die"]
    results = await results_of(serving, using(folder.server(only=only), says=says), "wrong")
    assert [result.is_error for result in results] == [True, True, True, True, True, False]
    failed, misfit, no_json, unknown, died, alive = (result.text for result in results)
    assert failed == "Error executing tool fail"
    assert "valid integer" in misfit
    assert no_json.startswith("the arguments for add are not a JSON object")
    assert unknown == "there is no tool 'nope'; the tools are: add, die, fail"
    assert died == "the MCP server 'test server' went away during the call"
    assert alive == "3"


async def test_a_call_that_takes_too_long_is_given_up(serving: Serving, folder: Folder) -> None:
    folder.hold("slow")
    agent = using(folder.server(timeout=1), says=[[call("slow", word="a")]])
    [result] = await results_of(serving, agent, "too-slow")
    assert result.is_error
    assert result.text == "the tool slow did not finish within 1 seconds"


async def test_cancelling_a_run_leaves_its_call(serving: Serving, folder: Folder) -> None:
    folder.hold("slow")
    agent = using(folder.server(), says=[[call("slow", word="a")]])
    async with serving(agent) as sessions:
        session = await sessions.open("mcp-left", agent="agent")
        run = await session.run("go")
        await folder.reached("slow")
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert (await session.messages())[-1].text == "tool execution interrupted"
        assert [message.text for message in await (await session.run())] == ["done"]


@pytest.mark.parametrize(
    "declared",
    [
        McpServer("no-such-command"),
        McpServer("sleep", "600", start_timeout=0.5),
        McpServer(url="http://127.0.0.1:9/mcp"),
    ],
    ids=["missing", "silent", "refused"],
)
async def test_a_server_that_cannot_be_reached_fails_the_run_before_anything_is_stored(
    serving: Serving, store: FileStore, declared: McpServer
) -> None:
    """6.2: the error says which server and why, and the next run may work."""
    async with serving(using(declared)) as sessions:
        session = await sessions.open(f"mcp-unreachable-{declared.label[:5]}", agent="agent")
        with pytest.raises(McpServerError, match="the MCP server"):
            await (await session.run("go"))
        assert await store.load_entries(session.id) == []
        await session.append("still usable")


@pytest.mark.parametrize("kind", ["twins", "clash"])
async def test_two_tools_of_one_name_fail_the_run_before_anything_is_stored(
    serving: Serving, store: FileStore, folder: Folder, kind: str
) -> None:
    """6.2"""
    agent = using(folder.server(kind), tools=[add] if kind == "clash" else [])
    async with serving(agent) as sessions:
        session = await sessions.open(f"mcp-two-{kind}", agent="agent")
        with pytest.raises(AgentError, match=r"two tools named '(add|twin)', one of them from"):
            await (await session.run("go"))
        assert await store.load_entries(f"mcp-two-{kind}") == []


async def test_a_prefix_keeps_two_servers_apart(serving: Serving, folder: Folder) -> None:
    servers = [folder.server(prefix=prefix, only=["pid"]) for prefix in ("a", "b")]
    agent = using(*servers, says=[[call("a_pid"), call("b_pid")]])
    one, other = await results_of(serving, agent, "apart")
    assert one.text != other.text


@pytest.mark.parametrize("option", ["only", "idempotent"])
async def test_a_declaration_that_names_what_is_not_there_fails_the_run(
    serving: Serving, folder: Folder, option: str
) -> None:
    agent = using(folder.server("odd-names", **{option: ["shop.find"]}))
    async with serving(agent) as sessions:
        session = await sessions.open(f"mcp-misnamed-{option}", agent="agent")
        with pytest.raises(AgentError, match=f"no tool 'shop.find', which {option} names; it has"):
            await (await session.run("go"))


async def test_odd_names_are_called_as_the_server_has_them(
    serving: Serving, folder: Folder
) -> None:
    agent = using(folder.server("odd-names"), says=[[call("shop_find_order")]])
    [result] = await results_of(serving, agent, "odd")
    assert result.text == "shop.find/order ran"


async def test_the_processes_end_with_the_worker(serving: Serving, folder: Folder) -> None:
    """Also the one that is busy with a call."""
    folder.hold("slow")
    agent = using(folder.server(), says=[[call("slow", word="a")]])
    async with serving(agent) as sessions:
        session = await sessions.open("mcp-with-the-worker", agent="agent")
        await session.run("go")
        await folder.reached("slow")
        assert len(folder.processes()) == 1
        await session.cancel()
    assert folder.processes() == []


async def test_secrets_reach_the_server_and_nothing_else(
    serving: Serving, folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    port, secret = free_port(), "s3cret-t0ken"
    url = f"http://127.0.0.1:{port}/mcp"
    there: dict[str, Any] = {"name": "x-token", "length": len(secret)}
    servers = [
        McpServer(url=url, headers={"x-token": secret}, only=["has_header"]),
        folder.server(env={"x-token": secret}, only=["has_variable"]),
        McpServer("no-such-command", secret, env={"KEY": secret}),
    ]
    says = [[call("has_header", **there), call("has_variable", **there)]]
    told = []
    with folder.http(port):
        async with serving(using(*servers[:2], says=says)) as sessions:
            session = await sessions.open("mcp-secretive", agent="agent")
            messages = await (await session.run("go"))
            assert [message.text for message in messages[1:3]] == ["true", "true"]
            told.append(await _history(sessions, session))
    async with serving(using(*servers)) as sessions:
        session = await sessions.open("mcp-secretive-failing", agent="agent")
        with pytest.raises(McpServerError) as raised:
            await (await session.run("go"))
        told += [await _history(sessions, session), str(raised.value), repr(servers)]
    assert [text for text in (*told, *caplog.messages) if secret in text] == []


async def _history(sessions: Sessions, session: Session) -> str:
    handle = sessions.client.get_workflow_handle(workflow_id(session.id))
    events = (await handle.fetch_history()).events
    return "".join(event.SerializeToString().decode("utf-8", "replace") for event in events)


async def test_a_worker_that_has_not_listed_the_tools_asks_for_them(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    """When they have changed meanwhile, the run goes on with the new ones, and the log says so."""
    first, second = Toolboxes(), Toolboxes()
    agent = using(folder.server(only=["pid"]))
    digest, toolbox = await first.listed(agent)
    assert (await second.of_run(agent, digest)).specs == toolbox.specs
    assert caplog.messages == []

    changed = using(folder.server(only=["pid", "add"]))
    for _ in range(2):  # asked once, and kept
        specs = (await second.of_run(changed, "0" * 16)).specs
        assert [spec.name for spec in specs] == ["add", "pid"]
    assert folder.steps()["started"] == 3
    [warning] = caplog.messages
    assert "offer other tools than when the run began" in warning
    await asyncio.gather(first.close(), second.close())


async def test_a_worker_without_the_package_says_which_one(monkeypatch: Any) -> None:
    for module in ("mcp_connections", "mcp_tools"):
        monkeypatch.delitem(__import__("sys").modules, f"perdure.activities.{module}", False)
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)
    with pytest.raises(McpServerError, match=r"needs the package mcp .* 'perdure\[mcp\]'"):
        await Toolboxes().listed(using(McpServer("true")))


def test_connections_are_one_for_each_server(tmp_path: Path) -> None:
    server = Folder(tmp_path).server()
    connections = McpConnections()
    assert connections.to(server) is connections.to(server)


async def test_a_call_of_a_server_may_wait_for_a_person(serving: Serving, folder: Folder) -> None:
    """Who may change its arguments."""
    server = folder.server(only=["add", "pid"], needs_approval=["add"])
    agent = using(server, says=[[call("add", a=1, b=2), call("pid")]])
    async with serving(agent) as sessions:
        session = await sessions.open("approved", agent="agent")
        run = await session.run("go")
        async for event in run:
            if event.approval is not None:
                with pytest.raises(ToolArgumentsError, match="b: 'two' is not of type 'integer'"):
                    await session.approve(event.approval, arguments={"a": 40, "b": "two"})
                await session.approve(event.approval, arguments={"a": 40, "b": 2})
                break
        results = {message.tool_name: message for message in await run if message.tool_name}
        assert results["add"].text.endswith("42")
        assert not results["add"].is_error
