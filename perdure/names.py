"""Every name that is written into Temporal: permanent once released, so all of them live here."""

from __future__ import annotations

from typing import Final

TASK_QUEUE: Final = "perdure"
"""The task queue that workers poll and clients use unless told otherwise."""

SESSION_WORKFLOW: Final = "perdure.session"

ACTIVITY_PREFIX: Final = "perdure."
"""What the names of all activities start with."""

OPEN_SESSION: Final = "perdure.open_session"
START_RUN: Final = "perdure.start_run"
APPEND_ENTRIES: Final = "perdure.append_entries"
CALL_MODEL: Final = "perdure.call_model"
RUN_TOOL: Final = "perdure.run_tool"
CHECK_ARGUMENTS: Final = "perdure.check_arguments"
RUN_LOOP: Final = "perdure.run_loop"
FIND_ENTRY: Final = "perdure.find_entry"
COPY_PATH: Final = "perdure.copy_path"
SUMMARIZE: Final = "perdure.summarize"
LIST_TOOLS: Final = "perdure.list_tools"
READ_ANSWER: Final = "perdure.read_answer"
PUBLISH: Final = "perdure.publish"

OPEN: Final = "open"
WAIT: Final = "wait"
STATUS: Final = "status"
STATUS_TOLD: Final = "StatusTold"

RUN: Final = "run"
APPEND: Final = "append"
BRANCH: Final = "branch"
FORK: Final = "fork"
COMPACT: Final = "compact"
CANCEL: Final = "cancel"
APPROVE: Final = "approve"
CLOSE: Final = "close"


TRACE_HEADER: Final = "_tracer-data"
"""The header that the SDK's tracing uses, in every language."""

OBSERVE: Final = "perdure.observe"
"""Under which name a workflow finds the worker that observes it; it is in no history."""

LIFECYCLE_TOPIC: Final = "lifecycle"
"""The stream topic that carries what happens to a session outside its runs."""


STREAM_PUBLISH: Final = "__temporal_workflow_stream_publish"
STREAM_OFFSET: Final = "__temporal_workflow_stream_offset"
"""The SDK's names for the signal that publishes to a workflow's stream from outside, and for the
query of its length."""


SESSION_STATUS: Final = "SessionStatus"
SESSION_TURNS: Final = "SessionTurns"
SESSION_PARENT: Final = "SessionParent"
SESSION_AGENT: Final = "SessionAgent"
"""The search attributes of a session's workflow: how it stands, how often its model was asked, the
session that it is a fork or a sub-agent of, and who serves it."""

METADATA: Final = "__temporal_workflow_metadata"
"""The SDK's name for the query with which the Temporal UI asks what a workflow tells of itself."""


def run_topic(run_id: str) -> str:
    """The stream topic that carries one run's events."""
    return f"run:{run_id}"
