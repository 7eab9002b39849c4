"""Runs over a provider's own client and a real server: what is retried, what ends a run, and under
which name.
"""

from __future__ import annotations

import pytest

from perdure import Agent, tool
from perdure.errors import ContextOverflowError, ModelAccessError, ModelError
from perdure.models import pydantic_ai_settings
from tests.agent.provider_server import Reply, provider_server
from tests.agent.wire import CHAT, KEY, PROTOCOLS, Call, Protocol, Text
from tests.engine.conftest import Serving


def refusal(status: int, message: str, **headers: str) -> Reply:
    return Reply({"type": "error", "error": {"message": message}}, status, headers)


@tool(idempotent=True)
async def find_order(order_id: str) -> str:
    """Look an order up."""
    return f"order {order_id} is lost"


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
async def test_a_run_outlives_what_passes_at_a_provider(
    protocol: Protocol, serving: Serving
) -> None:
    """Half an answer, two calls under one ID, and a provider that is busy."""
    calls = [Call("c", "find_order", f'{{"order_id": "{number}"}}') for number in (7, 8)]
    replies = [
        Reply(cut=True),
        protocol.whole(*calls),
        refusal(429, "slow", **{"retry-after": "0"}),
        protocol.whole(Text("Both are lost.")),
    ]
    with provider_server(*replies) as server:
        agent = Agent("support", model=protocol.model(server.url), tools=[find_order])
        async with serving(agent) as sessions:
            session = await sessions.open(f"busy-{protocol}", agent="support")
            messages = await (await session.run("Where are they?"))

    called, *results, answer = messages
    assert {call.id for call in called.tool_calls} == {result.tool_call_id for result in results}
    assert sorted(result.text for result in results) == ["order 7 is lost", "order 8 is lost"]
    assert answer.text == "Both are lost."
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "reply, kind",
    [
        (refusal(401, f"Incorrect API key provided: {KEY}"), ModelAccessError),
        (refusal(413, "Request exceeds the maximum size"), ContextOverflowError),
    ],
    ids=["key", "overflow"],
)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
async def test_a_failure_that_stays_ends_the_run_under_its_name(
    protocol: Protocol, reply: Reply, kind: type[ModelError], serving: Serving
) -> None:
    """6.4: the input stays, and no key reaches the history."""
    with provider_server(reply) as server:
        agent = Agent("support", model=protocol.model(server.url))
        async with serving(agent) as sessions:
            session_id = f"{kind.__name__}-{protocol}"
            session = await sessions.open(session_id, agent="support")
            with pytest.raises(ModelError) as raised:
                await (await session.run("Where is it?"))
            said = [message.text for message in await session.messages()]
            handle = sessions.client.get_workflow_handle(f"session:{session_id}")
            history = (await handle.fetch_history()).to_json()

    assert type(raised.value) is kind
    assert said == ["Where is it?"]
    assert len(server.requests) == 1
    assert KEY not in history
    assert KEY[8:] not in str(raised.value)


async def test_what_openai_is_told_of_a_session_is_the_same_at_each_call(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key for its cache, that does not tell the session's ID."""
    monkeypatch.setattr(pydantic_ai_settings, "KEYED_HOSTS", (".127.0.0.1",))
    with provider_server(*[CHAT.whole(Text("Yes."))] * 3) as server:
        agent = Agent("support", model=CHAT.model(server.url))
        async with serving(agent) as sessions:
            for session_id in ("keyed-1", "keyed-1", "keyed-2"):
                session = await sessions.open(session_id, agent="support")
                await (await session.run("Well?"))

    first, second, other = (request["prompt_cache_key"] for request in server.requests)
    assert first == second != other
    assert "keyed" not in first
