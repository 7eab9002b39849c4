"""What has to hold, in every state and at the end. Each broken promise is told in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from perdure import Entry, MessageEntry, Transcript
from perdure.protocol import AppendCommand, ForkCommand, RunCommand
from perdure.session_id import session_id_of
from tests.core.provider import check_as_a_provider
from tests.model.processes import entries_of
from tests.model.world import SESSION, World


def broken(world: World, *, at_the_end: bool) -> Iterator[str]:
    """Which promises do not hold here; with `at_the_end`, where nothing more happens by itself."""
    if world.broken:
        yield world.broken
        return
    log = entries_of(world.kept, SESSION)
    yield from _nothing_is_made_up(world, log)
    yield from _log_is_sound(world, log)
    yield from _answers_are_kept(world, log)
    yield from _receipts_are_kept(world, log)
    yield from _tools_ran_as_declared(world, log)
    yield from _forks_have_one_child(world)
    if at_the_end:
        yield from _nobody_is_left_waiting(world)
        yield from _each_command_was_done(world, log)


def _nothing_is_made_up(world: World, log: list[Entry]) -> Iterator[str]:
    """Nothing is stored that no one produced, and nothing twice."""
    sent = [text for command in world.scenario.commands for text in _texts(command)]
    said = [entry.message for entry in log if isinstance(entry, MessageEntry)]
    stored = Counter(message.text for message in said if message.role == "user")
    for text, count in stored.items():
        if text not in sent:
            yield f"the store has {text!r}, which nobody sent"
        elif count > 1:
            yield f"{text!r} was sent once and is in the store {count} times"
    for text, count in Counter(m.text for m in said if m.role == "assistant" and m.text).items():
        if count > 1:
            yield f"the answer {text!r} is in the store {count} times"
    for call, count in Counter(m.tool_call_id for m in said if m.role == "tool_result").items():
        if count > 1:
            yield f"the call {call!r} has {count} results in the store"


def _log_is_sound(world: World, log: list[Entry]) -> Iterator[str]:
    """The log is one chain: nobody branches here. What a provider is sent of it is valid."""
    for session_id, _, _ in world.kept:
        entries = entries_of(world.kept, session_id)
        leaf_id = ""
        for entry in entries:
            if entry.parent_id != leaf_id:
                yield f"the log of {session_id!r} is no chain at {entry.id}"
            leaf_id = entry.id
        try:
            check_as_a_provider(Transcript(entries).model_view(leaf_id))
        except AssertionError:
            yield f"what a provider would be sent of {session_id!r} is not valid"


def _answers_are_kept(world: World, log: list[Entry]) -> Iterator[str]:
    """What was answered "done" is in the store, once, in the order of the answers; what was refused
    is not.
    """
    texts = [entry.message.text for entry in log if isinstance(entry, MessageEntry)]
    by_id = {command.command_id: command for command in world.scenario.commands}
    ids = [entry.id for entry in log]
    for seat in world.seats:
        last = -1
        for answer in seat.answers:
            added = list(_texts(by_id[answer.command_id]))
            if answer.error == "UnknownCommandError":
                yield f"the session does not remember {answer.command_id}"
            elif answer.error and not world.scenario.has_cancel:
                yield f"{answer.command_id} failed with {answer.error}, and nothing was against it"
            if answer.status != "done":
                continue
            if answer.leaf_id and answer.leaf_id not in ids:
                yield f"{answer.command_id} was answered with a leaf that is not in the store"
            for text in added:
                if texts.count(text) != 1:
                    count = texts.count(text)
                    yield f"{answer.command_id} is done, and {text!r} is stored {count} times"
                elif texts.index(text) < last:
                    yield f"{answer.command_id} was sent after an answer, and stored before it"
                else:
                    last = texts.index(text)


def _receipts_are_kept(world: World, log: list[Entry]) -> Iterator[str]:
    """What a subscriber saw is in the store, and the order of receipts is the order in the path."""
    places = {entry.id: place for place, entry in enumerate(log)}
    last = -1
    for entry_id in world.receipts:
        place = places.get(entry_id)
        if place is None:
            yield f"a receipt of {entry_id} was seen, and the store does not have it"
        elif place <= last:
            yield f"the receipt of {entry_id} came out of order, or twice"
        last = max(last, place or 0)


def _tools_ran_as_declared(world: World, log: list[Entry]) -> Iterator[str]:
    """A tool that is not idempotent ran at most once; each that ran was asked for."""
    asked = {
        call.id
        for entry in log
        if isinstance(entry, MessageEntry)
        for call in entry.message.tool_calls
    }
    for call, count in Counter(world.journal).items():
        if call.startswith("charge") and count > 1:
            yield f"the tool of {call!r} is not idempotent and ran {count} times"
        if call not in asked:
            yield f"the tool of {call!r} ran, and the log does not ask for it"


def _forks_have_one_child(world: World) -> Iterator[str]:
    """One child per fork, complete once the fork is answered; and its workflow started once."""
    forks = [command for command in world.scenario.commands if isinstance(command, ForkCommand)]
    wanted = {fork.session_id for fork in forks}
    made = {session_id for session_id, _, _ in world.kept} - {SESSION}
    if made - wanted:
        yield f"sessions that no fork asked for: {sorted(made - wanted)}"
    for workflow_id, count in Counter(world.children).items():
        if count > 1:
            yield f"the workflow of {session_id_of(workflow_id)} was started {count} times"
    done = {answer.command_id for seat in world.seats for answer in seat.answers}
    done &= {a.command_id for seat in world.seats for a in seat.answers if a.status == "done"}
    for fork in forks:
        if fork.command_id in done and not entries_of(world.kept, fork.session_id):
            yield f"{fork.command_id} is done, and its child is empty"


def _nobody_is_left_waiting(world: World) -> Iterator[str]:
    """No session is stuck: every client has the answers to all it sent."""
    for client, seat in zip(world.scenario.clients, world.seats, strict=True):
        if seat.place < len(client.commands):
            waits_for = client.commands[seat.place].command_id
            yield f"{client.name} waits for the answer to {waits_for} for ever"


def _each_command_was_done(world: World, log: list[Entry]) -> Iterator[str]:
    """What was neither refused nor failed was done, also where nobody waited for the answer."""
    unsuccessful = {
        answer.command_id
        for seat in world.seats
        for answer in seat.answers
        if answer.status != "done"
    }
    texts = [entry.message.text for entry in log if isinstance(entry, MessageEntry)]
    for command in world.scenario.commands:
        if command.command_id in unsuccessful:
            continue
        for text in _texts(command):
            if text not in texts:
                yield f"{command.command_id} was sent, and {text!r} is not in the store"
        if isinstance(command, RunCommand) and not world.scenario.has_cancel:
            for call in ", ".join(_texts(command)).split(", "):
                if call.startswith("look") and call not in world.journal:
                    yield f"the idempotent tool of {call!r} never ran"


def _texts(command: object) -> Iterator[str]:
    if isinstance(command, AppendCommand | RunCommand):
        for entry in command.entries:
            yield entry["message"]["content"][0]["text"]
