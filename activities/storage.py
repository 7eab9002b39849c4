"""Store calls, as the workflow's short local activities."""

from __future__ import annotations

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry, model_of
from perdure.activities.failures import as_failure
from perdure.codec import entry_from_json
from perdure.errors import PerdureError, SessionExistsError, SessionNotFoundError
from perdure.protocol import (
    AppendEntries,
    FindEntry,
    FoundEntry,
    LoadedSession,
    OpenSession,
    RunPlan,
    StartRun,
)
from perdure.stores.contract import Store
from perdure.transcript_cache import Transcripts


class StoreActivities:
    """Open, append, and the check that a run can start. Each may be repeated: the store adds
    nothing twice.
    """

    def __init__(self, store: Store, agents: AgentRegistry, transcripts: Transcripts) -> None:
        self._store = store
        self._agents = agents
        self._transcripts = transcripts

    @activity.defn(name=names.OPEN_SESSION)
    async def open_session(self, request: OpenSession) -> LoadedSession:
        """Load the session, or create it; when another opener creates it in between, resume
        theirs.
        """
        try:
            return await self._open(request.session_id)
        except PerdureError as error:
            raise as_failure(error) from None

    async def _open(self, session_id: str) -> LoadedSession:
        try:
            return await self._resumed(session_id)
        except SessionNotFoundError:
            pass
        try:
            await self._store.create_session(session_id)
        except SessionExistsError:
            return await self._resumed(session_id)
        return LoadedSession(created=True)

    async def _resumed(self, session_id: str) -> LoadedSession:
        return LoadedSession(leaf_id=(await self._transcripts.latest(session_id)).leaf_id)

    @activity.defn(name=names.FIND_ENTRY)
    async def find_entry(self, request: FindEntry) -> FoundEntry:
        """Whether the log holds the entry; without an entry ID, whether there is such a session."""
        try:
            transcript = await self._transcripts.holding(request.session_id, request.entry_id)
        except SessionNotFoundError:
            return FoundEntry(found=False)
        except PerdureError as error:
            raise as_failure(error) from None
        return FoundEntry(found=not request.entry_id or request.entry_id in transcript)

    @activity.defn(name=names.APPEND_ENTRIES)
    async def append_entries(self, request: AppendEntries) -> None:
        """Store entries with the IDs that the workflow gave them, so that a repetition is a
        no-op.
        """
        try:
            await self._append(request)
        except PerdureError as error:
            raise as_failure(error) from None

    @activity.defn(name=names.START_RUN)
    async def start_run(self, request: StartRun) -> RunPlan:
        """Check that the agent's loop can start; only then store the run's input."""
        try:
            agent = self._agents.find(request.agent or "")
            model = model_of(agent)
            await self._append(request)
        except PerdureError as error:
            raise as_failure(error) from None
        return RunPlan(
            model=model.name,
            max_turns=agent.max_turns,
            compact_at_tokens=agent.compact_at_tokens,
        )

    async def _append(self, request: AppendEntries) -> None:
        entries = [entry_from_json(entry) for entry in request.entries]
        await self._store.append_entries(request.session_id, entries)
        self._transcripts.add(request.session_id, entries)
