"""A run from its beginning to its end: the fleet, and what happens to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import WorkflowExecution, WorkflowHistory
from temporalio.service import RPCError
from temporalio.worker import Replayer

from chaos.conversation import may_end
from chaos.fleet import Fleet, Place, Size
from chaos.journal import Journal
from chaos.schedule import Fault, Kind, schedule
from chaos.weather import CALM, Forecast, Weather
from perdure.plugin import PerdurePlugin
from perdure.session_id import workflow_id
from perdure.stores import MemoryStore

_LONGEST_OUTAGE = 4.0
"""Seconds that the server may be away; clients give up after a minute."""

_A_DAY = 86_400.0

_REPLAYED = 200
"""About so many runs of workflows are replayed, of all that there were."""


class Conductor:
    """Lets the faults of a schedule strike a fleet."""

    def __init__(self, folder: Path, size: Size, seed: int, seconds: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "journals").mkdir()
        self._journal = Journal(folder / "journals", "conductor")
        self._forecast = Forecast(folder)
        self._fleet = Fleet(folder, size, seed, self._journal)
        self._seconds = seconds
        self._faults = schedule(seed, seconds)
        self._weather: list[Fault] = []

    async def run(self) -> None:
        """Let it all happen, and let it come to an end. What is to be checked is in the folder."""
        self._journal.note("begun", wall=_wall_time())
        try:
            await self._fleet.start()
            await self._strike_all()
            self._forecast.change(CALM)
            self._journal.note("calm")
            ended_well = await self._fleet.end_clients()
            self._journal.note("clients ended", well=ended_well)
            await self._read_histories()
        finally:
            await self._fleet.end()
            self._journal.note("ended", wall=_wall_time())

    async def _strike_all(self) -> None:
        began = time.monotonic()
        striking: set[asyncio.Task[None]] = set()
        for fault in self._faults:
            await asyncio.sleep(max(0.0, began + fault.at - time.monotonic()))
            striking.add(asyncio.create_task(self._strike(fault)))
        await asyncio.sleep(max(0.0, began + self._seconds - time.monotonic()))
        await asyncio.gather(*striking)

    async def _strike(self, fault: Fault) -> None:
        fleet = self._fleet
        match fault.kind:
            case Kind.KILL_WORKER:
                await self._at(fleet.workers, fault, self._kill)
            case Kind.KILL_CLIENT:
                await self._at(fleet.clients, fault, self._kill)
            case Kind.KILL_SERVER:
                await self._at([fleet.server], fault, self._kill)
            case Kind.RESTART_WORKER:
                await self._at(fleet.workers, fault, self._restart)
            case Kind.RESTART_SERVER:
                await self._at([fleet.server], fault, self._restart)
            case Kind.FREEZE_WORKER:
                await self._at(fleet.workers, fault, self._freeze)
            case Kind.FREEZE_CLIENT:
                await self._at(fleet.clients, fault, self._freeze)
            case Kind.FREEZE_SERVER:
                await self._at([fleet.server], fault, self._freeze)
            case Kind.CLOCK_JUMP:
                await self._move_a_clock(fault)
            case Kind.TORN_APPEND:
                self._forecast.ask_for_a_torn_append()
            case Kind.TERMINATE_WORKFLOW:
                await self._terminate_a_workflow(fault)
            case _:
                await self._change_the_weather(fault)

    async def _at(
        self, places: Sequence[Place], fault: Fault, act: Callable[[Place, Fault], Awaitable[None]]
    ) -> None:
        """Strike one of these that nothing happens to at the moment, if there is one."""
        free = [place for place in places if not place.struck.locked() and place.is_there]
        if not free:
            return
        place = free[fault.target % len(free)]
        async with place.struck:
            self._journal.note("fault", fault=fault.kind, place=place.name)
            await act(place, fault)

    async def _kill(self, place: Place, fault: Fault) -> None:
        place.pause = min(fault.seconds, _LONGEST_OUTAGE)
        await place.there.kill()

    async def _restart(self, place: Place, fault: Fault) -> None:
        place.pause = 0.0
        await place.there.terminate(10.0)

    async def _freeze(self, place: Place, fault: Fault) -> None:
        # Long enough, often, to be taken for dead: that is after four seconds.
        process = place.there
        process.freeze()
        longest = _LONGEST_OUTAGE if place is self._fleet.server else 10.0
        await asyncio.sleep(min(1.5 * fault.seconds, longest))
        process.thaw()

    async def _move_a_clock(self, fault: Fault) -> None:
        clocks = [clock for clock in self._fleet.clocks if clock is not None]
        if not clocks:
            return
        clock = clocks[fault.target % len(clocks)]
        self._journal.note("fault", fault=fault.kind)
        clock.set((2 * fault.strength - 1) * 2 * _A_DAY)
        await asyncio.sleep(fault.seconds)
        clock.set(0.0)

    async def _terminate_a_workflow(self, fault: Fault) -> None:
        ids = [session_id for session_id in self._fleet.session_ids if may_end(session_id)]
        if not ids:
            return
        session_id = ids[fault.target % len(ids)]
        with suppress(RPCError, RuntimeError):
            client = await self._fleet.temporal.connect()
            handle = client.get_workflow_handle(workflow_id(session_id))
            await handle.terminate("chaos")
            self._journal.note("fault", fault=fault.kind, session=session_id)

    async def _change_the_weather(self, fault: Fault) -> None:
        self._weather.append(fault)
        self._forecast.change(self._now())
        await asyncio.sleep(fault.seconds)
        self._weather.remove(fault)
        self._forecast.change(self._now())

    def _now(self) -> Weather:
        weather = CALM
        for fault in self._weather:
            weather = weather.with_fault(fault)
        return weather

    async def _read_histories(self) -> None:
        """Note which workflow tasks failed, in all runs of all sessions, and replay some runs."""
        client = await self._fleet.temporal.connect()
        executions = [execution async for execution in client.list_workflows()]
        step = len(executions) // _REPLAYED + 1
        replayer = Replayer(workflows=[], plugins=[PerdurePlugin(agents=[], store=MemoryStore())])
        replayed = 0
        for number, execution in enumerate(executions):
            handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
            history = await handle.fetch_history()
            self._note_failed_tasks(execution, history)
            if number % step == 0 and _has_begun(history):
                replayed += 1
                try:
                    await replayer.replay_workflow(history)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
                    self._journal.note(
                        "replay failed", workflow=execution.id, says=str(error)[:500]
                    )
        self._journal.note("histories read", runs=len(executions), replayed=replayed)

    def _note_failed_tasks(self, execution: WorkflowExecution, history: WorkflowHistory) -> None:
        for event in history.events:
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                failed = event.workflow_task_failed_event_attributes
                self._journal.note(
                    "task failed",
                    workflow=execution.id,
                    run=execution.run_id,
                    cause=WorkflowTaskFailedCause.Name(failed.cause),
                    says=failed.failure.message[:500],
                )


def _has_begun(history: WorkflowHistory) -> bool:
    """Whether there is a first step; a replay would wait for it."""
    return any(
        event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED for event in history.events
    )


def _wall_time() -> str:
    return datetime.now(UTC).isoformat()
