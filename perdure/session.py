"""An open session, as an application holds it: verbs go to its workflow, reads come from its
store.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar, overload

from pydantic import ValidationError
from temporalio.client import WorkflowUpdateHandle

from perdure.entries import CompactionEntry, Entry, MessageEntry, text
from perdure.errors import CommandError, SessionClosedError, restored
from perdure.following import followed
from perdure.lifecycle import SessionEvent
from perdure.messages import Message
from perdure.output_run import OutputRun
from perdure.output_type import output_of
from perdure.protocol import (
    OUTPUT_RETRIES,
    AppendCommand,
    ApproveCommand,
    BranchCommand,
    CancelCommand,
    CloseCommand,
    Command,
    CompactCommand,
    EntryJson,
    ForkCommand,
    Opened,
    Outcome,
    PendingApproval,
    QueuedCommand,
    RunCommand,
    Status,
    WhenBusy,
)
from perdure.remote import RemoteSession
from perdure.run import Run
from perdure.session_id import check_session_id
from perdure.transcript import Transcript
from perdure.transcript_cache import Transcripts
from perdure.tree import TreeNode
from perdure.views import transcript_view
from perdure.wire import fault

_TRIES = 5
"""How often a command is sent to a session that is open and then is not."""


class Session:
    """One conversation. Get it from `Sessions.open`; any number of processes may hold the same
    one.
    """

    def __init__(
        self,
        opened: Opened,
        remote: RemoteSession,
        transcripts: Transcripts,
        open_again: Callable[[], Awaitable[Opened]],
        open_child: Callable[[str], Awaitable[Session]],
        *,
        instance: str = "",
    ) -> None:
        self.id = opened.session_id
        self.created = opened.created
        self._remote = remote
        self._transcripts = transcripts
        self._open_again = open_again
        self._open_child = open_child
        self._instance = instance
        self._sent = 0
        self._leaf_id = opened.leaf_id
        self._seen_id = opened.tip_id

    # ── verbs ──────────────────────────────────────────────────────────────────────────────────

    @overload
    async def run(
        self,
        *entries: Entry | str,
        run_id: str | None = None,
        when_busy: WhenBusy = "queue",
        stream: bool = False,
        output: None = None,
    ) -> Run: ...

    @overload
    async def run(
        self,
        *entries: Entry | str,
        run_id: str | None = None,
        when_busy: WhenBusy = "queue",
        stream: bool = False,
        output: type[T],
        output_retries: int = OUTPUT_RETRIES,
    ) -> OutputRun[T]: ...

    @overload
    async def run(
        self,
        *entries: Entry | str,
        run_id: str | None = None,
        when_busy: WhenBusy = "queue",
        stream: bool = False,
        output: Mapping[str, Any],
        output_retries: int = OUTPUT_RETRIES,
    ) -> OutputRun[Any]: ...

    async def run(
        self,
        *entries: Entry | str,
        run_id: str | None = None,
        when_busy: WhenBusy = "queue",
        stream: bool = False,
        output: type[Any] | Mapping[str, Any] | None = None,
        output_retries: int | None = None,
    ) -> Run:
        """Run the session's agent on new entries; without any, continue from the leaf.

        Durably accepted when this returns; a session whose workflow had ended is resumed. A
        `run_id` of your own, unique in the session, makes the call safe to repeat. While the
        session is busy, the run waits its turn (`"queue"`), is refused with SessionBusyError
        (`"reject"`), or joins the run in progress before its next model call (`"steer"`; its
        messages are then those from there to the end).

        With `stream` the model is asked for its answer piece by piece: who watches the run gets
        the pieces (`message_update`), and a run that is cancelled keeps what was said by then.

        With `output` (a pydantic model, a dataclass, a TypedDict, or a JSON schema) the last answer
        is such an object, which the run's `output()` gives. An answer that is not goes back to the
        model up to `output_retries` times; then the run fails with OutputError. Such a run does not
        join another, it waits its turn.

        Raises CommandTooLargeError and, for arguments of the wrong kind, CommandError, before
        anything is sent; EntryEncodeError for an entry that cannot be stored; ServerError when no
        worker takes the run within a minute.
        """
        command = new_command(
            RunCommand,
            command_id=run_id or _new_id(),
            entries=_as_json(entries),
            when_busy=when_busy,
            stream=stream,
            output=_output_json(output, output_retries),
        )
        accepted = await self._send(command, is_own_id=run_id is not None)
        ended = partial(self._note_run, self._sent)
        parts = (self.id, command.command_id, self._remote, self._transcripts)
        if output is None:
            return Run(*parts, is_streamed=stream, accepted=accepted, when_ended=ended)
        return OutputRun(
            *parts,
            reader=output_of(output),
            is_streamed=stream,
            accepted=accepted,
            when_ended=ended,
        )

    @overload
    def attach(self, run_id: str, *, output: None = None) -> Run: ...

    @overload
    def attach(self, run_id: str, *, output: type[T]) -> OutputRun[T]: ...

    @overload
    def attach(self, run_id: str, *, output: Mapping[str, Any]) -> OutputRun[Any]: ...

    def attach(self, run_id: str, *, output: type[Any] | Mapping[str, Any] | None = None) -> Run:
        """A run that was started elsewhere, or earlier; with `output` one whose answer is such an
        object. Awaiting it raises UnknownCommandError when the session has forgotten it.

        Raises CommandError for what is no ID.
        """
        given: Any = run_id
        if not isinstance(given, str) or not given:
            raise CommandError(f"{run_id!r} is no ID of a run; runs have it as run.id")
        parts = (self.id, run_id, self._remote, self._transcripts)
        return Run(*parts) if output is None else OutputRun(*parts, reader=output_of(output))

    async def append(self, *entries: Entry | str) -> list[Entry]:
        """Record entries without a run, and answer with them as they were stored. Raises as
        `run` does.
        """
        command = new_command(AppendCommand, entries=_as_json(entries))
        outcome = await self._do(command)
        count = sum(not entry.get("ephemeral") for entry in command.entries)
        path = await self._transcripts.path(self.id, outcome.leaf_id, lambda end: len(end) >= count)
        return path[len(path) - count :]

    async def branch(self, entry_id: str) -> None:
        """Move the leaf to an earlier entry (an empty ID: before the first), and that is all.

        Edit is to branch before an entry and run another; retry is to branch and run again; rewind
        is to branch. What is abandoned stays complete. Raises EntryNotFoundError, with nothing
        moved.
        """
        await self._do(new_command(BranchCommand, entry_id=entry_id))

    async def fork(self, session_id: str, *, at: str | None = None) -> Session:
        """A child session with a copy of the path to the leaf, or to the entry `at`.

        The child goes its own way: it has IDs of its own, inherits the agent, and outlives this
        session. Raises SessionExistsError when the ID is taken, EntryNotFoundError,
        InvalidSessionIdError; then nothing changed.
        """
        check_session_id(session_id)
        await self._do(new_command(ForkCommand, session_id=session_id, at=at))
        return await self._open_child(session_id)

    async def compact(
        self, *, keep_turns: int = 0, prompt: str | None = None
    ) -> CompactionEntry | None:
        """Have the agent's model summarize the path, but for its last `keep_turns` turns.

        From then on a model is sent the summary in place of what it covers. Nothing is deleted:
        branching before it gives the whole conversation back. None when there was nothing to
        summarize. Raises ModelError when the model fails, CommandError when `keep_turns` is below
        0; then nothing was appended.
        """
        command = new_command(CompactCommand, keep_turns=keep_turns, prompt=prompt)
        outcome = await self._do(command)
        if not outcome.entry_id:
            return None
        path = await self._transcripts.path(self.id, outcome.entry_id, bool)
        entry = path[-1] if path else None
        return entry if isinstance(entry, CompactionEntry) else None

    async def cancel(self, run_id: str | None = None) -> None:
        """Stop a run, or take it from the queue; without an ID, the run in progress.

        Its model call and its tools stop, open tool calls are answered as interrupted, what the
        model had said already is kept, and the session is ready for the next run. Whoever awaits
        the run gets RunCancelledError. Raises CommandError when there is nothing to cancel.
        """
        await self._do(new_command(CancelCommand, run_id=run_id))

    async def approve(
        self,
        tool_call_id: str | PendingApproval,
        approved: bool = True,
        *,
        reason: str | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        """Answer a tool call that waits for a person. It is done at once, and once.

        With `approved=False` the call does not run, and the model reads the `reason`. Other
        `arguments` take the place of the model's, which is told of that. Given what `approvals`
        or an event told rather than the bare ID of the call, the answer counts for the very call
        that was seen: one that took its place meanwhile is not run.

        Raises CommandError when no such call waits: it is unknown, was answered, or its run is
        over; ToolArgumentsError when the arguments do not fit. Then nothing changed.
        """
        digest: str | None = None
        if isinstance(tool_call_id, PendingApproval):
            digest, tool_call_id = tool_call_id.call_digest, tool_call_id.tool_call_id
        command = new_command(
            ApproveCommand,
            tool_call_id=tool_call_id,
            approved=approved,
            reason=reason,
            arguments=arguments,
            call_digest=digest,
        )
        await self._do(command)

    async def approvals(self) -> list[PendingApproval]:
        """The tool calls that wait for a person; the first 50, when there are more."""
        return (await self.status()).approvals

    async def close(self) -> None:
        """End the session's workflow after everything that came before. The store keeps the
        session, and the next `open` or run resumes it.
        """
        await self._do(new_command(CloseCommand))

    async def status(self) -> Status:
        """What the session does right now, and where it stands. Raises SessionClosedError when its
        workflow does not run.
        """
        status = await self._remote.status()
        self._leaf_id, self._seen_id = status.leaf_id, status.tip_id
        return status

    async def leaf_id(self) -> str:
        """Where the next entry goes: a checkpoint to come back to."""
        return (await self.status()).leaf_id

    async def lifecycle(self) -> AsyncIterator[SessionEvent]:
        """What happens to the session outside its runs, from what the stream still holds on."""
        async for event in self._remote.lifecycle():
            yield SessionEvent.of(event)

    # ── reads ──────────────────────────────────────────────────────────────────────────────────

    async def entries(self) -> list[Entry]:
        """The whole log in append order, branches and all."""
        return list((await self._load()).entries)

    async def tree(self) -> list[TreeNode]:
        """The log as a tree: its roots, each with its children."""
        return (await self._load()).tree()

    async def leaves(self) -> list[str]:
        """The ends of all branches. More than one: someone went back, or two instances wrote
        side by side.
        """
        return (await self._load()).leaves()

    async def transcript(self) -> list[Entry]:
        """The active path as a person reads it: custom entries kept, meta left out."""
        return transcript_view(await self._transcripts.path(self.id, await self._live_leaf()))

    async def messages(self) -> list[Message]:
        """The active path as a model is sent it: compacted, repaired, valid for any provider."""
        leaf_id = await self._live_leaf()
        return (await self._transcripts.for_model(self.id, leaf_id)).model_view(leaf_id)

    # ── inside ─────────────────────────────────────────────────────────────────────────────────

    async def _send(
        self, command: QueuedCommand, *, is_own_id: bool = False
    ) -> WorkflowUpdateHandle[Outcome]:
        self._sent += 1
        for _ in range(_TRIES):
            try:
                return await self._remote.send(command, is_own_id=is_own_id)
            except SessionClosedError:
                # It was closed, or idle for long. A command that was not accepted may be sent
                # again.
                await self._open_again()
        return await self._remote.send(command, is_own_id=is_own_id)

    async def _do(self, command: QueuedCommand) -> Outcome:
        accepted = await self._send(command)
        outcome = await self._remote.outcome(command.command_id, accepted)
        if outcome.error is not None:
            raise restored(outcome.error.type, outcome.error.message)
        self._note_end(outcome)
        return outcome

    async def _load(self) -> Transcript:
        return await self._transcripts.latest(self.id)

    async def _live_leaf(self) -> str:
        """The live leaf, without asking the workflow: where it last said, or further on by what was
        appended since.
        """
        last_id = await self._transcripts.last_id(self.id)
        if last_id != self._seen_id:
            transcript = await self._transcripts.holding(self.id, last_id)
            self._leaf_id = followed(
                transcript, self._leaf_id, self._seen_id, may_have_branched=not self._instance
            )
            self._seen_id = transcript.leaf_id
        return self._leaf_id

    def _note_run(self, sent: int, outcome: Outcome) -> None:
        if self._sent == sent:  # and no later command has moved the leaf
            self._note_end(outcome)

    def _note_end(self, outcome: Outcome) -> None:
        self._leaf_id, self._seen_id = outcome.leaf_id, outcome.tip_id or outcome.leaf_id


_HEADER = ("id", "parent_id", "created_at")
"""What an entry gets when it is stored; there is no need to send it along."""


def _new_id() -> str:
    # Unique in one session; each character is several bytes of history.
    return secrets.token_hex(8)


C = TypeVar("C", bound=Command)
T = TypeVar("T")


def new_command(kind: type[C], **fields: object) -> C:
    """A command, with an ID unless it has one. Raises CommandError when a field is wrong."""
    try:
        return kind.model_validate({"command_id": _new_id()} | fields)
    except ValidationError as error:
        raise CommandError("; ".join(map(fault, error.errors(include_url=False)))) from None


def _as_json(entries: tuple[Entry | str, ...]) -> list[EntryJson]:
    given = [text(entry) if isinstance(entry, str) else entry for entry in entries]
    return [_entry_json(entry) for entry in given]


def _output_json(
    asked: type[Any] | Mapping[str, Any] | None, retries: int | None
) -> dict[str, Any] | None:
    if asked is None:
        if retries is not None:
            raise CommandError(
                "output_retries is about answers that are not the output; say which, with output="
            )
        return None
    output = output_of(asked)
    retries = OUTPUT_RETRIES if retries is None else retries
    return {"json_schema": output.json_schema, "type": output.path, "retries": retries}


def _entry_json(entry: Entry) -> EntryJson:
    if not isinstance(entry, Entry):
        raise CommandError(f"{entry!r} is no entry; give text, or what text(...) and others build")
    line: EntryJson = entry.model_dump(mode="json", by_alias=True)
    for name in _HEADER:
        line.pop(name, None)
    if isinstance(entry, MessageEntry) and entry.ephemeral:
        line["ephemeral"] = True
    return line
