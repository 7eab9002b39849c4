"""The ordinary loop of a run: the model, its tools, the model again, until it has nothing more
to do.
"""

from __future__ import annotations

import asyncio

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
    PlannedCall,
    RunCommand,
    RunPlan,
    RunTool,
    SessionState,
    StartRun,
    ToolReply,
)
from perdure.run_events import EventScript
from perdure.usage import Usage
from perdure.workflows.failures import ActivityFailure, reason_of
from perdure.workflows.log import SessionLog
from perdure.workflows.run_stream import RunStream
from perdure.workflows.summaries import model_summary, tool_summary
from perdure.workflows.timing import MODEL, STORING, tool_timing

INTERRUPTED = "tool execution interrupted"
"""What the model reads when a tool's worker died and the tool may not run again."""


class RunStopped(Exception):
    """The run in progress cannot go on."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.error = error


class AgentRun:
    """A run in progress, turn by turn. Its whole position is in `ActiveRun`, so any worker can
    go on with it.
    """

    def __init__(
        self, run: ActiveRun, state: SessionState, log: SessionLog, stream: RunStream
    ) -> None:
        self._run = run
        self._state = state
        self._log = log
        self._stream = stream
        self._script = EventScript(run.run_id, run.start_id, run.input_count, run.next_index)

    @classmethod
    async def start(
        cls, command: RunCommand, state: SessionState, log: SessionLog, stream: RunStream
    ) -> AgentRun:
        """Check that the loop can start, then store the input. Raises RunStopped, with nothing
        stored.
        """
        if state.agent is None:
            raise RunStopped(_NO_AGENT)
        stamped = log.stamp(command.command_id, command.entries)
        if not stamped.leaf_id and not stamped.ephemeral:
            raise RunStopped(_NOTHING_TO_SAY)
        request = StartRun(session_id=state.session_id, agent=state.agent, entries=stamped.stored)
        try:
            plan = await workflow.execute_local_activity(
                names.START_RUN, request, result_type=RunPlan, **STORING
            )
        except ActivityFailure as error:
            raise RunStopped(reason_of(error)) from error
        state.active = ActiveRun(
            run_id=command.command_id,
            agent=state.agent,
            model=plan.model,
            max_turns=plan.max_turns,
            start_id=state.leaf_id,
            input_count=len(stamped.stored),
            ephemeral=stamped.ephemeral,
        )
        log.advance(stamped)
        run = cls(state.active, state, log, stream)
        run._publish(run._script.started(stamped.stored, state.leaf_id))
        return run

    async def turn(self) -> Outcome | None:
        """One call of the model and the tools that it asks for. Answers with the outcome when
        the run is over.
        """
        run = self._run
        try:
            if run.turn >= run.max_turns:
                raise RunStopped(_too_many_turns(run.max_turns))
            run.turn += 1
            self._state.turns += 1
            self._publish(self._script.turn_started(run.turn))
            reply = await self._call_model()
            [entry] = await self._log.append(run.run_id, [_message_entry(reply.message)])
            self._publish(self._script.replied(run.turn, entry))
            await self._run_calls(reply.calls)
        except RunStopped as stop:
            return self.stopped(stop.error)
        except ActivityFailure as failure:
            return self.stopped(reason_of(failure))
        self._publish(self._script.turn_ended(run.turn))
        if reply.calls:
            return None
        self._publish(self._script.ended(run.turn, self._state.leaf_id, run.usage))
        return self._outcome(None)

    def stopped(self, error: ErrorInfo) -> Outcome:
        """The run ends here, with this error."""
        self._publish(self._script.failed(self._run.turn, self._state.leaf_id, error))
        return self._outcome(error)

    async def _call_model(self) -> ModelReply:
        run = self._run
        request = CallModel(
            session_id=self._state.session_id,
            leaf_id=self._state.leaf_id,
            agent=run.agent,
            run_id=run.run_id,
            turn=run.turn,
            ephemeral=run.ephemeral,
        )
        reply: ModelReply = await workflow.execute_activity(
            names.CALL_MODEL,
            request,
            result_type=ModelReply,
            summary=model_summary(run),
            **MODEL,
        )
        usage = Usage.model_validate(reply.message.get("usage") or {})
        run.usage = run.usage + usage
        self._state.usage = self._state.usage + usage
        return reply

    async def _run_calls(self, calls: list[PlannedCall]) -> None:
        """Run the calls side by side; each result is stored as it arrives."""
        for call in calls:
            self._publish(self._script.tool_started(self._run.turn, call))
        endings = await asyncio.gather(
            *(self._run_call(call) for call in calls), return_exceptions=True
        )
        for ending in endings:
            if isinstance(ending, BaseException):
                raise ending

    async def _run_call(self, call: PlannedCall) -> None:
        run = self._run
        request = RunTool(
            session_id=self._state.session_id, agent=run.agent, run_id=run.run_id, call=call
        )
        try:
            reply: ToolReply = await workflow.execute_activity(
                names.RUN_TOOL,
                request,
                result_type=ToolReply,
                summary=tool_summary(call),
                **tool_timing(call.timeout, call.idempotent),
            )
            message = reply.message
        except ActivityFailure:
            message = _interrupted(call)
        [entry] = await self._log.append(run.run_id, [_message_entry(message)])
        self._publish(self._script.tool_ended(run.turn, entry))

    def _publish(self, events: list[EventRecord]) -> None:
        self._stream.publish(events)
        self._run.next_index = self._script.next_index

    def _outcome(self, error: ErrorInfo | None) -> Outcome:
        run = self._run
        return Outcome(
            command_id=run.run_id,
            verb="run",
            status="done" if error is None else "failed",
            start_id=run.start_id,
            leaf_id=self._state.leaf_id,
            tip_id=self._state.tip_apart,
            input_count=run.input_count,
            turns=run.turn,
            usage=run.usage,
            error=error,
        )


def _message_entry(message: MessageJson) -> EntryJson:
    return {"type": "message", "message": message}


def _interrupted(call: PlannedCall) -> MessageJson:
    return {
        "role": "tool_result",
        "content": [{"type": "text", "text": INTERRUPTED}],
        "tool_call_id": call.id,
        "tool_name": call.name,
        "is_error": True,
    }


_NO_AGENT = ErrorInfo(
    type="UnknownAgentError",
    message="the session has no agent; open it with one (`agent=…`) to run it",
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
