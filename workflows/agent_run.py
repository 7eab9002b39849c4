"""The ordinary loop of a run: the model, its tools, the model again, until it has nothing more
to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow

from perdure import names
from perdure.protocol import (
    ActiveRun,
    ErrorInfo,
    EventRecord,
    Outcome,
    RunCommand,
    SessionState,
    StartRun,
)
from perdure.protocol.observed import RunEnded, TurnEnded
from perdure.run_events import EventScript
from perdure.workflows.attributes import see_as, show_status
from perdure.workflows.failures import ActivityFailure, CommandFailed, reason_of
from perdure.workflows.history import HistoryLength
from perdure.workflows.inbox import failure
from perdure.workflows.lifecycle import Lifecycle
from perdure.workflows.log import SessionLog
from perdure.workflows.model_calls import ModelCalls
from perdure.workflows.outputs import no_output, told
from perdure.workflows.run_errors import (
    CANCELLED,
    NO_AGENT,
    NOTHING_TO_SAY,
    too_many_turns,
)
from perdure.workflows.run_start import start_run
from perdure.workflows.session_stream import SessionStream
from perdure.workflows.tool_calls import Answered, ToolCalls
from perdure.workflows.tracing import observe, traced

MAX_JOINED = 50
"""The most runs that may join one that is in progress; its position carries their outcomes."""


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
        answered: Answered,
    ) -> None:
        self._run = run
        self._state = state
        self._log = log
        self._stream = stream
        self._script = EventScript(run.run_id, run.start_id, run.input_count, run.next_index)
        self._history = history
        self._turn_began = 0.0
        self._model = ModelCalls(run, state, log, lifecycle, history)
        self.tools = ToolCalls(run, state, log, self._script, self._publish, history, answered)

    @classmethod
    async def start(
        cls,
        command: RunCommand,
        state: SessionState,
        log: SessionLog,
        stream: SessionStream,
        lifecycle: Lifecycle,
        history: HistoryLength,
        answered: Answered,
    ) -> AgentRun:
        """Check that the loop can start, then store the input. Raises CommandFailed or what the
        failed activity raised, with nothing stored.
        """
        if state.agent is None:
            raise CommandFailed(NO_AGENT)
        stamped = log.stamp(command.command_id, command.entries)
        if not stamped.leaf_id and not stamped.ephemeral:
            raise CommandFailed(NOTHING_TO_SAY)
        plan, tools = await start_run(
            StartRun(
                session_id=state.session_id,
                agent=state.agent,
                entries=stamped.stored,
                run_id=command.command_id,
                output=command.output,
            ),
            history,
        )
        see_as(state, plan)
        state.active = ActiveRun(
            run_id=command.command_id,
            digest=command.digest(),
            agent=state.agent,
            model=plan.model,
            max_turns=plan.max_turns,
            compact_at_tokens=plan.compact_at_tokens,
            is_loop=plan.is_loop,
            tools=tools,
            stream=command.stream,
            output=command.output,
            start_id=state.leaf_id,
            input_count=len(stamped.stored),
            ephemeral=stamped.ephemeral,
            **traced(command, plan, state.forked_by),
        )
        state.runs += 1
        show_status(state, "running")
        stamped.date(plan)
        log.advance(stamped)
        run = cls(state.active, state, log, stream, lifecycle, history, answered)
        run._publish(run._script.started(stamped.stored, state.leaf_id))
        return run

    @property
    def is_cancelled(self) -> bool:
        """Whether the run is to stop at the next opportunity."""
        return self._run.is_cancelled

    @property
    def can_be_joined(self) -> bool:
        """Whether entries that steer the run can be stored now, and the model will read them."""
        run = self._run
        return not run.calls and run.turn < run.max_turns and len(run.joined) < MAX_JOINED

    def cancel(self) -> None:
        """Stop the model call and the tools; the turn in progress then ends the run."""
        self._run.is_cancelled = True
        self._model.cancel()
        self.tools.cancel()

    async def join(self, command: RunCommand) -> None:
        """Store entries that are to steer the run; the model reads them at its next call."""
        start_id = self._state.leaf_id
        stamped = await self._log.append_all(command.command_id, command.entries)
        self._run.ephemeral = [*self._run.ephemeral, *stamped.ephemeral]
        self._publish(self._script.joined(self._run.turn, stamped.stored))
        if command.trace:
            self._run.links = [*self._run.links, command.trace]
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

        Answers with the outcomes, the run's and those of whoever joined it, when it is over. While
        calls wait for a person, and for nothing else, the turn stops half-way: taken up again, it
        goes on with them.
        """
        try:
            is_over = await self._turn()
        except CommandFailed as failed:
            return self.stopped(failed.error)
        except ActivityFailure as failure:
            return self.stopped(CANCELLED if self.is_cancelled else reason_of(failure))
        if not is_over or (self._state.steering and self.can_be_joined):
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
        faults = "" if run.calls else await self._ask()
        is_over = not run.calls and not faults
        await self.tools.run()
        if run.calls:
            return False
        self._publish(self._script.turn_ended(run.turn))
        if self._turn_began:  # else by the run of the workflow before this one
            observe(TurnEnded(run, self._turn_began, workflow.time()))
        self._stop_if_cancelled()
        if faults:
            await self._ask_again(faults)
        return is_over

    async def _ask(self) -> str:
        """Store what the model says next; the calls in it are open then. Answers with what is wrong
        with it, where an object was asked for.
        """
        run = self._run
        self._stop_if_cancelled()
        if run.turn >= run.max_turns:
            raise CommandFailed(too_many_turns(run.max_turns))
        await self._model.make_room()
        run.turn += 1
        self._turn_began = workflow.time()
        self._state.turns += 1
        self._publish(self._script.turn_started(run.turn))
        reply = await self._model.next_message()
        self._stream.publish(reply.events)
        # Before an append, because an answer is refused when no such call waits, and that must not
        # hang on the order of a message and the result of an append.
        self.tools.open(reply.calls)
        entry = await self._model.stored(reply)
        self._publish(self._script.replied(run.turn, entry))
        self.tools.announce()
        return reply.faults

    async def _ask_again(self, faults: str) -> None:
        """Tell the model what is wrong with its answer, if it has not been told too often."""
        run = self._run
        if run.output is None or run.output_faults >= run.output.retries:
            raise CommandFailed(no_output(run.output_faults + 1, faults))
        run.output_faults += 1
        [entry] = await self._log.append(run.run_id, [told(faults)])
        self._publish(self._script.joined(run.turn, [entry]))

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
            "restarts": run.restarts,
            "usage": run.usage,
            "error": error,
        }
        ends = [outcome.model_copy(update=end) for outcome in (own, *run.joined)]
        observe(RunEnded(run, ends[0], workflow.time()))
        if error is not None:
            proposals = [call.proposal for call in run.calls if call.proposal is not None]
            ends += [failure(proposal, error) for proposal in proposals]
        return ends
