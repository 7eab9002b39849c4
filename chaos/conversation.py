"""One client's talk with one session: verbs at random, and every answer written down."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from temporalio.service import RPCError

from chaos.journal import Journal
from chaos.tools import BREAK, CHARGE, LOOK_UP, REFUND
from chaos.words import question, unique_word
from chaos.worker import AGENT, QUEUE
from perdure.client import Sessions
from perdure.entries import Entry, text
from perdure.errors import PerdureError, ServerError
from perdure.names import APPEND, BRANCH, CANCEL, COMPACT, FORK, RUN
from perdure.protocol import AppendCommand, WhenBusy
from perdure.remote import RemoteSession
from perdure.run import Run
from perdure.session import Session, new_command
from perdure.session_id import workflow_id

_MOST_AT_ONCE = 3
"""Runs of one client that may be under way in one session."""

_ENTRIES_TO_RETURN_TO = 40

SENT_TWICE = "command sent twice at once"
DISCONNECTED = "client disconnected from a run"
"""Faults that clients make by themselves."""


class Conversation:
    """What a client does in a session. The first word of everything that it sends is its own."""

    def __init__(
        self,
        sessions: Sessions,
        session_id: str,
        journal: Journal,
        *,
        seed: str,
        is_owner: bool,
        pause: float,
    ) -> None:
        self.session_id = session_id
        self._sessions = sessions
        self._journal = journal
        self._chance = random.Random(seed)
        self._is_owner = is_owner
        self._pause = pause
        self._session: Session | None = None
        self._watching: set[asyncio.Task[None]] = set()
        self._asking_after: list[str] = []
        self._seen: list[str] = []
        self._children: list[str] = []
        self._verbs: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (6, self._run),
            (8, self._run_with_tools),
            (3, self._steer),
            (1, self._continue),
            (3, self._send_twice),
            (3, self._append),
            (2, self._append_by_signal_and_update),
            (3, self._branch),
            (2, self._fork),
            (1, self._compact),
            (3, self._cancel),
            (3, self._signal),
            (1, self._reopen),
        ]
        if self.may_end:
            self._verbs.append((2, self._close))

    @property
    def may_end(self) -> bool:
        """Whether the session's workflow may end before its sessions does, by `close` or by force.
        What is sent twice may then be done twice, so nothing is.
        """
        return may_end(self.session_id)

    def ask_after(self, run_id: str) -> None:
        """A run that an earlier client of this number began, and did not hear the end of."""
        self._asking_after.append(run_id)

    async def go_on(self, stop: asyncio.Event) -> None:
        """Talk until told to stop."""
        approving = asyncio.create_task(self._approve_what_waits())
        weights = [weight for weight, _ in self._verbs]
        if not self._is_owner:
            await self._rest(stop)
        await self._try("open", self._open)
        for run_id in self._asking_after:
            self._watch(self._opened.attach(run_id), "attached")
        while not stop.is_set():
            [(_, verb)] = self._chance.choices(self._verbs, weights)
            await self._try(verb.__name__.removeprefix("_"), verb)
            while len(self._watching) >= _MOST_AT_ONCE and not stop.is_set():
                await asyncio.wait(self._watching, timeout=0.5)
            await self._rest(stop)
        self._approving = approving

    async def end(self, deadline: float) -> None:
        """Hear the end of all that was begun; then the session has to answer once more."""
        began = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * deadline):
                while self._watching:
                    await asyncio.wait(self._watching)
        late = len(self._watching)
        self._journal.note(
            "all heard", session=self.session_id, late=late, seconds=time.monotonic() - began
        )
        for session_id in [self.session_id, *self._children[-2:]] if self._is_owner else ():
            await self._last_run(session_id, deadline)
        self._approving.cancel()
        for watching in self._watching:
            watching.cancel()

    async def _last_run(self, session_id: str, deadline: float) -> None:
        asked = question()
        began = time.monotonic()
        self._journal.note("intent", session=session_id, verb=RUN, texts=[asked])
        answer = ""
        try:
            async with asyncio.timeout(deadline):
                session = await self._sessions.open(session_id, agent=AGENT)
                answer = (await (await session.run(asked)))[-1].text
        except (PerdureError, TimeoutError) as error:
            self._journal.note("last run failed", session=session_id, error=_named(error))
        self._journal.note(
            "last run", session=session_id, answer=answer, seconds=time.monotonic() - began
        )

    async def _rest(self, stop: asyncio.Event) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), self._chance.expovariate(1 / self._pause))

    async def _try(self, what: str, act: Callable[[], Awaitable[None]]) -> None:
        """Do something; what perdure refuses is an answer too, anything else is its fault."""
        try:
            await act()
        except PerdureError as error:
            self._journal.note("refused", session=self.session_id, verb=what, error=_named(error))
        except Exception as error:  # noqa: BLE001 - that nothing else comes is what is checked
            self._journal.note("leaked", session=self.session_id, verb=what, error=_named(error))

    # ── verbs ──────────────────────────────────────────────────────────────────────────────────

    async def _open(self) -> None:
        self._session = await self._sessions.open(self.session_id, agent=AGENT)

    async def _reopen(self) -> None:
        await self._open()

    @property
    def _opened(self) -> Session:
        if self._session is None:
            raise PerdureError("it could not be opened yet")
        return self._session

    async def _run(self) -> None:
        await self._begin(question())

    async def _run_with_tools(self) -> None:
        tools = self._chance.choices(
            [CHARGE, LOOK_UP, REFUND, BREAK], [5, 5, 1, 1], k=self._chance.randint(1, 3)
        )
        await self._begin(question(tools, self._chance.randint(1, 3)))

    async def _steer(self) -> None:
        await self._begin(question(), when_busy="steer")

    async def _continue(self) -> None:
        await self._begin()

    async def _begin(self, *asked: str, when_busy: WhenBusy = "queue") -> None:
        run_id = unique_word()
        self._note_run(run_id, list(asked))
        await self._session_or_open()
        run = await self._opened.run(
            *asked, run_id=run_id, when_busy=when_busy, stream=self._chance.random() < 0.3
        )
        self._watch(run, self._chance.choice(["events", "events", "messages", "disconnect"]))

    def _note_run(self, run_id: str, asked: list[str]) -> None:
        self._journal.note("intent", session=self.session_id, verb=RUN, texts=asked, command=run_id)
        self._journal.note("run sent", session=self.session_id, command=run_id)

    async def _session_or_open(self) -> None:
        if self._session is None:
            await self._open()

    async def _send_twice(self) -> None:
        if self.may_end:
            return
        run_id, asked = unique_word(), question([CHARGE])
        self._note_run(run_id, [asked])
        await self._session_or_open()
        session = self._opened
        self._journal.note("fault", fault=SENT_TWICE, session=self.session_id)
        sent = await asyncio.gather(
            session.run(asked, run_id=run_id),
            self._later(lambda: session.run(asked, run_id=run_id)),
            return_exceptions=True,
        )
        for run in sent:
            if isinstance(run, Run):
                self._watch(run, "events")
            elif isinstance(run, BaseException):
                raise run

    async def _later(self, call: Callable[[], Awaitable[Any]]) -> Any:
        await asyncio.sleep(self._chance.choice([0.0, 0.0, 0.05, 0.5]))
        return await call()

    async def _append(self) -> None:
        given = [f"ask {unique_word()}" for _ in range(self._chance.randint(1, 3))]
        self._journal.note("intent", session=self.session_id, verb=APPEND, texts=given)
        await self._session_or_open()
        stored = await self._opened.append(*given)
        self._note_receipt(stored, via="append")

    async def _append_by_signal_and_update(self) -> None:
        """One command, over two ways at once."""
        if self.may_end:
            return
        asked = f"ask {unique_word()}"
        command_id = unique_word()
        self._journal.note("intent", session=self.session_id, verb=APPEND, texts=[asked])
        await self._session_or_open()
        self._journal.note("fault", fault=SENT_TWICE, session=self.session_id)
        entry = text(asked).model_dump(mode="json", by_alias=True)
        lines = [{"type": entry["type"], "message": entry["message"]}]
        command = new_command(AppendCommand, command_id=command_id, entries=lines)
        remote = RemoteSession(self._sessions.client, workflow_id(self.session_id), QUEUE)

        async def update() -> None:
            outcome = await remote.outcome(command_id, await remote.send(command))
            self._journal.note(
                "command ended",
                session=self.session_id,
                command=command_id,
                leaf=outcome.leaf_id,
                start=outcome.start_id,
                error=outcome.error.type if outcome.error else "",
            )

        signal = {"command_id": command_id, "entries": lines}
        await asyncio.gather(self._later(update), self._send_signal(APPEND, signal))

    async def _branch(self) -> None:
        await self._session_or_open()
        await self._opened.branch(self._known_entry())

    async def _fork(self) -> None:
        child, at = f"{self.session_id}~{unique_word()}", None
        if self._chance.random() < 0.5:
            at = self._known_entry() or None
        self._journal.note("fork sent", session=self.session_id, child=child, entry=at)
        await self._session_or_open()
        await self._opened.fork(child, at=at)
        self._journal.note("forked", session=self.session_id, child=child, entry=at)
        self._children.append(child)

    async def _compact(self) -> None:
        await self._session_or_open()
        entry = await self._opened.compact(keep_turns=self._chance.randint(0, 2))
        if entry is not None:
            self._note_receipt([entry], via="compact")

    async def _cancel(self) -> None:
        await self._session_or_open()
        await asyncio.sleep(self._chance.expovariate(4))
        await self._opened.cancel()

    async def _close(self) -> None:
        await self._session_or_open()
        await self._opened.close()

    async def _signal(self) -> None:
        """Fire and forget, as from another SDK or the Temporal UI."""
        verb = self._chance.choice([RUN, RUN, APPEND, BRANCH, FORK, COMPACT, CANCEL])
        value: Any = None
        if verb == RUN:
            value = question([LOOK_UP])
        elif verb == APPEND:
            value = f"ask {unique_word()}"
        elif verb == BRANCH:
            value = self._known_entry()
        elif verb == FORK:
            value = f"{self.session_id}~{unique_word()}"
            self._journal.note("fork sent", session=self.session_id, child=value, entry=None)
        elif verb == COMPACT:
            value = 1
        if verb in (RUN, APPEND):
            self._journal.note("intent", session=self.session_id, verb=verb, texts=[value])
            if self._chance.random() < 0.5:
                value = {"command_id": unique_word(), "entries": value}
        await self._session_or_open()
        await self._send_signal(verb, value)

    async def _send_signal(self, verb: str, value: Any) -> None:
        """By Temporal's own client. What the server says when it has no time is no news."""
        handle = self._sessions.client.get_workflow_handle(workflow_id(self.session_id))
        # One that has no ID may have arrived all the same, and must not be sent again.
        for _ in range(5 if isinstance(value, dict) else 1):
            try:
                await handle.signal(verb, value)
            except RPCError:
                await asyncio.sleep(0.1)
            else:
                self._journal.note("signal sent", session=self.session_id, verb=verb)
                return

    async def _approve_what_waits(self) -> None:
        """A person who looks in every second, and says yes more often than no."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.5, 1.5))
            if self._session is None:
                continue
            with suppress(PerdureError):
                for waiting in await self._session.approvals():
                    agreed = self._chance.random() < 0.7
                    if agreed:
                        self._journal.note(
                            "approved", session=self.session_id, call=waiting.tool_call_id
                        )
                    with suppress(PerdureError):
                        await self._session.approve(waiting, agreed, reason="chaos says no")

    # ── what is told ───────────────────────────────────────────────────────────────────────────

    def _watch(self, run: Run, how: str) -> None:
        task = asyncio.create_task(self._try(f"watch: {how}", lambda: self._hear(run, how)))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _hear(self, run: Run, how: str) -> None:
        """Note a run's receipts, and its end."""
        watch = ""
        if how == "disconnect":
            run = await self._heard_in_part(run)
        elif how == "messages":
            with suppress(PerdureError):
                await run.messages()
        while how != "messages":
            watch = unique_word()
            try:
                async for event in run:
                    self._note_receipt(event.entries, via="event", run=run.id, watch=watch)
            except ServerError as error:
                self._journal.note(
                    "refused", session=self.session_id, verb="listen", error=_named(error)
                )
                continue
            except PerdureError:
                pass  # a run may fail; what it told of counts all the same
            break
        outcome = await run.outcome()
        self._journal.note(
            "run ended",
            session=self.session_id,
            command=run.id,
            status=outcome.status,
            watch=watch,
            start=outcome.start_id,
            leaf=outcome.leaf_id,
            error=outcome.error.type if outcome.error else "",
            says=outcome.error.message if outcome.error else "",
        )

    async def _heard_in_part(self, run: Run) -> Run:
        """Stop listening after a few events; whoever asks again gets them from the first."""
        watch = unique_word()
        left = self._chance.randint(0, 4)
        with suppress(PerdureError):
            async for event in run:
                self._note_receipt(event.entries, via="event", run=run.id, watch=watch)
                left -= 1
                if left <= 0:
                    break
        self._journal.note("fault", fault=DISCONNECTED, session=self.session_id)
        return self._opened.attach(run.id)

    def _note_receipt(
        self, entries: list[Entry], *, via: str, run: str = "", watch: str = ""
    ) -> None:
        if not entries:
            return
        lines = [entry.model_dump(mode="json", by_alias=True) for entry in entries]
        self._journal.note(
            "receipt", session=self.session_id, via=via, run=run, watch=watch, entries=lines
        )
        self._seen = [*self._seen, *(entry.id for entry in entries)][-_ENTRIES_TO_RETURN_TO:]

    def _known_entry(self) -> str:
        return self._chance.choice(self._seen) if self._seen else ""


def may_end(session_id: str) -> bool:
    """Whether the workflow of the session may end during the run."""
    return int(session_id.rpartition("-")[2]) % 3 == 2


def _named(error: BaseException) -> str:
    cause = error.__cause__
    status = f" ({cause.status.name})" if isinstance(cause, RPCError) else ""
    return f"{type(error).__name__}: {error}{status}"[:500]
