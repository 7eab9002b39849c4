"""Events: what the stream carries, and what the publisher is told."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from perdure.protocol.commands import EntryJson
from perdure.protocol.outcomes import ErrorInfo, PendingApproval
from perdure.usage import Usage
from perdure.wire import Wire

DeltaKind: TypeAlias = Literal["text", "thinking", "tool_arguments"]


class RunPlace(Wire):
    """Where a run stands, for an activity that tells watchers what it does while it does it.

    `call` counts the calls of the model in one turn, from 0.
    """

    run_id: str
    start_id: str = ""
    input_count: int = 0
    turn: int = 0
    next_index: int = 0
    call: int = 0


class DeltaRecord(Wire):
    """A piece of a message that is being written, of its content block `index`."""

    kind: DeltaKind
    text: str
    index: int = 0


class EventRecord(Wire):
    """A run event as the stream carries it.

    `index` counts the events of the run from 0, so a gap shows; `start_id` and `input_count` place
    the run in the log (as in an outcome), so a gap can be filled from the store.

    An event that passes (`is_passing`) tells what is under way. Nothing is stored of it, it is not
    counted, and who misses it misses it: its `index` is that of the next event which counts. What
    an activity tells is of its `call` (see RunPlace) and of its `attempt`; of two that begin the
    same message the greater has begun it later, and what the other said is void.

    `restarts` is how often the run had begun again from its input: the numbers of its events do so
    with it.
    """

    type: str
    run_id: str
    index: int
    is_passing: bool = False
    call: int = 0
    attempt: int = 0
    restarts: int = 0
    start_id: str = ""
    input_count: int = 0
    turn: int = 0
    entries: list[EntryJson] = []
    leaf_id: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    arguments: dict[str, Any] | None = None
    is_error: bool | None = None
    delta: DeltaRecord | None = None
    approval: PendingApproval | None = None
    approved: bool | None = None
    progress: str = ""
    fraction: float | None = None
    usage: Usage | None = None
    error: ErrorInfo | None = None


class LifecycleEvent(Wire):
    """Something that happened to a session outside a run.

    `session_init` (`leaf_id` empty when fresh), `session_branched` (`from_id`, `leaf_id`),
    `session_forked` (`session_id` is the child's, `parent_id` the source's), `session_compacted`
    (`entry`, `leaf_id`). The stream, and only it, also carries `command_failed` (`command_id`,
    `verb`, `error`) for a signal that could not be done.
    """

    type: str
    session_id: str
    leaf_id: str = ""
    from_id: str = ""
    parent_id: str = ""
    entry: EntryJson | None = None
    command_id: str = ""
    verb: str = ""
    error: ErrorInfo | None = None
