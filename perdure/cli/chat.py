"""`perdure chat`: a conversation in a terminal, or with a pipe.

What is typed and what is awaited take turns: the event loop only runs while something is awaited,
so that a prompt is an ordinary one.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from typing import Any

from perdure.cli.asking import ask, show_question
from perdure.cli.chat_commands import QUIT, ChatCommands
from perdure.cli.chat_history import said_before, show_history
from perdure.cli.connection import answers, check_store, sessions_of
from perdure.cli.console import Console
from perdure.cli.entry_lines import plural
from perdure.cli.failures import FAILED, INTERRUPTED
from perdure.cli.place import Place
from perdure.cli.run_lines import RunPrinter, event_json, failure_json
from perdure.cli.screen import Screen, err, one_line, out
from perdure.cli.watching_run import WatchedRun
from perdure.client import Sessions
from perdure.entries import Entry
from perdure.errors import CommandError, PerdureError, RunCancelledError, ToolArgumentsError
from perdure.protocol import PendingApproval, Status
from perdure.run import Run, RunEvent
from perdure.session import Session
from perdure.transcript import Transcript

_PROMPT = "> "


def chat(place: Place, *, agent: str | None, as_json: bool) -> int:
    """Talk to the session until the input ends; answer with the exit status, which is 1 when a
    message from a pipe was not answered.

    Raises ServerError, StoreError, and CommandError when the session has no agent.
    """
    with asyncio.Runner() as runner:
        sessions, session, status = runner.run(_opened(place, agent))
        conversation = Conversation(runner, sessions, session, place, as_json=as_json)
        with contextlib.suppress(EOFError):
            conversation.greet(status)
            while True:
                conversation.turn()
        return conversation.ended()


async def _opened(place: Place, agent: str | None) -> tuple[Sessions, Session, Status]:
    sessions = await sessions_of(place)
    session = await sessions.open(place.session_id, agent=agent, instance=place.instance)
    await check_store(sessions, place)
    status = await session.status()
    if status.agent is None:
        raise CommandError("the session has no agent yet; name the one to talk to with --agent")
    return sessions, session, status


class Conversation:
    """A session, and the terminal or the pipe of whoever talks to it."""

    def __init__(
        self,
        runner: asyncio.Runner,
        sessions: Sessions,
        session: Session,
        place: Place,
        *,
        as_json: bool,
    ) -> None:
        self._runner = runner
        self._session = session
        self._client = sessions.client
        self._is_missed = False
        self._as_json = as_json
        self._screen, self._asides = out(), err()
        self._console = Console(self._screen, self._asides)
        # JSON has standard output for itself.
        told = self._asides if as_json else self._screen
        self._commands = ChatCommands(sessions, session, place, told)
        self._has_failed = False

    def greet(self, status: Status) -> None:
        """Show the conversation so far, and join the run that is going on, if one is."""
        if not self._console.is_interactive or self._as_json:
            return  # what a pipe says waits its turn
        doing, joined = status.doing, None
        if doing is not None and doing.verb == "run":
            joined = WatchedRun(self._session, self._session.attach(doing.command_id))
        first = self._runner.run(_first(joined)) if joined is not None else None
        leaf_id = status.leaf_id if first is None else _start_of(first)
        entries = self._runner.run(_path(self._session, leaf_id))
        for said in said_before(entries):
            self._console.remember(said)
        self._say_hello(status, len(entries))
        show_history(self._screen, entries)
        if joined is not None:
            self._aside("a run is in progress; Ctrl-C cancels it", "dim")
            self._watch(joined, first, tells_input=True)

    def turn(self) -> None:
        """Take a line, and do what it says. Raises EOFError when there is none any more."""
        try:
            line = self._console.ask(_PROMPT if self._console.is_interactive else "")
        except KeyboardInterrupt:
            if not self._console.is_interactive:
                raise
            self._screen.line()
            self._aside("Ctrl-D leaves", "dim")
            return
        text = line.strip()
        if not text:
            return
        self._console.remember(text)
        try:
            if text == QUIT:
                raise EOFError
            if text.startswith("/") and not text.startswith("//"):
                self._runner.run(self._commands.do(text))
            else:
                self._say(text.removeprefix("/") if text.startswith("//") else text)
        except PerdureError as error:
            self._failed(error)
        except KeyboardInterrupt:
            if not self._console.is_interactive:
                raise
            self._aside("left to itself; /status shows what it does", "dim")

    def ended(self) -> int:
        """Say goodbye; the exit status."""
        if self._console.is_interactive:
            self._screen.line()
            self._screen.flush()
            return 0
        return FAILED if self._has_failed else 0

    def _say_hello(self, status: Status, entries: int) -> None:
        size = plural(entries, "entry", "entries")
        head = f"{one_line(self._session.id)} · {one_line(status.agent or '')} · {size}"
        self._screen.line(self._screen.styled(self._screen.fit(head), "bold"))
        for part in ("/help lists commands", "Ctrl-D leaves"):
            self._screen.line(self._screen.styled(self._screen.fit(part), "dim"))

    def _say(self, text: str) -> None:
        stream = self._screen.is_terminal and not self._as_json
        run: Run = self._runner.run(self._session.run(text, stream=stream))
        self._watch(WatchedRun(self._session, run))

    # ── a run ──────────────────────────────────────────────────────────────────────────────────

    def _watch(
        self, watched: WatchedRun, first: RunEvent | None = None, *, tells_input: bool = False
    ) -> None:
        """Show a run until it is over, however it ends. Raises EOFError when the person leaves."""
        printer = RunPrinter(
            self._session.id,
            self._screen,
            self._asides,
            tells_approvals=not self._console.is_interactive,
            tells_input=tells_input,
        )
        try:
            self._follow(watched, printer, first)
        except RunCancelledError:
            printer.aside("✗ cancelled", "dim")
            self._has_failed = True
        except PerdureError as error:
            printer.end_line()
            if self._as_json:
                self._screen.json(failure_json(watched.run.id, error))
            self._failed(error)
        finally:
            printer.end_line()

    def _follow(self, watched: WatchedRun, printer: RunPrinter, first: RunEvent | None) -> None:
        is_told = False
        asked: set[str] = set()
        while True:
            try:
                event, first = first or self._runner.run(watched.next()), None
                if event is not None:
                    self._show(event, printer)
                    question = event.approval if event.type == "approval_requested" else None
                else:
                    question, is_told = self._in_silence(watched, printer, is_told)
                if question is not None and question.call_digest not in asked:
                    asked.add(question.call_digest)
                    self._answer(watched, question, printer)
            except StopAsyncIteration:
                return
            except (KeyboardInterrupt, asyncio.CancelledError):
                # The latter when Ctrl-C came before the loop had begun with what it was given.
                if watched.is_cancelling or not self._console.is_interactive:
                    self._leave(watched, printer)
                self._runner.run(watched.cancel())

    def _show(self, event: RunEvent, printer: RunPrinter) -> None:
        if self._as_json:
            self._screen.json(event_json(event))
        else:
            printer.show(event)

    def _in_silence(
        self, watched: WatchedRun, printer: RunPrinter, is_told: bool
    ) -> tuple[PendingApproval | None, bool]:
        """What a run waits for that says nothing: a person, or the end of another run."""
        if watched.is_cancelling or not self._console.is_interactive:
            return None, is_told
        status = self._runner.run(watched.status())
        if status is None:
            if not self._is_missed and not self._runner.run(answers(self._client)):
                self._is_missed = True
                printer.aside("the Temporal server does not answer; trying again", "dim")
            return None, is_told
        self._is_missed = False
        doing = status.doing
        if doing is not None and doing.command_id != watched.run.id and not is_told:
            printer.aside(f"a {doing.verb} is in progress; this one waits its turn", "dim")
            return None, True
        waiting = (each for each in status.approvals if each.run_id == watched.run.id)
        return next(waiting, None), is_told

    def _leave(self, watched: WatchedRun, printer: RunPrinter) -> None:
        printer.end_line()
        watch = shlex.join(["perdure", "log", self._session.id, "--follow"])
        self._aside(f"perdure: the run goes on; watch it with `{watch}`", "dim")
        raise SystemExit(INTERRUPTED)

    # ── an approval ────────────────────────────────────────────────────────────────────────────

    def _answer(self, watched: WatchedRun, question: PendingApproval, printer: RunPrinter) -> None:
        """Have the person answer, if there is one. Raises EOFError when they leave instead; the
        call goes on waiting.
        """
        if not self._console.is_interactive:
            return
        printer.end_line()
        screen = self._asides if self._as_json else self._screen
        arguments = self._runner.run(_whole_arguments(self._session, question))
        show_question(screen, question, arguments)
        while True:
            try:
                answer = ask(self._console, screen, arguments)
            except EOFError:
                screen.line()
                self._aside("the call goes on waiting", "dim")
                raise
            try:
                self._runner.run(
                    self._session.approve(
                        question,
                        answer.approved,
                        reason=answer.reason,
                        arguments=answer.arguments,
                    )
                )
            except ToolArgumentsError as error:
                self._failed(error)
            except CommandError:
                self._aside("it does not wait any more: somebody else has answered", "dim")
                return
            else:
                return

    # ── what is said beside it ─────────────────────────────────────────────────────────────────

    def _failed(self, error: PerdureError) -> None:
        self._has_failed = True
        self._aside(f"✗ {one_line(str(error))}", "red", cut=False)

    def _aside(self, line: str, style: str, *, cut: bool = True) -> None:
        screen: Screen = self._asides
        screen.line(screen.styled(screen.fit(line) if cut else line, style))
        screen.flush()


async def _first(watched: WatchedRun) -> RunEvent | None:
    """The first event of a run, unless it takes long, or the run is over before it has one."""
    with contextlib.suppress(StopAsyncIteration):
        return await watched.next()
    return None


def _start_of(first: RunEvent) -> str:
    """The leaf that the run goes on from."""
    return first.entries[0].parent_id if first.entries else first.leaf_id


async def _path(session: Session, leaf_id: str) -> list[Entry]:
    """The conversation up to a leaf, as people read it."""
    transcript = Transcript(await session.entries())
    return transcript.transcript_view(leaf_id) if leaf_id else []


async def _whole_arguments(session: Session, approval: PendingApproval) -> dict[str, Any]:
    """The arguments of the call, from the log where the approval only has their beginning."""
    if not approval.is_cut:
        return approval.arguments
    for entry in reversed(await session.entries()):
        for call in getattr(getattr(entry, "message", None), "tool_calls", ()):
            if call.id == approval.tool_call_id:
                arguments: dict[str, Any] = call.arguments
                return arguments
    return approval.arguments
