"""What a worker process does besides the workflow: activities, on a store, until it dies.

The store activities and the fork are perdure's own. The model and the tool are stand-ins, because
perdure's need a connection to a server; what matters of them here is what they leave behind.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from perdure import Agent, Entry, names
from perdure.activities.agents import AgentRegistry
from perdure.activities.failures import as_failure
from perdure.activities.forks import ForkActivities
from perdure.activities.heartbeats import Heart
from perdure.activities.storage import StoreActivities
from perdure.codec import decode_entries
from perdure.errors import PerdureError
from perdure.models.scripted import ScriptedModel
from perdure.protocol import (
    Answer,
    AppendEntries,
    CallModel,
    CopyPath,
    FindEntry,
    ModelReply,
    OpenSession,
    PlannedCall,
    RunTool,
    StartRun,
    ToolReply,
)
from perdure.stores import MemoryStore
from perdure.transcript_cache import Transcripts
from perdure.wire import Wire
from tests.core.provider import check_as_a_provider

Kept = tuple[tuple[str, bytes, tuple[tuple[str, bytes], ...]], ...]
"""What a store holds: of each session its ID, its record, and its lines by the entries' IDs."""

AGENT = "agent"
_AGENTS = AgentRegistry([Agent(AGENT, model=ScriptedModel("not asked"))])

T = TypeVar("T")


class Died(BaseException):
    """The process is gone: nobody hears how its activity ended."""


class MortalStore(MemoryStore):
    """A store in whose user's process something happens after so many writes: `Died`, or an
    error. A write that changes nothing counts as well.
    """

    def __init__(self, kept: Kept) -> None:
        super().__init__()
        for session_id, record, lines in kept:
            self._records[session_id] = record
            self._logs[session_id] = dict(lines)
        self._writes = 0
        self.ends_after: int | None = None

    def kept(self) -> Kept:
        return tuple(
            (session_id, self._records[session_id], tuple(lines.items()))
            for session_id, lines in self._logs.items()
        )

    async def create_session(self, session_id: str, parent_id: str = "") -> None:
        await super().create_session(session_id, parent_id)
        self._wrote()

    async def append_entries(self, session_id: str, entries: Sequence[Entry]) -> None:
        await super().append_entries(session_id, entries)
        self._wrote()

    def _wrote(self) -> None:
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
) -> Did:
    """Run one attempt of an activity; its process may die after so many writes or side effects."""
    store = MortalStore(kept)
    store.ends_after = dies_after
    effects = list(journal)
    try:
        answer = _run(_call(kind, request, store, effects, dies_after), attempt)
    except Died:
        return Did(store.kept(), tuple(effects))
    except ApplicationError as error:
        return Did(store.kept(), tuple(effects), failure=failure_of(error))
    data = b"null" if answer is None else answer.to_json()
    return Did(store.kept(), tuple(effects), answer=data)


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


def _run(call: Callable[[], Awaitable[Wire | None]], attempt: int) -> Wire | None:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=attempt)

    async def run() -> Wire | None:
        answer: Wire | None = await environment.run(call)
        return answer

    return _LOOP.run_until_complete(run())


_LOOP = asyncio.new_event_loop()


def _call(
    kind: str, request: bytes, store: MortalStore, effects: list[str], dies_after: int | None
) -> Callable[[], Awaitable[Wire | None]]:
    transcripts = Transcripts(store)
    stored = StoreActivities(store, _AGENTS, transcripts)
    forks = ForkActivities(store, transcripts, Heart())

    async def call() -> Wire | None:
        match kind:
            case names.OPEN_SESSION:
                return await stored.open_session(OpenSession.from_json(request))
            case names.APPEND_ENTRIES:
                return await stored.append_entries(AppendEntries.from_json(request))
            case names.START_RUN:
                return await stored.start_run(StartRun.from_json(request))
            case names.FIND_ENTRY:
                return await stored.find_entry(FindEntry.from_json(request))
            case names.COPY_PATH:
                try:
                    return await forks._copy(CopyPath.from_json(request))
                except PerdureError as error:
                    raise as_failure(error) from None
            case names.CALL_MODEL:
                return await _say(CallModel.from_json(request), transcripts)
            case names.RUN_TOOL:
                return _use(RunTool.from_json(request), effects, dies_after)
            case names.READ_ANSWER:
                return Answer()
            case names.PUBLISH:
                return None
        raise AssertionError(f"no activity {kind} in this model")

    return call


async def _say(request: CallModel, transcripts: Transcripts) -> ModelReply:
    """Answer the last message; one that asks for a tool is answered by a call of it."""
    path = await transcripts.holding(request.session_id, request.leaf_id)
    view = path.model_view(request.leaf_id)
    check_as_a_provider(view)
    last = view[-1]
    said: list[dict[str, Any]] = [{"type": "text", "text": f"re: {last.text}"}]
    calls: list[PlannedCall] = []
    if last.role == "user" and last.text.startswith(("charge", "look")):
        name = last.text.split()[0]
        calls = [PlannedCall(id=last.text, name=name, idempotent=name == "look")]
        said = [{"type": "tool_call", "id": last.text, "name": name}]
    return ModelReply(message={"role": "assistant", "content": said}, calls=calls)


def _use(request: RunTool, effects: list[str], dies_after: int | None) -> ToolReply:
    effects.append(request.call.id)
    if dies_after is not None:
        raise Died
    return ToolReply(
        message={
            "role": "tool_result",
            "content": [{"type": "text", "text": f"did {request.call.id}"}],
            "tool_call_id": request.call.id,
            "tool_name": request.call.name,
        }
    )
