"""Sessions are found by their search attributes, where the server knows these."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from benchmarks.conversation import clerk, take_turn, talker
from perdure import Agent, ServerError, Session, Sessions, names
from perdure.activities import seen_outside
from perdure.dev_server import dev_server
from perdure.models.scripted import ScriptedModel, call
from perdure.search_attributes import ATTRIBUTES, are_registered, register
from perdure.stores import FileStore
from perdure.worker import build_worker
from tests.engine.conftest import Serving, replay_all
from tests.engine.test_history_budget import IN_ONE_RUN, smallest_turn
from tests.engine.test_temporal_ui import handle_of, refund, waiting_calls


async def test_a_session_is_found_by_how_it_stands(serving: Serving) -> None:
    script = ScriptedModel(call("refund", order_id="7", cents=1), "Done.", delay=0.3)
    agent = Agent("asks", model=script, tools=[refund])
    async with serving(agent) as sessions:
        session = await sessions.open("sa-stands", agent="asks")
        seen = [await attributes_of(sessions, session)]
        run = await session.run("Hello.")
        seen.append(await attributes_of(sessions, session))
        [approval] = await waiting_calls(session)
        seen.append(await attributes_of(sessions, session))
        await session.approve(approval.tool_call_id)
        await run
        seen.append(await attributes_of(sessions, session))
        await session.close()
        await handle_of(sessions, session).result()
        seen.append(await attributes_of(sessions, session))

    assert seen == [
        {"SessionAgent": "asks", "SessionStatus": "idle", "SessionTurns": 0},
        {"SessionAgent": "asks", "SessionStatus": "running", "SessionTurns": 0},
        {"SessionAgent": "asks", "SessionStatus": "waiting", "SessionTurns": 1},
        {"SessionAgent": "asks", "SessionStatus": "idle", "SessionTurns": 2},
        {"SessionAgent": "asks", "SessionStatus": "closed", "SessionTurns": 2},
    ]


async def test_several_calls_wait_until_the_last_is_answered(serving: Serving) -> None:
    calls = [call("refund", order_id=str(number), cents=1) for number in range(3)]
    agent = Agent("asks", model=ScriptedModel(calls, "Done.", delay=0.3), tools=[refund])
    async with serving(agent) as sessions:
        session = await sessions.open("sa-several", agent="asks")
        run = await session.run("Hello.")
        first, second, third = await waiting_calls(session)
        await session.approve(first.tool_call_id, approved=False)
        await session.approve(second.tool_call_id)
        while len(await waiting_calls(session)) > 1:
            pass
        waits = await attributes_of(sessions, session)
        await session.approve(third.tool_call_id)
        while (await attributes_of(sessions, session))["SessionStatus"] == "waiting":
            pass
        goes_on = await attributes_of(sessions, session)
        await run
    assert (waits["SessionStatus"], goes_on["SessionStatus"]) == ("waiting", "running")


async def test_they_are_kept_over_a_continue_as_new_and_tell_whose_child_a_fork_is(
    serving: Serving,
) -> None:
    async with serving(talker(), max_history_events=20) as sessions:
        session = await sessions.open("sa-long", agent="talker")
        for _ in range(4):
            await take_turn(session)
        child = await session.fork("sa-long/child")
        seen = [await attributes_of(sessions, each) for each in (session, child)]
    own = {"SessionAgent": "talker", "SessionStatus": "idle", "SessionTurns": 4}
    assert seen == [own, own | {"SessionParent": "sa-long", "SessionTurns": 0}]


@pytest.mark.parametrize("agent, events, size_bytes", [(talker(), 15, 5_000), (clerk(), 28, 9_000)])
async def test_a_run_costs_two_events_more(
    serving: Serving, agent: Agent, events: int, size_bytes: int
) -> None:
    async with serving(agent, max_history_events=IN_ONE_RUN) as sessions:
        session = await sessions.open(f"sa-{agent.name}", agent=agent.name)
        await take_turn(session)
        turn = await smallest_turn(sessions, session)
    assert turn.events <= events
    assert turn.size_bytes <= size_bytes


async def test_without_them_sessions_run_and_with_them_the_next_run_uses_them(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dev_server(search_attributes=False) as server:
        client = server.client
        async with build_worker(client, agents=[talker()], store=store, task_queue="bare"):
            sessions = Sessions(client, store, task_queue="bare")
            session = await sessions.open("sa-bare", agent="talker")
            await take_turn(session)
            without = await attributes_of(sessions, session)
            assert not await are_registered(client)

            assert await register(client) == list(ATTRIBUTES)
            assert await register(client) == []
            assert await are_registered(client)
            monkeypatch.setattr(seen_outside, "_ASKED_AGAIN_AFTER", 0.0)
            while not (with_them := await attributes_of(sessions, session)):
                await take_turn(session)
        await replay_all(client, "bare")
    assert without == {}
    assert with_them.pop("SessionTurns") > 1
    assert with_them == {"SessionAgent": "talker", "SessionStatus": "idle"}


async def test_one_that_is_taken_for_something_else_is_left_alone(store: FileStore) -> None:
    async with dev_server(search_attributes=False) as server:
        client = server.client
        request = AddSearchAttributesRequest(
            namespace=client.namespace,
            search_attributes={
                names.SESSION_TURNS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
            },
        )
        await client.operator_service.add_search_attributes(request)
        with pytest.raises(ServerError, match="SessionTurns of namespace 'default' is of another"):
            await register(client)
        async with build_worker(client, agents=[talker()], store=store, task_queue="taken"):
            sessions = Sessions(client, store, task_queue="taken")
            session = await sessions.open("sa-taken", agent="talker")
            await take_turn(session)
            assert await attributes_of(sessions, session) == {}


async def test_who_may_not_register_them_is_told_what_to_do() -> None:
    async def refuse(request: object) -> None:
        raise RPCError("no", RPCStatusCode.PERMISSION_DENIED, b"")

    operator = SimpleNamespace(list_search_attributes=refuse)
    client = cast(Client, SimpleNamespace(namespace="prod", operator_service=operator))
    with pytest.raises(ServerError) as refused:
        await register(client)
    assert str(refused.value) == (
        "whoever connects may not register search attributes in namespace 'prod'; let an "
        "administrator register SessionStatus (Keyword), SessionTurns (Int), SessionParent "
        "(Keyword), SessionAgent (Keyword). Sessions run without"
    )


async def attributes_of(sessions: Sessions, session: Session) -> dict[str, Any]:
    """What the session is found by, of that which perdure sets."""
    await asyncio.sleep(0)
    described = await handle_of(sessions, session).describe()
    pairs = described.typed_search_attributes
    return {pair.key.name: pair.value for pair in pairs if pair.key.name in ATTRIBUTES}
