"""Compaction: a summary takes the place of what lies before it on the path."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import workflow

from perdure import names
from perdure.protocol import EntryJson, LifecycleEvent, SessionState, Summarize, Summary
from perdure.workflows.lifecycle import Lifecycle
from perdure.workflows.log import SessionLog
from perdure.workflows.summaries import compaction_summary
from perdure.workflows.timing import MODEL


async def compact(
    state: SessionState,
    log: SessionLog,
    lifecycle: Lifecycle,
    *,
    command_id: str,
    agent: str,
    keep_turns: int = 0,
    prompt: str | None = None,
    hold: Callable[[workflow.ActivityHandle[Summary]], None] = lambda _: None,
) -> EntryJson | None:
    """Have the path summarized and append the summary, if there was something to summarize.

    Nothing is deleted: a branch to before it gives the whole conversation back. Raises what the
    failed activity raised; then nothing was appended. `hold` is given the model's call, for
    whoever may want to cancel it.
    """
    request = Summarize(
        session_id=state.session_id,
        leaf_id=state.leaf_id,
        agent=agent,
        keep_turns=keep_turns,
        prompt=prompt,
    )
    summarizing = workflow.start_activity(
        names.SUMMARIZE,
        request,
        result_type=Summary,
        summary=compaction_summary(keep_turns, state),
        **MODEL,
    )
    hold(summarizing)
    summary = await summarizing
    if summary.usage is not None:
        state.usage = state.usage + summary.usage
    if not summary.text:
        return None
    compaction: EntryJson = {
        "type": "compaction",
        "summary": summary.text,
        "first_kept_id": summary.first_kept_id,
        "tokens_before": summary.tokens_before,
    }
    [entry] = await log.append(command_id, [compaction])
    state.context_tokens = 0
    await lifecycle.publish(
        LifecycleEvent(
            type="session_compacted",
            session_id=state.session_id,
            entry=entry,
            leaf_id=state.leaf_id,
        )
    )
    return entry
