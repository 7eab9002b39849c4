"""The whole demo: a server, a worker, the story, the verdict, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from perdure.client import Sessions
from perdure.codec import dumps_json
from perdure.demo.checks import Check, Evidence, verdict
from perdure.demo.crew import Crew
from perdure.demo.endings import guarded, until_terminated, until_told
from perdure.demo.folder import Folder, Progress
from perdure.demo.journal import Event, Journal, Note
from perdure.demo.model_choice import ModelChoice
from perdure.demo.questions import SESSION_ID
from perdure.demo.story import QUESTIONS, Story
from perdure.demo.telling import Telling
from perdure.demo.tools import mailed
from perdure.dev_server import NAMESPACE, DevServer, dev_server, temporal_binary
from perdure.errors import DemoError, PerdureError
from perdure.session import Session
from perdure.session_id import workflow_id
from perdure.stores.files import FileStore


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line."""

    folder: Folder
    model: ModelChoice
    keep: bool
    as_json: bool
    command: str
    """How this demo is started again."""


class Show:
    """One performance of the demo."""

    def __init__(self, options: Options, telling: Telling, lock: int) -> None:
        self._options = options
        self._folder = options.folder
        self._telling = telling
        self._lock = lock
        self._journal = Journal(options.folder.journal)
        self._started_at = time.monotonic()
        self._resumes = False

    async def run(self) -> bool:
        """Give it. Answers whether all checks held.

        Raises DemoError when it cannot go on, ServerMissingError or ServerError without a server.
        """
        temporal_binary()
        given = self._prepare()
        async with self._server() as server, self._crew(server) as crew:
            sessions = Sessions(server.client, FileStore(self._folder.sessions), tenant="")
            story = Story(sessions, self._folder, crew, self._journal, self._telling, given)
            session = await self._told(story, crew, server)
            checks = await self._judge(session, given)
            self._folder.save(self._progress("ended"))
            await self._say_where(session, checks, server)
            if self._options.keep:
                await until_told(self._telling)
        return all(check.passed is not False for check in checks)

    # ── beginning ──────────────────────────────────────────────────────────────────────────────

    def _prepare(self) -> bytes:
        earlier = self._folder.progress()
        mine = self._progress("running")
        self._resumes = earlier == mine
        self._telling.title("perdure demo: a session runs, dies and resumes")
        if self._resumes:
            self._telling.remark(
                "The last demo in this folder was interrupted. This one goes on where it was, with "
                "the same log and the same database.",
                style="yellow",
            )
        else:
            if earlier is not None and earlier.state == "running":
                self._telling.remark(
                    f"The last demo here was interrupted; it ran with {earlier.model} "
                    f"(perdure {earlier.version}), so this one starts afresh.",
                    style="yellow",
                )
            self._folder.clear()
            self._folder.save(mine)
        self._journal.add(Note(Event.DEMO_STARTED, pid=os.getpid()))
        return self._folder.put_log()

    def _progress(self, state: Any) -> Progress:
        return Progress(state, self._options.model.spec, version("perdure"))

    @contextlib.asynccontextmanager
    async def _server(self) -> AsyncIterator[DevServer]:
        self._telling.step("A Temporal server, and a worker in a process of its own")
        starting = dev_server(database=self._folder.database, ui_port=0, pass_fds=(self._lock,))
        async with starting as server:
            self._telling.fact("server", f"{server.address}, database {self._folder.database}")
            self._telling.fact("UI", _workflow_page(server.ui_url))
            yield server

    @contextlib.asynccontextmanager
    async def _crew(self, server: DevServer) -> AsyncIterator[Crew]:
        model = self._options.model
        crew = Crew(
            self._folder, self._journal, model=model.spec, address=server.address, lock=self._lock
        )
        await crew.start()
        self._telling.fact("worker", f"number {crew.current}, process {crew.pid}")
        self._telling.fact(
            "model", f"{'a script' if model.is_script else model.spec}: {model.reason}"
        )
        try:
            yield crew
        finally:
            await crew.stop()

    async def _told(self, story: Story, crew: Crew, server: DevServer) -> Session:
        try:
            return await guarded(story.tell(), crew, server.client)
        except DemoError:
            raise
        except PerdureError:
            # The session remembers a run that failed as it remembers any other: going on would only
            # be told of the failure again.
            self._folder.save(self._progress("ended"))
            raise

    # ── end ────────────────────────────────────────────────────────────────────────────────────

    async def _judge(self, session: Session, given: bytes) -> list[Check]:
        checks = verdict(
            Evidence(
                given=given,
                log=self._folder.log.read_bytes(),
                notes=self._journal.notes(),
                mailed=len(mailed(self._folder.mailbox)),
                questions=QUESTIONS,
                is_scripted=self._options.model.is_script,
            )
        )
        self._telling.step("The log as a tree")
        self._telling.tree(await session.tree())
        self._telling.step("What the log and the journal prove")
        self._telling.checks(checks)
        return checks

    async def _say_where(self, session: Session, checks: list[Check], server: DevServer) -> None:
        seconds = time.monotonic() - self._started_at
        failed = [check.claim for check in checks if check.passed is False]
        self._telling.step(
            f"Done in {seconds:.0f} seconds"
            + (f", but not as promised: {'; '.join(failed)}" if failed else "")
        )
        self._telling.fact("log", str(self._folder.log))
        self._telling.fact("journal", str(self._folder.journal))
        if self._options.keep:
            self._telling.fact("UI", _workflow_page(server.ui_url))
            self._telling.fact("server", f"TEMPORAL_ADDRESS={server.address}")
        else:
            self._telling.fact("UI", f"{self._options.command} --keep, or with this database:")
            self._telling.command(
                f"{temporal_binary()} server start-dev --db-filename {self._folder.database}"
            )
            self._telling.command(f"open {_workflow_page('http://localhost:8233')}")
        if self._options.as_json:
            outcome = await self._outcome(session, checks, seconds)
            outcome |= {"server": server.address, "workflow_url": _workflow_page(server.ui_url)}
            print(dumps_json(outcome).decode(), flush=True)

    async def _outcome(
        self, session: Session, checks: list[Check], seconds: float
    ) -> dict[str, Any]:
        notes = self._journal.notes()
        killed = {note.worker for note in notes if note.event is Event.WORKER_KILLED}
        started = [note for note in notes if note.event is Event.WORKER_STARTED]
        return {
            "passed": all(check.passed is not False for check in checks),
            "resumed": self._resumes,
            "seconds": round(seconds, 1),
            "session_id": session.id,
            "leaf_id": await session.leaf_id(),
            "workflow_id": workflow_id(session.id),
            "model": self._options.model.spec,
            "log": str(self._folder.log),
            "journal": str(self._folder.journal),
            "database": str(self._folder.database),
            "workers": [
                {"number": note.worker, "pid": note.pid, "killed": note.worker in killed}
                for note in started
            ],
            "checks": [asdict(check) for check in checks],
        }


def perform(options: Options) -> bool:
    """Give the demo in its folder, which nobody else uses meanwhile. Answers whether all held.

    Raises DemoError, ServerMissingError or ServerError, in which case it can be started again; and
    KeyboardInterrupt, or SystemExit when it is told to end by SIGTERM.
    """
    telling = Telling(to_stderr=options.as_json)
    with options.folder.taken() as lock:
        show = Show(options, telling, lock)
        try:
            return asyncio.run(until_terminated(show.run()))
        except (KeyboardInterrupt, SystemExit):
            telling.remark("Interrupted. It goes on from here when it is started again:")
            telling.command(options.command)
            raise


def _workflow_page(ui_url: str) -> str:
    workflow = quote(workflow_id(SESSION_ID), safe="")
    return f"{ui_url}/namespaces/{NAMESPACE}/workflows/{workflow}"
