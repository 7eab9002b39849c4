"""The model calls of a run, and the room that a conversation needs for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from perdure import names
from perdure.protocol import (
    ActiveRun,
    CallModel,
    EntryJson,
    MessageJson,
    ModelReply,
    PlannedCall,
    SessionState,
)
from perdure.usage import Usage
from perdure.workflows.compaction import compact
from perdure.workflows.failures import ActivityFailure, CommandFailed, reason_of
from perdure.workflows.history import HistoryLength
from perdure.workflows.lifecycle import Lifecycle
from perdure.workflows.log import SessionLog, message_entry
from perdure.workflows.run_errors import CANCELLED
from perdure.workflows.summaries import model_summary
from perdure.workflows.timing import MODEL


class ModelCalls:
    """Asks the model, once a turn; and where the conversation has become too long for it, has it
    summarized.
    """

    def __init__(
        self,
        run: ActiveRun,
        state: SessionState,
        log: SessionLog,
        lifecycle: Lifecycle,
        history: HistoryLength,
    ) -> None:
        self._run = run
        self._state = state
        self._log = log
        self._lifecycle = lifecycle
        self._history = history
        self._asked: workflow.ActivityHandle[Any] | None = None

    def cancel(self) -> None:
        """Interrupt the call that is under way."""
        if self._asked is not None:
            self._asked.cancel()

    async def make_room(self) -> None:
        """Compact when the last call came near to what the agent allows. If that fails, go on."""
        limit = self._run.compact_at_tokens
        if limit is None or self._state.context_tokens < limit:
            return
        await self._compact()
        # Not again before the next call has told how large the conversation is now.
        self._state.context_tokens = 0

    async def next_message(self) -> ModelReply:
        """The model's message. A conversation that is too long for it is compacted and sent again,
        once, if the agent compacts by itself; raises the failure of the call otherwise.
        """
        try:
            return await self._call(0)
        except ActivityError as failure:
            if reason_of(failure).type != _TOO_LONG or self._run.compact_at_tokens is None:
                raise
            self._history.add_activities()
            if not await self._compact():
                raise
        return await self._call(1)

    async def stored(self, reply: ModelReply) -> EntryJson:
        """The entry of the answer, as the log has it: the new leaf."""
        body = message_entry(reply.message)
        if reply.stored is None:
            [entry] = await self._log.append(self._run.run_id, [body])
            return entry
        return self._log.found(body, reply.stored)

    async def _call(self, number: int) -> ModelReply:
        run = self._run
        request = CallModel(
            session_id=self._state.session_id,
            leaf_id=self._state.leaf_id,
            agent=run.agent,
            run_id=run.run_id,
            turn=run.turn,
            stream=run.stream,
            place=run.watched_place(number),
            output=run.output,
            ephemeral=run.ephemeral,
            tools=run.tools,
        )
        self._asked = calling = workflow.start_activity(
            names.CALL_MODEL,
            request,
            result_type=ModelReply,
            summary=model_summary(run, self._state),
            # So that a call which is cancelled can hand over what it has of the answer.
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            **MODEL,
        )
        try:
            reply: ModelReply = await calling
        finally:
            self._asked = None
        reply.calls = _with_arguments(reply.calls, reply.message)
        self._history.add_turn(len(reply.calls))
        self._history.add_messages(reply.batches)
        self._count(Usage.model_validate(reply.message.get("usage") or {}))
        return reply

    def _count(self, usage: Usage) -> None:
        self._run.usage = self._run.usage + usage
        self._state.usage = self._state.usage + usage
        if usage != Usage():
            self._state.context_tokens = _tokens(usage)

    async def _compact(self) -> bool:
        """Whether the conversation was compacted; why not is told until the run succeeds."""
        try:
            entry = await compact(
                self._state,
                self._log,
                self._lifecycle,
                command_id=self._run.run_id,
                agent=self._run.agent,
                hold=self._hold,
            )
        except ActivityFailure as failure:
            entry = None
            if not self._run.is_cancelled:
                self._state.last_error = reason_of(failure)
        finally:
            self._asked = None
        self._history.add_activities()
        if self._run.is_cancelled:
            raise CommandFailed(CANCELLED)
        return entry is not None

    def _hold(self, call: workflow.ActivityHandle[Any]) -> None:
        self._asked = call


_TOO_LONG = "ContextOverflowError"


def _with_arguments(calls: Sequence[PlannedCall], message: MessageJson) -> list[PlannedCall]:
    """The calls with the arguments that the message has for them."""
    blocks = [block for block in message.get("content") or [] if block.get("type") == "tool_call"]
    ours = [block for block in blocks if not block.get("server")]
    return [
        call.model_copy(update={"arguments": block.get("arguments") or {}})
        for call, block in zip(calls, ours, strict=True)
    ]


def _tokens(usage: Usage) -> int:
    """What the model was sent and said: the size of the conversation by now."""
    return usage.input + usage.cache_read + usage.cache_write + usage.output
