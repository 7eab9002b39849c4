"""The ordinary loop of a run: the model, its tools, the model again, until it has nothing more
to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow

from perdure import names
from perdure.protocol import (
    ActiveRun,
    CallModel,
    EntryJson,
    ErrorInfo,
    EventRecord,
    MessageJson,
    ModelReply,
    Outcome,
    RunCommand,
    SessionState,
    StartRun,
)
from perdure.run_events import EventScript
from perdure.usage import Usage
from perdure.workflows.compaction import compact
from perdure.workflows.failures import ActivityFailure, CommandFailed, reason_of
from perdure.workflows.history import HistoryLength
from perdure.workflows.lifecycle import Lifecycle
from perdure.workflows.log import SessionLog
from perdure.workflows.run_start import start_run
from perdure.workflows.session_stream import SessionStream
from perdure.workflows.summaries import model_summary
from perdure.workflows.timing import MODEL
from perdure.workflows.tool_calls import ToolCalls


class AgentRun:
    """A run in progress, turn by turn. Its whole position is in `ActiveRun`, so any worker can go
    on with it.
    """

    def __init__(
        self,
        run: ActiveRun,
        state: SessionState,
        log: SessionLog,
        stream: SessionStream,
        lifecycle: Lifecycle,
        history: HistoryLength,
    ) -> None:
        self._run = run
        self._state = state
        self._log = log
        self._stream = stream
        self._lifecycle = lifecycle
        self._history = history
        self._script = EventScript(run.run_id, run.start_id, run.input_count, run.next_index)
        self._tools = ToolCalls(run, state, log, self._store_result)
        self._model_call: workflow.ActivityHandle[ModelReply] | None = None

    @classmethod
    async def start(
        cls,
        command: RunCommand,
        state: SessionState,
        log: SessionLog,
        stream: SessionStream,
        lifecycle: Lifecycle,
        history: HistoryLength,
    ) -> AgentRun:
        """Check that the loop can start, then store the input. Raises CommandFailed or what the
        failed activity raised, with nothing stored.
        """
        if state.agent is None:
            raise CommandFailed(NO_AGENT)
        stamped = log.stamp(command.command_id, command.entries)
        if not stamped.leaf_id and not stamped.ephemeral:
            raise CommandFailed(_NOTHING_TO_SAY)
        plan, tools = await start_run(
            StartRun(session_id=state.session_id, agent=state.agent, entries=stamped.stored),
            history,
        )
        state.active = ActiveRun(
            run_id=command.command_id,
            digest=command.digest(),
            agent=state.agent,
            model=plan.model,
            max_turns=plan.max_turns,
            compact_at_tokens=plan.compact_at_tokens,
            tools=tools,
            stream=command.stream,
            start_id=state.leaf_id,
            input_count=len(stamped.stored),
            ephemeral=stamped.ephemeral,
        )
        state.runs += 1
        stamped.date(plan)
        log.advance(stamped)
        run = cls(state.active, state, log, stream, lifecycle, history)
        run._publish(run._script.started(stamped.stored, state.leaf_id))
        return run

    @property
    def is_cancelled(self) -> bool:
        """Whether the run is to stop at the next opportunity."""
        return self._run.is_cancelled

    def cancel(self) -> None:
        """Stop the model call and the tools; the turn in progress then ends the run."""
        self._run.is_cancelled = True
        self._tools.cancel()
        if self._model_call is not None:
            self._model_call.cancel()

    async def join(self, command: RunCommand) -> None:
        """Store entries that are to steer the run; the model reads them at its next call."""
        start_id = self._state.leaf_id
        stamped = await self._log.append_all(command.command_id, command.entries)
        self._run.ephemeral = [*self._run.ephemeral, *stamped.ephemeral]
        self._publish(self._script.joined(self._run.turn, stamped.stored))
        self._run.joined = [
            *self._run.joined,
            Outcome(
                command_id=command.command_id,
                verb=command.verb,
                status="pending",
                digest=command.digest(),
                start_id=start_id,
                input_count=len(stamped.stored),
            ),
        ]

    async def turn(self) -> list[Outcome]:
        """One call of the model and the tools that it asks for.

        Answers with the outcomes, the run's and those of whoever joined it, when it is over.
        """
        try:
            is_over = await self._turn()
        except CommandFailed as failed:
            return self.stopped(failed.error)
        except ActivityFailure as failure:
            return self.stopped(CANCELLED if self.is_cancelled else reason_of(failure))
        if not is_over or self._state.steering:
            return []
        run = self._run
        self._publish(self._script.ended(run.turn, self._state.leaf_id, run.usage))
        return self._outcomes(None)

    def stopped(self, error: ErrorInfo) -> list[Outcome]:
        """The run ends here, with this error."""
        self._publish(self._script.failed(self._run.turn, self._state.leaf_id, error))
        return self._outcomes(error)

    async def _turn(self) -> bool:
        run = self._run
        self._stop_if_cancelled()
        if run.turn >= run.max_turns:
            raise CommandFailed(_too_many_turns(run.max_turns))
        await self._make_room()
        run.turn += 1
        self._state.turns += 1
        self._publish(self._script.turn_started(run.turn))
        reply = await self._call_model()
        [entry] = await self._log.append(run.run_id, [_message_entry(reply.message)])
        self._publish(self._script.replied(run.turn, entry))
        await self._run_calls(reply)
        self._publish(self._script.turn_ended(run.turn))
        self._stop_if_cancelled()
        return not reply.calls

    async def _make_room(self) -> None:
        """Compact when the last call came near to what the agent allows. If that fails, go on."""
        limit = self._run.compact_at_tokens
        if limit is None or self._state.context_tokens < limit:
            return
        try:
            await compact(
                self._state,
                self._log,
                self._lifecycle,
                command_id=self._run.run_id,
                agent=self._run.agent,
            )
        except ActivityFailure as failure:
            self._state.last_error = reason_of(failure)
        # Not again before the next call has told how large the conversation is now.
        self._state.context_tokens = 0
        self._stop_if_cancelled()

    async def _call_model(self) -> ModelReply:
        run = self._run
        request = CallModel(
            session_id=self._state.session_id,
            leaf_id=self._state.leaf_id,
            agent=run.agent,
            run_id=run.run_id,
            turn=run.turn,
            stream=run.stream,
            ephemeral=run.ephemeral,
            tools=run.tools,
        )
        self._model_call = workflow.start_activity(
            names.CALL_MODEL,
            request,
            result_type=ModelReply,
            summary=model_summary(run),
            # So that a call which is cancelled can hand over what it has of the answer.
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            **MODEL,
        )
        try:
            reply = await self._model_call
        finally:
            self._model_call = None
        self._history.add_turn(len(reply.calls))
        usage = Usage.model_validate(reply.message.get("usage") or {})
        run.usage = run.usage + usage
        self._state.usage = self._state.usage + usage
        if usage != Usage():
            self._state.context_tokens = _tokens(usage)
        return reply

    async def _run_calls(self, reply: ModelReply) -> None:
        for call in reply.calls:
            self._publish(self._script.tool_started(self._run.turn, call))
        await self._tools.run(reply.calls)

    async def _store_result(self, message: MessageJson) -> None:
        [entry] = await self._log.append(self._run.run_id, [_message_entry(message)])
        self._publish(self._script.tool_ended(self._run.turn, entry))

    def _stop_if_cancelled(self) -> None:
        if self.is_cancelled:
            raise CommandFailed(CANCELLED)

    def _publish(self, events: Sequence[EventRecord]) -> None:
        self._stream.publish(list(events))
        self._run.next_index = self._script.next_index

    def _outcomes(self, error: ErrorInfo | None) -> list[Outcome]:
        run, state = self._run, self._state
        own = Outcome(
            command_id=run.run_id,
            verb=names.RUN,
            status="pending",
            digest=run.digest,
            start_id=run.start_id,
            input_count=run.input_count,
        )
        end = {
            "status": "done" if error is None else "failed",
            "leaf_id": state.leaf_id,
            "tip_id": state.tip_apart,
            "turns": run.turn,
            "usage": run.usage,
            "error": error,
        }
        return [outcome.model_copy(update=end) for outcome in (own, *run.joined)]


def _tokens(usage: Usage) -> int:
    """What the model was sent and said: the size of the conversation by now."""
    return usage.input + usage.cache_read + usage.cache_write + usage.output


def _message_entry(message: MessageJson) -> EntryJson:
    return {"type": "message", "message": message}


NO_AGENT = ErrorInfo(
    type="UnknownAgentError",
    message="the session has no agent; open it with one (`agent=…`) to run it",
)

CANCELLED = ErrorInfo(
    type="RunCancelledError", message="the run was cancelled; run again to go on from its leaf"
)

_NOTHING_TO_SAY = ErrorInfo(
    type="CommandError", message="the session is empty; give the run something to answer"
)


def _too_many_turns(limit: int) -> ErrorInfo:
    return ErrorInfo(
        type="MaxTurnsError",
        message=f"the run stopped after {limit} turns (the agent's max_turns); "
        "run again without input to let it go on",
    )
