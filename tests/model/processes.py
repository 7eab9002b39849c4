"""What a worker process does besides the workflow: activities, on a store, until it dies.

All activities are perdure's own. The agent's model answers what was said last, and calls a tool
when it is asked to; its tools note in a journal that they ran.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias
from unittest.mock import patch

from temporalio import activity
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from perdure import Agent, Entry, Message, ToolContext, names, tool
from perdure.activities import model_calls
from perdure.activities.agents import AgentRegistry
from perdure.activities.appending import Appends
from perdure.activities.forks import ForkActivities
from perdure.activities.heartbeats import Heart
from perdure.activities.model_calls import ModelActivities
from perdure.activities.publishing import PublishActivities
from perdure.activities.seen_outside import Outside
from perdure.activities.storage import StoreActivities
from perdure.activities.sub_agents import SubAgentActivities
from perdure.activities.tool_calls import ToolActivities
from perdure.activities.toolboxes import Toolboxes
from perdure.codec import decode_entries
from perdure.errors import StoreError
from perdure.messages import ToolCallBlock
from perdure.models.protocol import ModelRequest
from perdure.protocol import (
    AppendEntries,
    CallModel,
    CopyPath,
    FindEntry,
    LifecycleEvent,
    OpenSession,
    ReadAnswer,
    RunTool,
    StartRun,
)
from perdure.stores import MemoryStore
from perdure.transcript_cache import Transcripts
from perdure.wire import Wire
from tests.core.provider import check_as_a_provider

Activity: TypeAlias = Callable[[Any], Awaitable[Wire | None]]

Kept = tuple[tuple[str, bytes, tuple[tuple[str, bytes], ...]], ...]
"""What a store holds: of each session its ID, its record, and its lines by the entries' IDs."""

AGENT = "agent"


class Died(BaseException):
    """The process is gone: nobody hears how its activity ended."""


Trouble: TypeAlias = Literal["", "is down", "loses the answer"]
"""What is the matter with the store: it does not take what is written, or does, and nobody hears
of it."""


class MortalStore(MemoryStore):
    """A store whose user's process dies after so many writes (one that changes nothing counts as
    well), or which is in trouble.
    """

    def __init__(self, kept: Kept) -> None:
        super().__init__()
        for session_id, record, lines in kept:
            self._records[session_id] = record
            self._logs[session_id] = dict(lines)
        self._writes = 0
        self.ends_after: int | None = None
        self.trouble: Trouble = ""

    def kept(self) -> Kept:
        return tuple(
            (session_id, self._records[session_id], tuple(lines.items()))
            for session_id, lines in self._logs.items()
        )

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        self._check("is down")
        await super().create_session(session_id, parent_id)
        self._wrote()

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        self._check("is down")
        await super().append_entries(session_id, entries)
        self._wrote()

    def _check(self, trouble: Trouble) -> None:
        if self.trouble == trouble:
            raise StoreError(f"the store {trouble}")

    def _wrote(self) -> None:
        self._check("loses the answer")
        self._writes += 1
        if self._writes == self.ends_after:
            raise Died


@dataclasses.dataclass(frozen=True, slots=True)
class Did:
    """What an activity left: the store, the side effects of tools, and its answer, which is a
    failure's if it failed, and None if its process died.
    """

    kept: Kept
    journal: tuple[str, ...]
    answer: bytes | None = None
    failure: Failure | None = None


def do(
    kind: str,
    request: bytes,
    kept: Kept,
    journal: tuple[str, ...],
    *,
    attempt: int = 1,
    dies_after: int | None = None,
    trouble: Trouble = "",
) -> Did:
    """Run one attempt of an activity; its process may die after so many writes or side effects, or
    the store be in trouble.
    """
    store = MortalStore(kept)
    store.ends_after, store.trouble = dies_after, trouble
    _Effects.journal = list(journal)
    try:
        answer = _run(kind, request, store, attempt)
    except Died:
        return Did(store.kept(), tuple(_Effects.journal))
    except ApplicationError as error:
        return Did(store.kept(), tuple(_Effects.journal), failure=failure_of(error))
    if dies_after == len(_Effects.journal) - len(journal):
        # A tool cannot raise it: whatever it raises is a result.
        return Did(store.kept(), tuple(_Effects.journal))
    data = b"null" if answer is None else answer.to_json()
    return Did(store.kept(), tuple(_Effects.journal), answer=data)


