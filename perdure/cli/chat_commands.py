"""What a chat does instead of sending a line: the commands that begin with a slash."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from perdure.cli.connection import remote_of
from perdure.cli.entry_lines import headline, role_of
from perdure.cli.forks import forks_of
from perdure.cli.place import Place
from perdure.cli.screen import Screen, one_line, safe
from perdure.cli.status import print_status, told_of
from perdure.cli.stored import entry_id, record_of
from perdure.cli.tree import print_tree
from perdure.client import Sessions
from perdure.errors import CommandError
from perdure.session import Session
from perdure.transcript import Transcript

QUIT = "/quit"

_HELP = """\
/branch ENTRY    go back to an entry; --before it, or --to-start
/fork ID         copy the conversation into a new session
/compact [N]     have it summarized, but for the last N turns
/tree [--all]    the branches, with the IDs of their entries
/status          what the session does, and what it has used
/help            this
/quit            leave, as Ctrl-D does; the session stays
//…              say something that begins with a slash
Ctrl-C cancels what the agent does."""


@dataclass(frozen=True, slots=True)
class ChatCommands:
    """The commands, for one session, and where they print."""

    sessions: Sessions
    session: Session
    place: Place
    screen: Screen

    async def do(self, line: str) -> None:
        """Do what the line says. Raises CommandError for a line that is no command, and whatever
        the command fails with; then nothing changed.
        """
        name, *words = line.split()
        commands: dict[str, Callable[[list[str]], Awaitable[None]]] = {
            "/branch": self._branch,
            "/fork": self._fork,
            "/compact": self._compact,
            "/tree": self._tree,
            "/status": self._status,
            "/help": self._help,
        }
        if name not in commands:
            raise CommandError(f"there is no command {name}; /help has those that are")
        await commands[name](words)
        self.screen.flush()

    async def _branch(self, words: list[str]) -> None:
        flags = {word for word in words if word.startswith("--")}
        targets = [word for word in words if word not in flags]
        is_start = flags == {"--to-start"}
        if len(targets) != (0 if is_start else 1) or not flags <= {"--before", "--to-start"}:
            raise CommandError("write /branch ENTRY, with --before or not, or /branch --to-start")
        transcript = Transcript(await self.session.entries())
        leaf_id = "" if is_start else entry_id(transcript, targets[0])
        entry = transcript.get(leaf_id)
        if entry is not None and "--before" in flags:
            leaf_id = entry.parent_id
        await self.session.branch(leaf_id)
        entry = transcript.get(leaf_id)
        where = f"{role_of(entry)} {headline(entry)}" if entry else "before the first entry"
        self._tell(f"◆ {' '.join(filter(None, (one_line(leaf_id), where)))}")

    async def _fork(self, words: list[str]) -> None:
        if len(words) != 1:
            raise CommandError("write /fork ID, with the ID of the new session")
        child = await self.session.fork(words[0])
        command = shlex.join(["perdure", "chat", child.id])
        self._tell(f"⑂ forked to {one_line(child.id)}; `{safe(command)}` goes on there")

    async def _compact(self, words: list[str]) -> None:
        if len(words) > 1 or not all(word.isdecimal() for word in words):
            raise CommandError("write /compact, or /compact N to keep the last N turns as they are")
        entry = await self.session.compact(keep_turns=int(words[0]) if words else 0)
        summary = "nothing to summarize" if entry is None else one_line(entry.summary)
        self._tell(f"◆ {summary}")

    async def _tree(self, words: list[str]) -> None:
        if words not in ([], ["--all"]):
            raise CommandError("write /tree, or /tree --all to have nothing folded")
        store, session_id = self.sessions.store, self.session.id
        transcript = Transcript(await self.session.entries())
        print_tree(
            self.screen,
            await record_of(store, session_id),
            transcript,
            await self.session.leaf_id(),
            await forks_of(store, session_id, transcript),
            bool(words),
        )

    async def _status(self, words: list[str]) -> None:
        remote = remote_of(self.sessions.client, self.place)
        told = await told_of(remote, self.sessions.store, self.place)
        print_status(self.screen, told, in_place=False)

    async def _help(self, words: list[str]) -> None:
        for line in _HELP.splitlines():
            name, _, what = line.partition("   ")
            if self.screen.columns is not None and self.screen.columns < 60 and what:
                self._tell(name)
                self._tell(f"  {what.strip()}")
            else:
                self._tell(line)

    def _tell(self, line: str) -> None:
        self.screen.line(self.screen.styled(self.screen.fit(line), "magenta"))
