"""An open session, as an application holds it: verbs go to its workflow, reads come from its
store.
"""

from __future__ import annotations

import secrets

from perdure import names
from perdure.entries import Entry, MessageEntry, text
from perdure.errors import restored
from perdure.messages import Message
from perdure.protocol import (
    AppendCommand,
    CloseCommand,
    Command,
    EntryJson,
    Opened,
    Outcome,
    RunCommand,
    Status,
)
from perdure.remote import RemoteSession
from perdure.run import Run
from perdure.transcript import Transcript
from perdure.transcript_cache import Transcripts
from perdure.tree import TreeNode


class Session:
    """One conversation. Get it from `Sessions.open`; any number of processes may hold the same
    one.
    """

    def __init__(self, opened: Opened, remote: RemoteSession, transcripts: Transcripts) -> None:
        self.id = opened.session_id
        self.created = opened.created
        self._remote = remote
        self._transcripts = transcripts
        self._leaf_id = opened.leaf_id
        self._tip_id = opened.tip_id

    # ── verbs ──────────────────────────────────────────────────────────────────────────────────

    async def run(self, *entries: Entry | str, run_id: str | None = None) -> Run:
        """Run the session's agent on new entries; without any, continue from the leaf.

        Durably accepted when this returns. A `run_id` of your own, unique in the session, makes
        the call safe to repeat. Raises CommandTooLargeError before anything is sent,
        EntryEncodeError for an entry that cannot be stored, SessionClosedError when the session
        has to be opened again.
        """
        command = RunCommand(command_id=run_id or _new_id(), entries=_as_json(entries))
        accepted = await self._remote.send(names.RUN, command)
        return Run(self.id, command.command_id, self._remote, self._transcripts, accepted)

    def attach(self, run_id: str) -> Run:
        """A run that was started elsewhere, or earlier. Awaiting it raises UnknownCommandError
        when the session has forgotten it.
        """
        return Run(self.id, run_id, self._remote, self._transcripts)

    async def append(self, *entries: Entry | str) -> list[Entry]:
        """Record entries without a run, and answer with them as they were stored. Raises as
        `run` does.
        """
        command = AppendCommand(command_id=_new_id(), entries=_as_json(entries))
        outcome = await self._do(names.APPEND, command)
        path = await self._path(outcome.leaf_id)
        return path[len(path) - len(entries) :]

    async def close(self) -> None:
        """End the session's workflow after everything that came before. The store keeps the
        session.
        """
        await self._do(names.CLOSE, CloseCommand(command_id=_new_id()))

    async def status(self) -> Status:
        """What the session does right now, and where it stands. Raises SessionClosedError when
        it does not run.
        """
        status = await self._remote.status()
        self._leaf_id, self._tip_id = status.leaf_id, status.tip_id
        return status

    async def leaf_id(self) -> str:
        """Where the next entry goes: a checkpoint to come back to."""
        return (await self.status()).leaf_id

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
        transcript = await self._load()
        return transcript.transcript_view(self._leaf(transcript))

    async def messages(self) -> list[Message]:
        """The active path as a model is sent it: compacted, repaired, valid for any provider."""
        transcript = await self._load()
        return transcript.model_view(self._leaf(transcript))

    # ── inside ─────────────────────────────────────────────────────────────────────────────────

    async def _do(self, verb: str, command: Command) -> Outcome:
        accepted = await self._remote.send(verb, command)
        outcome = await self._remote.outcome(command.command_id, accepted)
        if outcome.error is not None:
            raise restored(outcome.error.type, outcome.error.message)
        self._leaf_id, self._tip_id = outcome.leaf_id, outcome.tip_id or outcome.leaf_id
        return outcome

    async def _load(self) -> Transcript:
        return await self._transcripts.latest(self.id)

    async def _path(self, leaf_id: str) -> list[Entry]:
        return (await self._transcripts.holding(self.id, leaf_id)).path(leaf_id)

    def _leaf(self, transcript: Transcript) -> str:
        """The live leaf, without asking the workflow.

        An instance whose last entry is not the end of the log was overtaken by an append; the leaf
        is then at the end, as it is after every append. Otherwise it is where the workflow last
        said, which may be earlier after a branch.
        """
        return self._leaf_id if transcript.leaf_id == self._tip_id else transcript.leaf_id


_HEADER = ("id", "parent_id", "created_at")
"""What an entry gets when it is stored; there is no need to send it along."""


def _new_id() -> str:
    # Unique in one session; each character is several bytes of history.
    return secrets.token_hex(8)


def _as_json(entries: tuple[Entry | str, ...]) -> list[EntryJson]:
    given = [text(entry) if isinstance(entry, str) else entry for entry in entries]
    return [_entry_json(entry) for entry in given]


def _entry_json(entry: Entry) -> EntryJson:
    line: EntryJson = entry.model_dump(mode="json", by_alias=True)
    for name in _HEADER:
        line.pop(name, None)
    if isinstance(entry, MessageEntry) and entry.ephemeral:
        line["ephemeral"] = True
    return line
