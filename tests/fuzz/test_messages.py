"""Signals, updates and queries with any JSON, and with what is none: the workflow takes them or
refuses them in perdure's words, and answers afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowHandle, WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from perdure import PerdureError, Session, errors, names
from perdure.dev_server import DevServer
from perdure.session_id import workflow_id
from perdure.wire import BAD_MESSAGE
from perdure.workflows.verbs import VERBS
from tests.core.strategies import json_values
from tests.engine.agents import echo
from tests.engine.conftest import Serving
from tests.engine.histories import counted
from tests.fuzz.effort import effort

OWN_WORDS = {BAD_MESSAGE, names.STATUS_TOLD} | {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, PerdureError)
}
"""The types that a refusal may have."""

FIELDS = sorted(
    {name for kind in VERBS.values() for name in kind.model_fields}
    | {"agent", "idle_timeout", "max_command_bytes", "message", "type", "role", "content"}
)

texts = st.text(max_size=6) | st.sampled_from(["", "x", "a1", "\ud800", "%s", "{}", "/", "\0"])
values = st.one_of(json_values, texts, st.integers(-2, 2**70), st.just(1e300))
entries = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "compaction", "artifact", "session_init"]) | values,
        "id": texts,
        "parent_id": texts,
        "created_at": texts | st.just("2026-11-29T12:00:00Z"),
        "message": st.fixed_dictionaries(
            {}, optional={"role": texts | st.just("user"), "content": values}
        ),
        "ephemeral": values,
        "meta": values,
    },
)
objects = st.dictionaries(
    st.sampled_from(FIELDS) | texts, values | entries | st.lists(entries, max_size=2), max_size=4
)
payloads = st.one_of(
    (values | objects | entries | st.lists(entries, max_size=2)).map(
        lambda value: Payload(
            metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode("utf-8", "replace")
        )
    ),
    st.builds(
        lambda encoding, data: Payload(metadata={"encoding": encoding}, data=data),
        st.sampled_from([b"json/plain", b"binary/plain", b"binary/null", b"json/protobuf", b"?"]),
        st.binary(max_size=12),
    ),
    st.just(Payload()),
)
verbs = st.sampled_from([*VERBS, names.OPEN, names.WAIT, names.STATUS])
signal_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
ways = st.sampled_from(["update", "signal", "query"])
message_lists = st.lists(st.tuples(ways, verbs, payloads), min_size=8, max_size=8)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(600)
@effort(12)
@given(messages=message_lists, odd=signal_names, more=payloads)
async def test_any_message_is_taken_or_refused_and_the_session_answers_afterwards(
    serving: Serving,
    server: DevServer,
    messages: list[tuple[str, str, Payload]],
    odd: str,
    more: Payload,
) -> None:
    """Nothing that arrives fails a task of the workflow."""
    async with serving(echo()) as sessions:
        session = await sessions.open(f"fuzz-{uuid.uuid4().hex}", agent="agent")
        handle: WorkflowHandle[Any, Any] = server.client.get_workflow_handle(
            workflow_id(session.id)
        )
        sending = [_send(handle, *message) for message in messages]
        await asyncio.gather(*sending)
        for name in (odd, names.STREAM_PUBLISH, names.RUN):
            await _signalled(handle, name, more)
        await _signalled(handle, names.APPEND, more, times=2)
        await _check_alive(session, sessions)
        found = await counted(server.client, workflow_id(session.id))
        assert (found["WORKFLOW_TASK_FAILED"], found["WORKFLOW_EXECUTION_FAILED"]) == (0, 0)


async def _send(handle: WorkflowHandle[Any, Any], way: str, name: str, payload: Payload) -> None:
    message = RawValue(payload)
    try:
        match way:
            case "update":
                async with asyncio.timeout(20):
                    await handle.execute_update(name, message, result_type=RawValue)
            case "signal":
                await handle.signal(name, message)
            case "query":
                await handle.query(names.STATUS, message, result_type=RawValue)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        assert isinstance(cause, ApplicationError)
        assert cause.type in _refusals_of(name), (name, payload, cause)
    except WorkflowQueryFailedError:
        pass  # the one query takes nothing; what it is given all the same, the SDK refuses
    except RPCError:
        pass  # the session was closed by one of the others


def _refusals_of(name: str) -> set[str]:
    """`status` takes nothing; bytes that are no JSON the SDK refuses before perdure sees them."""
    foreign = {
        "AcceptedUpdateCompletedWorkflow",
        *(["RuntimeError"] if name == names.STATUS else []),
    }
    return OWN_WORDS | foreign


async def _signalled(
    handle: WorkflowHandle[Any, Any], name: str, payload: Payload, *, times: int = 1
) -> None:
    with contextlib.suppress(RPCError):  # the session was closed by one of the messages
        await handle.signal(name, args=[RawValue(payload)] * times)


async def _check_alive(session: Session, sessions: Any) -> None:
    """A run is answered, in the session that there is by now."""
    again = await sessions.open(session.id, agent="agent")
    run = await again.run("still there?")
    assert "still there?" in (await run)[-1].text
    status = await again.status()
    assert not status.waiting
