"""The Temporal server and the clients, as far as a session can tell: one state, and what may come
next.

A state is plain data. A step is one thing that happens: a client sends, a worker does a workflow
task or an activity, a timer fires; or it is a fault, of which a scenario allows so many of a kind.
What cannot be told apart from the session's side is one step: a request that is lost is one that is
sent later, and a server that restarts is a pause.

A workflow task is done whole. What it sends to the server counts when it ends and not before, so a
worker that dies in it leaves nothing but what its local activities did to the store; the server has
the task done again, with what has arrived meanwhile. Nor does it count when a message arrives while
the workflow ends its run; that is the same, and not tried apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import (
    ActivityCancellationType,
    ScheduleLocalActivity,
    WorkflowCommand,
)
from temporalio.exceptions import CancelledError

from perdure import names
from perdure.protocol import (
    AppendCommand,
    CancelCommand,
    CloseCommand,
    CompactCommand,
    Errand,
    EventRecord,
    ForkCommand,
    Outcome,
    RunCommand,
    SessionState,
    WaitCommand,
)
from perdure.wire import Wire
from tests.model.processes import AGENT, Kept, Trouble, do, failure_of
from tests.model.workflow_run import (
    Recorded,
    TaskFailed,
    WorkflowRun,
    decisions,
    first_detail,
    first_job,
    json_payload,
)

SESSION = "explored"

Fed = tuple[bytes, tuple[WorkflowCommand, ...]]
"""An activation, and what the workflow made of it"""

Sent = RunCommand | AppendCommand | ForkCommand | CompactCommand | CancelCommand | CloseCommand


@dataclass(frozen=True, slots=True)
class Client:
    """Who sends these commands, each when the one before is answered; with `signals`, without
    waiting for an answer.
    """

    name: str
    commands: tuple[Sent, ...]
    signals: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Who sends what to one session, and how many faults of each kind may strike."""

    name: str
    clients: tuple[Client, ...]
    faults: tuple[tuple[str, int], ...] = ()
    renews: bool = True
    """Whether the workflow continues as new after every step, or never."""
    errand: RunCommand | None = None
    """What the session was started for, if it is a sub-agent's: it is in the state from the
    beginning"""
    opens_first: bool = True
    """Whether nobody sends before the session is open, as perdure's own clients do it."""

    @property
    def has_cancel(self) -> bool:
        """Whether somebody cancels, so that what was sent need not come to its end."""
        return any(isinstance(command, CancelCommand) for command in self.commands)

    @property
    def commands(self) -> list[Sent]:
        errands = [] if self.errand is None else [self.errand]
        return [*errands, *(command for client in self.clients for command in client.commands)]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client was told of a command: done, failed, or the name of a refusal."""

    command_id: str
    status: str
    error: str = ""
    leaf_id: str = ""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a client stands: which command is next or under way, and what it does about it."""

    place: int = 0
    doing: str = "sends"
    """sends, waits (for the answer to an update), asks (for the outcome, by `wait`)"""
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """An update that the current run of the workflow knows. The server gives the same ID the same
    answer.
    """

    id: str
    answer: tuple[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An activity that the server wants done; local ones the worker."""

    seq: int
    kind: str
    request: bytes
    attempt: int = 1
    attempts: int = 0
    """The most; 0: any number"""
    waits_for_cancel: bool = False
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """All that is the case. `broken` is what went wrong on the way here, if something did."""

    scenario: Scenario
    argument: bytes
    seats: tuple[Seat, ...]
    faults: tuple[tuple[str, int], ...]
    kept: Kept = ()
    journal: tuple[str, ...] = ()
    clock: int = 0
    run: int = 0
    history: tuple[Recorded, ...] = ()
    jobs: tuple[bytes, ...] = ()
    locals: tuple[Scheduled, ...] = ()
    activities: tuple[Scheduled, ...] = ()
    timers: tuple[int, ...] = ()
    updates: tuple[Update, ...] = ()
    children: tuple[str, ...] = ()
    receipts: tuple[str, ...] = ()
    seen: int = 0
    """How far a subscriber has read the stream"""
    is_open: bool = False
    is_over: bool = False
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that may happen, and what is the case then."""

    label: str
    world: World
    is_fault: bool = False


def first_world(scenario: Scenario) -> World:
    """The session's workflow was started, and has not run yet."""
    events = 1 if scenario.renews else 10_000
    state = SessionState(
        session_id=SESSION,
        agent=AGENT,
        max_history_events=events,
        max_history_events_in_run=events,
    )
    if scenario.errand is not None:
        run_id = scenario.errand.command_id
        state.inbox = [scenario.errand, CloseCommand(command_id="close")]
        state.errand = Errand(parent_id="parent", run_id=run_id, depth=1)
    return World(
        scenario=scenario,
        argument=state.to_json(),
        seats=tuple(Seat() for _ in scenario.clients),
        faults=scenario.faults,
    )


def steps(world: World) -> Iterator[Step]:
    """All that may happen next."""
    if world.broken:
        return
    yield from _client_steps(world)
    if not world.is_over:
        yield from _task_steps(world)
        for timer in world.timers:
            rest = tuple(other for other in world.timers if other != timer)
            fired = WorkflowActivationJob()
            fired.fire_timer.seq = timer
            yield Step("a timer fires", _with_job(replace(world, timers=rest), fired))
    for activity in world.activities:
        yield from _activity_steps(world, activity)


# ── clients ────────────────────────────────────────────────────────────────────────────────────


def _client_steps(world: World) -> Iterator[Step]:
    if world.scenario.opens_first and not world.is_open:
        return
    for number, client in enumerate(world.scenario.clients):
        seat = world.seats[number]
        if seat.place == len(client.commands) or world.is_over:
            continue
        command = client.commands[seat.place]
        what = f"{client.name} sends {_words(command)}"
        if seat.doing == "waits":
            if (dead := _struck(world, "client")) is not None:
                again = _seated(dead, number, replace(seat, doing="sends"))
                yield Step(f"{client.name} dies before the answer comes", again, is_fault=True)
        elif seat.doing == "asks":
            ask = WaitCommand(command_id=command.command_id)
            waits = _seated(world, number, replace(seat, doing="waits"))
            asked = _with_update(waits, f"wait {command.command_id}", names.WAIT, ask)
            yield Step(f"{client.name} asks what became of {command.command_id}", asked)
        elif client.signals:
            sent = _with_signal(world, command)
            yield Step(what, _seated(sent, number, replace(seat, place=seat.place + 1)))
            if (twice := _struck(sent, "duplicate")) is not None:
                yield Step(f"{what}, and once more", _with_signal(twice, command), is_fault=True)
        else:
            waits = _seated(world, number, replace(seat, doing="waits"))
            yield Step(what, _with_update(waits, command.command_id, command.verb, command))
    yield from _late_duplicates(world)


def _late_duplicates(world: World) -> Iterator[Step]:
    """A request that was sent once arrives once more, whenever that is."""
    late = _struck(world, "duplicate")
    if late is None or world.is_over:
        return
    for client, seat in zip(world.scenario.clients, world.seats, strict=True):
        for place, command in enumerate(client.commands):
            if place < seat.place or (place == seat.place and seat.doing != "sends"):
                what = f"a copy of {client.name}'s {command.command_id} arrives"
                if client.signals:
                    again = _with_signal(late, command)
                else:
                    again = _with_update(late, command.command_id, command.verb, command)
                yield Step(what, again, is_fault=True)


def _with_signal(world: World, command: Sent) -> World:
    job = WorkflowActivationJob()
    job.signal_workflow.signal_name = command.verb
    job.signal_workflow.input.append(json_payload(command.to_json()))
    return _with_job(world, job)


def _with_update(world: World, update_id: str, name: str, message: Wire) -> World:
    """An update arrives; one of a known ID is the same one."""
    known = next((update for update in world.updates if update.id == update_id), None)
    if known is None:
        job = WorkflowActivationJob()
        update = job.do_update
        update.id = update.protocol_instance_id = update.meta.update_id = update_id
        update.name, update.run_validator = name, True
        update.input.append(json_payload(message.to_json()))
        world = _with_job(world, job)
        return replace(world, updates=(*world.updates, Update(update_id)))
    return world if known.answer is None else _answered(world, known)


def _answered(world: World, update: Update) -> World:
    """Whoever waits for this update has its answer."""
    assert update.answer is not None
    command_id = update.id.removeprefix("wait ")
    status, data = update.answer
    for number, (client, seat) in enumerate(zip(world.scenario.clients, world.seats, strict=True)):
        waits = seat.doing == "waits" and client.commands[seat.place].command_id == command_id
        if not waits:
            continue
        if status == "refused":
            failure = Failure.FromString(data)
            told = first_detail(failure.application_failure_info.details.payloads)
            if isinstance(told, dict):
                outcome = Outcome.model_validate(told)
                answer = Answer(command_id, "failed", outcome.error.type if outcome.error else "")
            else:
                answer = Answer(command_id, "refused", failure.application_failure_info.type)
        else:
            outcome = Outcome.from_json(data)
            if outcome.status == "pending":
                world = _seated(world, number, replace(seat, doing="asks"))
                continue
            answer = Answer(command_id, outcome.status, leaf_id=outcome.leaf_id)
        seat = Seat(seat.place + 1, "sends", (*seat.answers, answer))
        world = _seated(world, number, seat)
    return world


# ── the workflow ───────────────────────────────────────────────────────────────────────────────


def _task_steps(world: World) -> Iterator[Step]:
    if world.history and not world.jobs and not world.locals:
        return
    task = _Task(world)
    try:
        task.begin()
        yield from task.ends()
    except TaskFailed as failed:
        yield Step("the worker does a workflow task", replace(world, broken=f"it fails: {failed}"))


class _Task:
    """A workflow task, from its beginning; each way in which it may end is a state."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._run = WorkflowRun(SESSION, world.run, world.history)
        self._fed: list[Fed] = []
        self._commands: list[WorkflowCommand] = []
        self._locals = list(world.locals)
        self._kept = world.kept

    def begin(self) -> None:
        jobs = [WorkflowActivationJob.FromString(job) for job in self._world.jobs]
        if not self._world.history:
            jobs.insert(0, first_job(SESSION, self._world.argument))
        if jobs:
            self._feed(jobs)

    def ends(self) -> Iterator[Step]:
        while self._locals:
            local = self._locals[0]
            did = do(local.kind, local.request, self._kept, (), attempt=local.attempt)
            if did.kept != self._kept:  # else there is nothing that a fault could leave behind
                yield from self._faults(local, did.kept)
            self._kept = did.kept
            self._locals.pop(0)
            self._feed([_resolved(local.seq, did.answer, did.failure, is_local=True)])
        yield Step("the worker does a workflow task", self._ended())

    def _faults(self, local: Scheduled, after: Kept) -> Iterator[Step]:
        """What may happen in place of a local activity that writes."""
        what = local.kind.removeprefix(names.ACTIVITY_PREFIX)
        if (dead := _struck(self._world, "worker")) is not None:
            # The task is lost with the worker; the local activities that were under way are
            # begun again by the next one.
            lost = replace(dead, kept=after)
            yield Step(f"the worker dies when the store has taken {what}", lost, is_fault=True)
        if (slow := _struck(self._world, "slow store")) is not None:
            late = self._ended(struck=slow)
            yield Step(f"the store is slow to take {what}", late, is_fault=True)
        if (down := _struck(self._world, "store")) is not None:
            for kept, words in (
                (self._kept, f"the store is down and does not take {what}"),
                (after, f"the store takes {what}, and the answer is lost"),
            ):
                yield Step(words, self._backed_off(replace(down, kept=kept)), is_fault=True)

    def _backed_off(self, struck: World) -> World:
        """The local activity failed; the workflow waits, with a timer, before it tries again. On an
        instance of its own, since this one goes on.
        """
        other = _Task(self._world)
        for data, _ in self._fed:
            other._feed(list(WorkflowActivation.FromString(data).jobs))
        local, other._locals = self._locals[0], self._locals[1:]
        job = WorkflowActivationJob()
        job.resolve_activity.seq, job.resolve_activity.is_local = local.seq, True
        backoff = job.resolve_activity.result.backoff
        backoff.attempt = local.attempt + 1
        backoff.backoff_duration.seconds = 10
        other._feed([job])
        other._kept = struck.kept
        return other._ended(struck=struck)

    def _feed(self, jobs: list[WorkflowActivationJob]) -> None:
        fed, commands = self._run.activate(jobs, self._world.clock)
        self._fed.append((fed, tuple(commands)))
        self._commands += commands
        for command in commands:
            if command.HasField("schedule_local_activity"):
                self._locals.append(_local(command.schedule_local_activity))

    def _ended(self, struck: World | None = None) -> World:
        """The server has what the task sent."""
        world = self._world if struck is None else struck
        refused = {
            command.update_response.protocol_instance_id
            for command in self._commands
            if command.update_response.HasField("rejected")
            and not self._is_accepted(command.update_response.protocol_instance_id)
        }
        world = replace(
            world,
            is_open=world.is_open or self._run.is_open(),
            kept=self._kept,
            jobs=(),
            locals=tuple(self._locals),
            history=(*world.history, *(_recorded(data, refused) for data in self._fed)),
        )
        world = self._read_stream(world)
        for command in self._commands:
            world = _obeyed(world, command)
        return world

    def _is_accepted(self, update_id: str) -> bool:
        """Whether history has the update already: it failed, and was not refused."""
        return any(
            command.update_response.HasField("accepted")
            and command.update_response.protocol_instance_id == update_id
            for command in self._commands
        ) or update_id in _accepted(self._world.history)

    def _read_stream(self, world: World) -> World:
        """A subscriber reads what is there by now."""
        offset, items = self._run.published()
        receipts = list(world.receipts)
        for topic, data in items[max(world.seen - offset, 0) :]:
            if topic.startswith("run:"):
                record = EventRecord.from_json(data)
                receipts += [entry["id"] for entry in record.entries]
        return replace(world, receipts=tuple(receipts), seen=offset + len(items))


def _obeyed(world: World, command: WorkflowCommand) -> World:
    """The server does what the workflow asks for."""
    if command.HasField("update_response"):
        response = command.update_response
        if response.HasField("accepted"):
            return world
        if response.HasField("completed"):
            answer = ("done", response.completed.data)
        else:
            answer = ("refused", response.rejected.SerializeToString(deterministic=True))
        update = Update(response.protocol_instance_id, answer)
        others = [other for other in world.updates if other.id != update.id]
        return _answered(replace(world, updates=(*others, update)), update)
    if command.HasField("schedule_activity"):
        activity = command.schedule_activity
        wait = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        scheduled = Scheduled(
            activity.seq,
            activity.activity_type,
            activity.arguments[0].data,
            attempts=activity.retry_policy.maximum_attempts,
            waits_for_cancel=activity.cancellation_type == wait,
        )
        return replace(world, activities=(*world.activities, scheduled))
    if command.HasField("request_cancel_activity"):
        return _cancelled(world, command.request_cancel_activity.seq)
    if command.HasField("start_timer"):
        return replace(world, timers=(*world.timers, command.start_timer.seq))
    if command.HasField("cancel_timer"):
        rest = tuple(timer for timer in world.timers if timer != command.cancel_timer.seq)
        return replace(world, timers=rest)
    if command.HasField("start_child_workflow_execution"):
        return _child_started(world, command)
    if command.HasField("continue_as_new_workflow_execution"):
        return _renewed(world, command.continue_as_new_workflow_execution.arguments[0])
    if command.HasField("complete_workflow_execution"):
        return replace(_ended_for_all(world), is_over=True, timers=(), locals=())
    if command.HasField("fail_workflow_execution"):
        reason = command.fail_workflow_execution.failure.message
        return replace(world, broken=f"the workflow fails: {reason}")
    return world


def _cancelled(world: World, seq: int) -> World:
    """Whoever cancels an activity waits for what it says to that, or does not."""
    activity = next((known for known in world.activities if known.seq == seq), None)
    if activity is None:
        return world  # it has ended, and the workflow has not heard of it yet
    others = tuple(other for other in world.activities if other is not activity)
    if activity.waits_for_cancel:
        return replace(world, activities=(*others, replace(activity, is_cancelled=True)))
    failure = failure_of(CancelledError("Cancelled"))
    return _with_job(replace(world, activities=others), _resolved(seq, None, failure, cancel=True))


def _child_started(world: World, command: WorkflowCommand) -> World:
    child = command.start_child_workflow_execution
    job = WorkflowActivationJob()
    job.resolve_child_workflow_execution_start.seq = child.seq
    job.resolve_child_workflow_execution_start.succeeded.run_id = "child"
    return _with_job(replace(world, children=(*world.children, child.workflow_id)), job)


def _renewed(world: World, argument: Payload) -> World:
    """The next run begins."""
    if world.locals or world.activities:
        return replace(world, broken="it continues as new while an activity is under way")
    for update in world.updates:
        if update.answer is None:
            return replace(world, broken=f"it continues as new and leaves {update.id} unanswered")
    return replace(
        _ended_for_all(world),
        argument=argument.data,
        run=world.run + 1,
        history=(),
        timers=(),
    )


def _ended_for_all(world: World) -> World:
    """Whoever waits for an update that the ending run leaves unanswered asks the next one."""
    for number, seat in enumerate(world.seats):
        if seat.doing == "waits":
            world = _seated(world, number, replace(seat, doing="asks"))
    return replace(world, updates=())


# ── activities ─────────────────────────────────────────────────────────────────────────────────


def _activity_steps(world: World, activity: Scheduled) -> Iterator[Step]:
    what = activity.kind.removeprefix(names.ACTIVITY_PREFIX)
    others = tuple(other for other in world.activities if other is not activity)
    if activity.is_cancelled:
        failure = failure_of(CancelledError("Cancelled"))
        stopped = replace(world, activities=others)
        job = _resolved(activity.seq, None, failure, cancel=True)
        yield Step(f"{what} stops", _with_job(stopped, job))
    did = do(activity.kind, activity.request, world.kept, world.journal, attempt=activity.attempt)
    ended = replace(world, kept=did.kept, journal=did.journal, activities=others)
    job = _resolved(activity.seq, did.answer, did.failure)
    yield Step(f"{what} ends", _with_job(ended, job))
    if (down := _struck(world, "store")) is not None and did.kept != world.kept:
        yield from _troubled(replace(down, activities=others), activity)
    if (dead := _struck(world, "worker")) is not None:
        yield from _dying(replace(dead, activities=others), activity)


def _troubled(world: World, activity: Scheduled) -> Iterator[Step]:
    """The store fails under an activity, which makes the best of it or is tried again."""
    what = activity.kind.removeprefix(names.ACTIVITY_PREFIX)
    troubles: tuple[Trouble, ...] = ("is down", "loses the answer")
    for trouble in troubles:
        did = do(
            activity.kind,
            activity.request,
            world.kept,
            world.journal,
            attempt=activity.attempt,
            trouble=trouble,
        )
        after = replace(world, kept=did.kept, journal=did.journal)
        if did.failure is not None:
            after = _lost(after, activity)
        else:
            after = _with_job(after, _resolved(activity.seq, did.answer, None))
        yield Step(f"the store {trouble} in {what}", after, is_fault=True)


def _dying(world: World, activity: Scheduled) -> Iterator[Step]:
    """The worker dies before an activity has had an effect, or after."""
    what = activity.kind.removeprefix(names.ACTIVITY_PREFIX)
    lost = _lost(world, activity)
    yield Step(f"the worker dies before {what}", lost, is_fault=True)
    for effects in (1, 2):
        half = do(
            activity.kind,
            activity.request,
            world.kept,
            world.journal,
            attempt=activity.attempt,
            dies_after=effects,
        )
        if half.answer is None and half.failure is None:
            left = replace(lost, kept=half.kept, journal=half.journal)
            label = f"the worker dies in {what}, after its effect {effects}"
            yield Step(label, left, is_fault=True)


def _lost(world: World, activity: Scheduled) -> World:
    """The server misses the heartbeat of an activity: another attempt, if there is one left."""
    if activity.attempt != activity.attempts:
        again = replace(activity, attempt=activity.attempt + 1)
        return replace(world, activities=(*world.activities, again))
    failure = Failure(message="activity Heartbeat timeout")
    failure.timeout_failure_info.SetInParent()
    return _with_job(world, _resolved(activity.seq, None, failure))


def _local(command: ScheduleLocalActivity) -> Scheduled:
    request = command.arguments[0].data
    return Scheduled(command.seq, command.activity_type, request, max(command.attempt, 1))


def _resolved(
    seq: int,
    answer: bytes | None,
    failure: Failure | None,
    *,
    is_local: bool = False,
    cancel: bool = False,
) -> WorkflowActivationJob:
    """What the workflow is told of an activity; a failure of one that is not local is wrapped."""
    result = ActivityResolution()
    if failure is None:
        assert answer is not None
        result.completed.result.CopyFrom(json_payload(answer))
    elif is_local:
        result.failed.failure.CopyFrom(failure)
    else:
        told = result.cancelled.failure if cancel else result.failed.failure
        told.message = "activity error"
        told.activity_failure_info.SetInParent()
        told.cause.CopyFrom(failure)
    job = WorkflowActivationJob()
    job.resolve_activity.seq, job.resolve_activity.is_local = seq, is_local
    job.resolve_activity.result.CopyFrom(result)
    return job


# ── small change ───────────────────────────────────────────────────────────────────────────────


def _struck(world: World, kind: str) -> World | None:
    """The same, a moment later, with one fault of the kind spent; None when there is none left."""
    left = dict(world.faults)
    if not left.get(kind):
        return None
    left[kind] -= 1
    return replace(world, faults=tuple(left.items()), clock=world.clock + 1)


def _seated(world: World, number: int, seat: Seat) -> World:
    seats = world.seats
    return replace(world, seats=(*seats[:number], seat, *seats[number + 1 :]))


def _with_job(world: World, job: WorkflowActivationJob) -> World:
    if world.is_over:
        return world
    return replace(world, jobs=(*world.jobs, job.SerializeToString(deterministic=True)))


def _recorded(fed: Fed, refused: set[str]) -> Recorded:
    """An activation as history has it: without refused updates, and with the others checked."""
    data, commands = fed
    activation = WorkflowActivation.FromString(data)
    jobs = [job for job in activation.jobs if job.do_update.id not in refused]
    for job in jobs:
        if job.HasField("do_update"):
            job.do_update.run_validator = False
    del activation.jobs[:]
    activation.jobs.extend(jobs)
    decided = [
        command
        for command in commands
        if not (
            command.update_response.HasField("rejected")
            and command.update_response.protocol_instance_id in refused
        )
    ]
    return activation.SerializeToString(deterministic=True), decisions(decided)


def _accepted(history: tuple[Recorded, ...]) -> set[str]:
    activations = [WorkflowActivation.FromString(data) for data, _ in history]
    return {job.do_update.id for each in activations for job in each.jobs if job.do_update.id}


def _words(command: Sent) -> str:
    return f"{command.verb} {command.command_id}"
