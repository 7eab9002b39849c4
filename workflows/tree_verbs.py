"""Branch and fork: the verbs that move about in the tree."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

from perdure import names
from perdure.errors import InvalidSessionIdError
from perdure.protocol import (
    BranchCommand,
    CopiedPath,
    CopyPath,
    ErrorInfo,
    FindEntry,
    ForkCommand,
    FoundEntry,
    LifecycleEvent,
    SessionState,
)
from perdure.session_id import check_session_id, tenant_of, workflow_id
from perdure.workflows.failures import CommandFailed
from perdure.workflows.lifecycle import Lifecycle
from perdure.workflows.timing import COPYING, LOADING
from perdure.workflows.tracing import current


async def branch(command: BranchCommand, state: SessionState, lifecycle: Lifecycle) -> None:
    """Move the leaf to a stored entry, and that is all. Raises CommandFailed, with nothing
    moved.
    """
    found = await _require_entry(state, command.entry_id, excerpts=not state.hides_text)
    from_id, state.leaf_id = state.leaf_id, command.entry_id
    state.context_tokens = 0
    state.said = found.said
    await lifecycle.publish(
        LifecycleEvent(
            type="session_branched",
            session_id=state.session_id,
            from_id=from_id,
            leaf_id=state.leaf_id,
        )
    )


async def fork(command: ForkCommand, state: SessionState, lifecycle: Lifecycle) -> None:
    """Copy the path into a new session and start its workflow, which then is on its own.

    Raises CommandFailed when the ID is none or taken, or there is no path to copy; then nothing
    changed.
    """
    try:
        check_session_id(command.session_id)
    except InvalidSessionIdError as error:
        reason = ErrorInfo(type=type(error).__name__, message=str(error))
        raise CommandFailed(reason) from None
    leaf_id = state.leaf_id if command.at is None else command.at
    await _require_entry(state, leaf_id)
    if not leaf_id:
        raise CommandFailed(ErrorInfo(type="CommandError", message=_NO_PATH))
    if (await _find(command.session_id)).found:
        raise CommandFailed(_taken(command.session_id))
    # From here on a session of that ID is this fork's own, whichever attempt made it: that it was
    # absent is in history before the copy begins.
    await workflow.execute_activity(
        names.COPY_PATH,
        CopyPath(session_id=state.session_id, leaf_id=leaf_id, child_id=command.session_id),
        result_type=CopiedPath,
        summary=f"fork into {command.session_id}"[:120],
        **COPYING,
    )
    await lifecycle.publish(
        LifecycleEvent(
            type="session_forked", session_id=command.session_id, parent_id=state.session_id
        )
    )
    state.forks = [*state.forks, command.session_id][-SHOWN_FORKS:]
    await _start_child(command.session_id, state)


async def _start_child(child_id: str, state: SessionState) -> None:
    child = SessionState(
        session_id=child_id,
        agent=state.agent,
        max_history_events=state.max_history_events,
        max_history_events_in_run=state.max_history_events_in_run,
        max_command_bytes=state.max_command_bytes,
        idle_timeout=state.idle_timeout,
        forked_by=current(),
        parent_id=state.session_id,
    )
    try:
        await workflow.start_child_workflow(
            names.SESSION_WORKFLOW,
            child,
            id=workflow_id(child_id, tenant=tenant_of(workflow.info().workflow_id)),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            task_timeout=workflow.info().task_timeout,
            static_summary=f"perdure session {child_id}, a fork of {state.session_id}"[:200],
        )
    except WorkflowAlreadyStartedError:
        # Someone opened the child as soon as it was there.
        return


async def _require_entry(
    state: SessionState, entry_id: str, *, excerpts: bool = False
) -> FoundEntry:
    """Look the entry up; none is before the first."""
    if not entry_id:
        return FoundEntry(found=True)
    found = await _find(state.session_id, entry_id, excerpts=excerpts)
    if not found.found:
        raise CommandFailed(
            ErrorInfo(
                type="EntryNotFoundError",
                message=f"no entry {entry_id[:80]!r} in {state.session_id!r}; nothing changed",
            )
        )
    return found


async def _find(session_id: str, entry_id: str = "", *, excerpts: bool = False) -> FoundEntry:
    found: FoundEntry = await workflow.execute_local_activity(
        names.FIND_ENTRY,
        FindEntry(session_id=session_id, entry_id=entry_id, excerpts=excerpts),
        result_type=FoundEntry,
        summary=f"find entry {entry_id[:40]}" if entry_id else f"find session {session_id}"[:120],
        **LOADING,
    )
    return found


SHOWN_FORKS = 5
"""How many of a session's forks are shown to people who look on: the last ones."""

_NO_PATH = "the leaf is before the first entry; there is no path to fork"


def _taken(session_id: str) -> ErrorInfo:
    return ErrorInfo(
        type="SessionExistsError",
        message=f"session {session_id!r} exists already; open it, or fork into another ID",
    )
