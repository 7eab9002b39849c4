"""Workers die while a sub-agent or an MCP server is at work: real processes, killed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure.dev_server import DevServer
from tests.engine.agents import texts
from tests.engine.test_crashes import Stage
from tests.tool_sources.servers import Folder

DONE = ["go", "", "It is 3.", "", "once, finally", "3", "All done."]


class HeldStage(Stage):
    worker_module = "tests.tool_sources.held_worker"

    async def said(self) -> list[str]:
        return [message.text for message in await self.log()]

    async def children(self) -> list[str]:
        logs = [path.name.removesuffix(".jsonl") for path in self.store.root.iterdir()]
        return [name for name in logs if name.startswith(f"{self.session_id}.")]


@pytest.fixture
async def stage(server: DevServer, tmp_path: Path) -> AsyncIterator[HeldStage]:
    stage = HeldStage(server, tmp_path)
    await stage.start_worker()
    yield stage
    stage.kill_workers()
    # A server whose worker was killed finds its pipe closed.
    await Folder(tmp_path).emptied()


async def test_a_worker_that_dies_while_a_sub_agent_is_at_work_costs_its_model_call(
    stage: HeldStage,
) -> None:
    """The other run is joined again, not started again."""
    stage.hold("helper")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.replace_worker_at("helper")

    assert (await run)[-1].text == "All done."
    assert sorted(await stage.said()) == sorted(DONE)
    [child] = await stage.children()
    assert texts(await stage.store.load_entries(child)) == ["1 + 2?", "It is 3."]
    steps = stage.steps()
    assert (steps["helper"], steps["slow"], steps["add"]) == (2, 1, 1)


async def test_what_a_sub_agent_is_asked_is_stored_once_when_its_worker_dies_at_that(
    stage: HeldStage,
) -> None:
    """Its session loads its log and stores the task in one step, which is then done again."""
    stage.hold("stored-assistant")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.reached("stored-assistant")
    stage.hold("stored-user")
    stage.let_go("stored-assistant")
    await stage.reached("stored-user", 2)
    stage.kill_workers()
    stage.let_go("stored-user")
    await stage.start_worker()

    assert (await run)[-1].text == "All done."
    [child] = await stage.children()
    assert texts(await stage.store.load_entries(child)) == ["1 + 2?", "It is 3."]


async def test_a_worker_that_dies_after_a_sub_agent_has_answered_asks_it_no_more(
    stage: HeldStage,
) -> None:
    stage.hold("stored-tool_result")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.replace_worker_at("stored-tool_result")

    assert (await run)[-1].text == "All done."
    assert sorted(await stage.said()) == sorted(DONE)
    [child] = await stage.children()
    assert texts(await stage.store.load_entries(child)) == ["1 + 2?", "It is 3."]
    assert stage.steps()["helper"] == 1


async def test_a_call_of_an_mcp_server_whose_worker_dies_is_answered_as_interrupted(
    stage: HeldStage,
) -> None:
    """At most once; and the next worker has a server of its own."""
    stage.hold("slow")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.reached("add")
    await stage.replace_worker_at("slow")

    assert (await run)[-1].text == "All done."
    interrupted = [text.replace("once, finally", "tool execution interrupted") for text in DONE]
    assert sorted(await stage.said()) == sorted(interrupted)
    steps = stage.steps()
    assert (steps["slow"], steps["helper"]) == (1, 1)


async def test_an_idempotent_call_of_an_mcp_server_whose_worker_dies_is_made_again(
    stage: HeldStage,
) -> None:
    stage.hold("add")
    session = await stage.sessions.open(stage.session_id, agent="held")
    run = await session.run("go")
    await stage.reached("stored-tool_result", 2)
    await stage.replace_worker_at("add")

    assert (await run)[-1].text == "All done."
    assert sorted(await stage.said()) == sorted(DONE)
    steps = stage.steps()
    assert (steps["slow"], steps["add"], steps["started"]) == (1, 2, 2)
