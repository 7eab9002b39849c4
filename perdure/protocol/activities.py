"""What the workflow asks of its activities, and what they answer."""

from __future__ import annotations

from typing import Any

from perdure.protocol.commands import EntryJson, MessageJson
from perdure.protocol.events import EventRecord, RunPlace
from perdure.protocol.outcomes import ErrorInfo
from perdure.protocol.output import OutputSpec
from perdure.protocol.said import Said
from perdure.usage import Usage
from perdure.wire import Wire

MAX_RESULT_BYTES = 1_000_000
"""The largest message of a model or a tool that is passed on, in bytes of JSON."""


class SeenOutside(Wire):
    """What of a session is seen outside of it, in the Temporal UI, as its worker has it.

    With `hides_text` nothing that was said is. `has_attributes`: the search attributes of sessions
    are registered on the server, which refuses them otherwise.
    """

    hides_text: bool = False
    has_attributes: bool = False


class OpenSession(Wire):
    """Load the session, or create it, as a child of the parent if there is one."""

    session_id: str
    parent_id: str = ""


class LoadedSession(SeenOutside):
    """Where a session resumes, what was said last there, and which session it is a child of."""

    leaf_id: str = ""
    created: bool = False
    parent_id: str = ""
    said: list[Said] = []


class FindEntry(Wire):
    """Look for an entry in the session's log; without an entry ID, whether there is such a
    session. `excerpts` asks what was said last before the entry.
    """

    session_id: str
    entry_id: str = ""
    excerpts: bool = False


class FoundEntry(Wire):
    """Whether it was there."""

    found: bool
    said: list[Said] = []


class AppendEntries(Wire):
    """Store stamped entries, for the command of that ID; a repetition adds nothing."""

    session_id: str
    entries: list[EntryJson]
    run_id: str = ""


class Appended(Wire):
    """When the store took those entries that it had already, by ID: an earlier attempt, of which
    Temporal did not hear, had stored them.
    """

    stored_at: dict[str, str] = {}


class StartRun(AppendEntries):
    """Check that the agent's loop can start, then store the run's input. `tools` is the digest of
    the tools that were listed for it.
    """

    agent: str
    output: OutputSpec | None = None
    tools: str = ""


class RunPlan(Appended, SeenOutside):
    """What the workflow needs to know of the loop that it drives, or, when the agent brings a loop
    of its own (`is_loop`), of that.

    `asks_servers`: nothing was stored yet, because the agent's servers have to be asked for their
    tools first. `trace`: a worker that traces has begun a trace for a run that came without one.
    """

    model: str
    max_turns: int
    compact_at_tokens: int | None = None
    is_loop: bool = False
    asks_servers: bool = False
    trace: str = ""


class ListTools(Wire):
    """Ask the agent's servers for their tools."""

    agent: str


class ToolList(Wire):
    """The key of a list of tools, and how many there are."""

    digest: str
    count: int = 0


class CallModel(Wire):
    """Ask the agent's model for the next message after the leaf, store it there, and tell watchers
    of the `place` what it says meanwhile.
    """

    session_id: str
    leaf_id: str
    agent: str
    run_id: str
    turn: int
    stream: bool = False
    place: RunPlace | None = None
    output: OutputSpec | None = None
    ephemeral: list[EntryJson] = []
    tools: str = ""


class PlannedCall(Wire):
    """A tool call that the model asked for, and how it has to be run.

    `timeout` is in seconds; a call that is not idempotent runs at most once. One that
    `needs_approval` waits for a person; one that is not `parallel` runs alone, in its place.
    `sub_agent` is the agent that answers it, where that is another agent's matter, and `child_id`
    the session that is made for it.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    idempotent: bool = False
    timeout: float | None = None
    needs_approval: bool = False
    parallel: bool = True
    sub_agent: str = ""
    child_id: str = ""


class StoredAs(Wire):
    """The header that an entry has in the log, but for what it follows."""

    id: str
    created_at: str


class ModelReply(Wire):
    """The message that the model produced, and the calls in it that are ours to run; their
    arguments are in the message.

    `stored` tells of its entry; there is none yet where the call was cancelled, or the store did
    not answer. `batches` is how many messages watchers were sent meanwhile, `events` what is left
    to tell them. `faults` says why the message is not the output that the run asked for.
    """

    message: MessageJson
    stored: StoredAs | None = None
    calls: list[PlannedCall] = []
    batches: int = 0
    events: list[EventRecord] = []
    faults: str = ""


class RunTool(Wire):
    """Run one tool call. With a place in the run, somebody wants to hear how it gets on."""

    session_id: str
    agent: str
    run_id: str
    call: PlannedCall
    place: RunPlace | None = None
    tools: str = ""


class ToolReply(Wire):
    """The tool result as a message of the log, and how often watchers were told of the call
    meanwhile.
    """

    message: MessageJson
    batches: int = 0


class CheckArguments(Wire):
    """Look whether the agent's tool can be called with these arguments."""

    agent: str
    tool_name: str
    arguments: dict[str, Any]
    tools: str = ""


class CheckedArguments(Wire):
    """What is wrong with them; nothing, when they fit."""

    fault: str = ""


class RunLoop(Wire):
    """Run an agent's own loop after the leaf, which is where the run's input ends.

    `only_look` asks where the loop had got to in at most `attempts` attempts, and runs nothing.
    `excerpts` asks what was said last.
    """

    session_id: str
    leaf_id: str
    agent: str
    run_id: str
    start_id: str = ""
    input_count: int = 0
    ephemeral: list[EntryJson] = []
    stream: bool = False
    max_turns: int
    next_index: int = 0
    attempts: int = 1
    only_look: bool = False
    excerpts: bool = False


class LoopReply(Wire):
    """Where a loop has got to, however it ended.

    `next_index` is the number of the run's next event, `restarts` how often it began again.
    `batches` is how many messages watchers were sent meanwhile, `events` what is left to tell them.
    """

    leaf_id: str
    turns: int = 0
    next_index: int = 0
    usage: Usage = Usage()
    restarts: int = 0
    batches: int = 0
    events: list[EventRecord] = []
    said: list[Said] = []
    error: ErrorInfo | None = None


class ReadAnswer(Wire):
    """Read what the model said last before the leaf."""

    session_id: str
    leaf_id: str


class Answer(Wire):
    """The content of a message, as JSON: what somebody else can read of it."""

    content: list[dict[str, Any]] = []


class Summarize(Wire):
    """Have the path to the leaf summarized, but for its last turns."""

    session_id: str
    leaf_id: str
    agent: str
    keep_turns: int = 0
    prompt: str | None = None


class Summary(Wire):
    """A summary, and where what is kept begins. An empty one: there was nothing to summarize."""

    text: str = ""
    first_kept_id: str = ""
    tokens_before: int = 0
    usage: Usage | None = None


class CopyPath(Wire):
    """Make a session of the path to the leaf of another."""

    session_id: str
    leaf_id: str
    child_id: str


class CopiedPath(Wire):
    """The end of the copy."""

    leaf_id: str
