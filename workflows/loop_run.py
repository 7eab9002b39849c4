"""A run of an agent that brings a loop of its own: one activity, which stores what the loop yields.

While it is at work the workflow cannot continue as new. It need not: of all that happens in the
loop, history has only that something did, in batches that become rarer as they become many.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError

from perdure import names
from perdure.protocol import EventRecord, LoopReply, RunLoop
from perdure.protocol.said import SHOWN
from perdure.workflows.agent_run import AgentRun
from perdure.workflows.failures import WORKFLOW_CANCELLED, CommandFailed, reason_of
from perdure.workflows.run_errors import CANCELLED
from perdure.workflows.summaries import loop_summary
from perdure.workflows.timing import LOOKING, LOOP, LOOP_ATTEMPTS


class LoopRun(AgentRun):
    """A run in progress whose loop is not the workflow's. It is one step."""

    _loop: workflow.ActivityHandle[LoopReply] | None = None

    @property
    def can_be_joined(self) -> bool:
        """Never: what goes to its model next is the loop's own matter."""
        return False

    def cancel(self) -> None:
        """Stop the loop; what it has stored stays."""
        super().cancel()
        if self._loop is not None:
            self._loop.cancel()

    async def _turn(self) -> bool:
        self._stop_if_cancelled()
        self._stream.heard = self._hear
        try:
            reply = await self._run_loop()
        finally:
            self._stream.heard = None
        self._take_over(reply)
        if self.is_cancelled:
            raise CommandFailed(CANCELLED)
        if workflow.cancellation_reason() is not None:
            raise CommandFailed(WORKFLOW_CANCELLED)
        if reply.error is not None:
            raise CommandFailed(reply.error)
        return True

    async def _run_loop(self) -> LoopReply:
        request = self._request()
        self._loop = workflow.start_activity(
            names.RUN_LOOP,
            request,
            result_type=LoopReply,
            summary=loop_summary(self._run),
            # What the loop has stored by then is part of the session.
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            **LOOP,
        )
        try:
            reply = await self._loop
        except ActivityError as failure:
            if workflow.cancellation_reason() is not None:
                raise
            reply = await self._look(request)
            reply.error = reason_of(failure)
            self._history.add_activities()
        finally:
            self._loop = None
        self._history.add_turn(0)
        return reply

    async def _look(self, request: RunLoop) -> LoopReply:
        """How far the loop got that nobody can tell of."""
        reply: LoopReply = await workflow.execute_activity(
            names.RUN_LOOP,
            request.model_copy(update={"only_look": True}),
            result_type=LoopReply,
            summary="where did it stop?",
            **LOOKING,
        )
        return reply

    def _request(self) -> RunLoop:
        run, state = self._run, self._state
        return RunLoop(
            session_id=state.session_id,
            leaf_id=state.leaf_id,
            agent=run.agent,
            run_id=run.run_id,
            start_id=run.start_id,
            input_count=run.input_count,
            ephemeral=run.ephemeral,
            stream=run.stream,
            max_turns=run.max_turns,
            next_index=run.next_index,
            attempts=LOOP_ATTEMPTS,
            excerpts=not state.hides_text,
        )

    def _hear(self, event: EventRecord) -> None:
        """Note the turn while the loop runs, for whoever asks for the status."""
        if event.run_id == self._run.run_id:
            self._run.turn = max(self._run.turn, event.turn)

    def _take_over(self, reply: LoopReply) -> None:
        run, state = self._run, self._state
        state.leaf_id = state.tip_id = reply.leaf_id
        state.said = [*state.said, *reply.said][-SHOWN:]
        state.turns += reply.turns
        state.usage = state.usage + reply.usage
        run.turn, run.usage, run.restarts = reply.turns, reply.usage, reply.restarts
        self._script.next_index = reply.next_index
        self._history.add_messages(reply.batches)
        self._publish(reply.events)
