"""Loops of one's own: each run of one is one activity, which stores what the loop yields."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.activities.loop_log import LoopLog
from perdure.activities.loop_telling import LoopTelling
from perdure.agent import Agent
from perdure.codec import entry_from_json
from perdure.entries import MessageEntry
from perdure.errors import LoopError, MaxTurnsError, PerdureError
from perdure.loops.protocol import Loop, LoopContext, LoopOutput, name_of
from perdure.messages import Message, Role
from perdure.models.protocol import Delta
from perdure.protocol import ErrorInfo, LoopReply, RunLoop
from perdure.stores.contract import Store
from perdure.transcript import Transcript
from perdure.transcript_cache import Transcripts

_YIELDED = frozenset({Role.ASSISTANT.value, Role.TOOL_RESULT.value})


class LoopActivities:
    """Runs loops. Each message is stored before watchers hear of it, and before the loop goes
    on.
    """

    def __init__(
        self, store: Store, agents: AgentRegistry, transcripts: Transcripts, heart: Heart
    ) -> None:
        self._store = store
        self._agents = agents
        self._transcripts = transcripts
        self._heart = heart

    @activity.defn(name=names.RUN_LOOP)
    async def run_loop(self, request: RunLoop) -> LoopReply:
        """Where the loop has got to when it ended, failed or was cancelled.

        When a worker died in it, the next attempt first looks for what was stored, and goes on
        from there or, if the loop says so, from the beginning.
        """
        async with self._heart.beating():
            try:
                if request.only_look:
                    return _reply(await self._last_log(request))
                return await self._run(request)
            except PerdureError as error:
                raise as_failure(error) from None

    async def _run(self, request: RunLoop) -> LoopReply:
        agent = self._agents.find(request.agent)
        loop = agent.loop
        if loop is None:
            raise LoopError(f"agent {agent.name!r} of this worker brings no loop")
        restarts = activity.info().attempt - 1 if loop.on_crash == "restart" else 0
        is_first = activity.info().attempt == 1
        log = LoopLog(request, self._store, self._transcripts, restarts)
        if not is_first:
            await log.follow()
        error: PerdureError | None = None
        telling = LoopTelling(request, log, agent.stream_interval)
        async with telling.live:
            if not is_first:
                telling.stored()
            context = _context(request, agent, log, await log.transcript())
            try:
                await _drive(loop, context, log, telling, request.max_turns)
            except PerdureError as failure:
                error = failure
            except asyncio.CancelledError:
                # What a cancelled run has stored is handed over; one that is interrupted because
                # the worker stops is taken over by another.
                details = activity.cancellation_details()
                if details is None or not details.cancel_requested:
                    raise
        reply = _reply(log)
        reply.turns, reply.next_index = telling.turn, telling.next_index
        reply.events, reply.batches = telling.rest(), telling.live.batches
        if request.excerpts:
            reply.said = log.said
        if error is not None:
            reply.error = ErrorInfo(type=type(error).__name__, message=str(error))
        return reply

    async def _last_log(self, request: RunLoop) -> LoopLog:
        """The log of the last attempt that stored anything."""
        for restarts in range(request.attempts - 1, -1, -1):
            log = LoopLog(request, self._store, self._transcripts, restarts)
            await log.follow()
            if log.leaf_id != request.leaf_id:
                break
        return log


async def _drive(
    loop: Loop, context: LoopContext, log: LoopLog, telling: LoopTelling, max_turns: int
) -> None:
    """Let the loop run to its end. Raises PerdureError, and nothing else of whatever it raises."""
    name = name_of(loop)
    try:
        async with _closing(loop.run(context)) as outputs:
            async for output in outputs:
                if isinstance(output, Delta):
                    telling.written(output)
                    continue
                _check(name, output)
                if output.role == Role.ASSISTANT and log.turns >= max_turns:
                    raise _too_many_turns(max_turns)
                await log.append(output)
                telling.stored()
    except PerdureError:
        raise
    except Exception as error:
        # Which kind it was is said, its text is not: it may hold what must not reach history.
        activity.logger.exception(f"the loop {name} raised")
        raise LoopError(f"{name} raised {type(error).__name__}; see the worker's log") from error


@contextlib.asynccontextmanager
async def _closing(outputs: AsyncIterator[LoopOutput]) -> AsyncIterator[AsyncIterator[LoopOutput]]:
    """The outputs of a loop, which is closed at the end, if it can be."""
    try:
        yield outputs
    finally:
        close = getattr(outputs, "aclose", None)
        if close is not None:
            await close()


def _check(name: str, output: object) -> None:
    if not isinstance(output, Message):
        raise LoopError(f"{name} yielded {type(output).__name__}; a loop yields Message and Delta")
    if output.role not in _YIELDED:
        raise LoopError(
            f"{name} yielded a message of role {output.role!r}; "
            "a loop yields those of 'assistant' and 'tool_result'"
        )


def _context(request: RunLoop, agent: Agent, log: LoopLog, transcript: Transcript) -> LoopContext:
    ephemeral = [entry_from_json(entry) for entry in request.ephemeral]
    return LoopContext(
        session_id=request.session_id,
        run_id=request.run_id,
        transcript=transcript,
        start_id=request.start_id,
        leaf_id=log.leaf_id,
        input_count=request.input_count,
        ephemeral=[entry for entry in ephemeral if isinstance(entry, MessageEntry)],
        instructions=agent.instructions,
        stream=request.stream,
        attempt=activity.info().attempt,
    )


def _reply(log: LoopLog) -> LoopReply:
    return LoopReply(
        leaf_id=log.leaf_id,
        turns=log.turns,
        next_index=log.next_index,
        usage=log.usage,
        restarts=log.restarts,
    )


def _too_many_turns(limit: int) -> MaxTurnsError:
    return MaxTurnsError(
        f"the run stopped after {limit} turns (the agent's max_turns); "
        "run again without input to let it go on"
    )
