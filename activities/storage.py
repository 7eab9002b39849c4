"""Store calls, as the workflow's short local activities."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.appending import Appends
from perdure.activities.excerpts import is_enough, last_said
from perdure.activities.failures import as_failure
from perdure.activities.outputs import check_spec
from perdure.activities.seen_outside import Outside
from perdure.codec import entry_from_json
from perdure.entries import SessionRecord
from perdure.errors import (
    LoopError,
    PerdureError,
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
)
from perdure.loops.protocol import check_loop, name_of
from perdure.protocol import (
    Appended,
    AppendEntries,
    FindEntry,
    FoundEntry,
    LoadedSession,
    OpenSession,
    RunPlan,
    Said,
    SeenOutside,
    StartRun,
)
from perdure.stores.contract import Store
from perdure.transcript_cache import Transcripts

_ATTEMPT = 60.0
"""Seconds that the store has for one attempt."""


class StoreActivities:
    """Open, append, and the check that a run can start. Each may be repeated: the store adds
    nothing twice.
    """

    def __init__(
        self,
        store: Store,
        agents: AgentRegistry,
        transcripts: Transcripts,
        appends: Appends,
        outside: Outside,
    ) -> None:
        self._store = store
        self._agents = agents
        self._transcripts = transcripts
        self._appends = appends
        self._outside = outside

    @activity.defn(name=names.OPEN_SESSION)
    async def open_session(self, request: OpenSession) -> LoadedSession:
        """Load the session, or create it; when another opener creates it in between, resume
        theirs.
        """
        async with _attempt():
            seen = await self._outside.seen()
            loaded = await self._open(request.session_id, request.parent_id, seen)
            loaded.hides_text, loaded.has_attributes = seen.hides_text, seen.has_attributes
            return loaded

    async def _open(self, session_id: str, parent_id: str, seen: SeenOutside) -> LoadedSession:
        try:
            return await self._resumed(session_id, seen)
        except SessionNotFoundError:
            pass
        try:
            await self._store.create_session(session_id, parent_id)
        except SessionExistsError:
            return await self._resumed(session_id, seen)
        self._appends.saw_end(session_id, "")
        return LoadedSession(created=True)

    async def _resumed(self, session_id: str, seen: SeenOutside) -> LoadedSession:
        leaf_id = await self._transcripts.last_id(session_id)
        self._appends.saw_end(session_id, leaf_id)
        return LoadedSession(
            leaf_id=leaf_id,
            parent_id=await self._parent_of(session_id),
            said=[] if seen.hides_text else await self._said(session_id, leaf_id),
        )

    async def _said(self, session_id: str, leaf_id: str) -> list[Said]:
        if not leaf_id:
            return []
        return last_said(await self._transcripts.path(session_id, leaf_id, is_enough))

    async def _parent_of(self, session_id: str) -> str:
        """The session that it is a child of, where the store can tell."""
        load_session: Any = getattr(self._store, "load_session", None)
        if load_session is None:
            return ""
        try:
            record: SessionRecord = await load_session(session_id)
        except StoreError:  # it is wrapped in one that has more than it has itself
            return ""
        return record.parent_id

    @activity.defn(name=names.FIND_ENTRY)
    async def find_entry(self, request: FindEntry) -> FoundEntry:
        """Whether the log holds the entry; without an entry ID, whether there is such a session."""
        async with _attempt():
            try:
                if not request.entry_id:
                    await self._transcripts.last_id(request.session_id)
                    return FoundEntry(found=True)
                enough = is_enough if request.excerpts else bool
                path = await self._transcripts.path(request.session_id, request.entry_id, enough)
            except SessionNotFoundError:
                return FoundEntry(found=False)
        return FoundEntry(found=bool(path), said=last_said(path) if request.excerpts else [])

    @activity.defn(name=names.APPEND_ENTRIES)
    async def append_entries(self, request: AppendEntries) -> Appended:
        """Store entries with the IDs that the workflow gave them, so that a repetition is a
        no-op.
        """
        async with _attempt():
            return Appended(stored_at=await self._append(request))

    @activity.defn(name=names.START_RUN)
    async def start_run(self, request: StartRun) -> RunPlan:
        """Check that the agent's loop can start; only then store the run's input."""
        async with _attempt():
            agent = self._agents.find(request.agent or "")
            loop = agent.loop
            if loop is not None:
                await check_loop(loop)
            name = model_of(agent).name if loop is None else name_of(loop)
            if request.output is not None:
                if loop is not None:
                    raise LoopError(f"{name} is a loop, and answers as it likes; leave output out")
                check_spec(request.output)
            asks_servers = bool(agent.mcp) and not request.tools
            if asks_servers:
                request = request.model_copy(update={"entries": []})
            stored_at = await self._append(request)
            seen = await self._outside.seen()
        return RunPlan(
            stored_at=stored_at,
            model=name,
            max_turns=agent.max_turns,
            compact_at_tokens=agent.compact_at_tokens,
            is_loop=loop is not None,
            asks_servers=asks_servers,
            hides_text=seen.hides_text,
            has_attributes=seen.has_attributes,
        )

    async def _append(self, request: AppendEntries) -> dict[str, str]:
        entries = [entry_from_json(entry) for entry in request.entries]
        return await self._appends.add(request.session_id, entries)


@asynccontextmanager
async def _attempt() -> AsyncIterator[None]:
    """One attempt at something, which fails as the workflow understands it."""
    try:
        async with asyncio.timeout(_ATTEMPT) as deadline:
            yield
    except PerdureError as error:
        raise as_failure(error) from None
    except TimeoutError:
        if not deadline.expired():
            raise
        late = StoreError(f"the store did not answer within {_ATTEMPT:g} seconds")
        raise as_failure(late) from None