def failure_of(error: BaseException) -> Failure:
    """An exception as it travels."""
    failure = Failure()
    converter = DataConverter.default
    converter.failure_converter.to_failure(error, converter.payload_converter, failure)
    return failure


def entries_of(kept: Kept, session_id: str) -> list[Entry]:
    """A session's log; empty when there is no such session."""
    logs = {known: lines for known, _, lines in kept}
    return decode_entries([line for _, line in logs.get(session_id, ())])


class Says:
    """A model that answers the last message, with other words each time that it is asked. One that
    asks for a tool is answered by a call.
    """

    name = "says"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> Message:
        check_as_a_provider(list(request.messages))
        last = request.messages[-1]
        if last.role == "user" and last.text.startswith(("charge", "look")):
            calls = last.text.split(", ")
            blocks = [ToolCallBlock(id=call, name=call.split()[0]) for call in calls]
            return Message(role="assistant", content=blocks)
        attempt = activity.info().attempt
        again = f" ({attempt})" if attempt > 1 else ""
        return Message(role="assistant", content=f"re: {last.text}{again}")


class _Effects:
    """What tools have done, by the attempt at hand too."""

    journal: list[str]


def _use(context: ToolContext) -> str:
    _Effects.journal.append(context.tool_call_id)
    return f"did {context.tool_call_id}"


@tool
async def charge(context: ToolContext) -> str:
    """May run once."""
    return _use(context)


@tool(idempotent=True)
async def look(context: ToolContext) -> str:
    """May run again."""
    return _use(context)


_AGENTS = AgentRegistry([Agent(AGENT, model=Says(), tools=[charge, look])])
_HEART = Heart()
_LOOP = asyncio.new_event_loop()
_CLIENT = _LOOP.run_until_complete(Client.connect("127.0.0.1:1", lazy=True))


def _run(kind: str, request: bytes, store: MortalStore, attempt: int) -> Wire | None:
    environment = ActivityEnvironment(client=_CLIENT)
    environment.info = dataclasses.replace(environment.info, attempt=attempt)

    async def run() -> Wire | None:
        work, message = _activity(kind, request, store)
        answer: Wire | None = await environment.run(work, message)
        return answer

    # An answer is stored with the time that it took; here nothing takes any.
    with patch.object(model_calls, "_entry", _entry_at_once):
        return _LOOP.run_until_complete(run())


_entry = model_calls._entry


def _entry_at_once(request: CallModel, message: Message, seconds: float) -> Entry:
    return _entry(request, message, 0.0)


def _activity(kind: str, request: bytes, store: MortalStore) -> tuple[Activity, Wire]:
    transcripts = Transcripts(store)
    appends = Appends(store, transcripts)
    toolboxes = Toolboxes()
    stored = StoreActivities(store, _AGENTS, transcripts, appends, Outside())
    match kind:
        case names.OPEN_SESSION:
            return stored.open_session, OpenSession.from_json(request)
        case names.APPEND_ENTRIES:
            return stored.append_entries, AppendEntries.from_json(request)
        case names.START_RUN:
            return stored.start_run, StartRun.from_json(request)
        case names.FIND_ENTRY:
            return stored.find_entry, FindEntry.from_json(request)
        case names.COPY_PATH:
            forks = ForkActivities(store, transcripts, _HEART)
            return forks.copy_path, CopyPath.from_json(request)
        case names.CALL_MODEL:
            models = ModelActivities(_AGENTS, toolboxes, transcripts, appends, _HEART)
            return models.call_model, CallModel.from_json(request)
        case names.RUN_TOOL:
            tools = ToolActivities(_AGENTS, toolboxes, _HEART)
            return tools.run_tool, RunTool.from_json(request)
        case names.READ_ANSWER:
            return SubAgentActivities(transcripts).read_answer, ReadAnswer.from_json(request)
        case names.PUBLISH:
            return PublishActivities(None).publish, LifecycleEvent.from_json(request)
    raise AssertionError(f"no activity {kind} in this model")
