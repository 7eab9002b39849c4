"""The events of a run, and their order.

The order is one pure description, `EventScript`. The workflow follows it while a run happens;
`rebuild_events` follows it again over the stored entries, so a consumer that comes late, or missed
a stretch, reads the same events with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perdure.protocol import (
    EntryJson,
    ErrorInfo,
    EventRecord,
    Outcome,
    PendingApproval,
    PlannedCall,
)
from perdure.usage import Usage

AGENT_START = "agent_start"
TURN_START = "turn_start"
MESSAGE_START = "message_start"
MESSAGE_UPDATE = "message_update"
"""A piece of the message in progress; it passes, and is no part of the order below."""
MESSAGE_END = "message_end"
TOOL_EXECUTION_START = "tool_execution_start"
APPROVAL_REQUESTED = "approval_requested"
APPROVAL_ANSWERED = "approval_answered"
TOOL_EXECUTION_UPDATE = "tool_execution_update"
TOOL_EXECUTION_END = "tool_execution_end"
TURN_END = "turn_end"
AGENT_END = "agent_end"
RUN_FAILED = "run_failed"

PROGRESS = "progress"
"""Passes: more is stored, up to the event's leaf. Watchers read it from the store."""

RESTARTED = "restarted"
"""Passes: the run has begun again from its input. What was told since then stands no longer."""

LAST_EVENTS = frozenset({AGENT_END, RUN_FAILED})
"""After one of these a run has no more events."""


class EventScript:
    """Writes a run's events down, each with its number; the caller says what happened, once it
    is stored.
    """

    def __init__(self, run_id: str, start_id: str, input_count: int, next_index: int = 0) -> None:
        self.next_index = next_index
        self._run: dict[str, Any] = {
            "run_id": run_id,
            "start_id": start_id,
            "input_count": input_count,
        }

    def started(self, entries: list[EntryJson], leaf_id: str) -> list[EventRecord]:
        """The input is stored: the receipt for it."""
        return [self._event(AGENT_START, entries=entries, leaf_id=leaf_id)]

    def turn_started(self, turn: int) -> list[EventRecord]:
        """The model is about to be called."""
        return [self._event(TURN_START, turn=turn), self._event(MESSAGE_START, turn=turn)]

    def replied(self, turn: int, entry: EntryJson) -> list[EventRecord]:
        """The model's message is stored: the receipt for it."""
        return [self._event(MESSAGE_END, turn=turn, entries=[entry], leaf_id=entry["id"])]

    def tool_started(self, turn: int, call: PlannedCall) -> list[EventRecord]:
        """A tool is about to run."""
        return [
            self._event(
                TOOL_EXECUTION_START,
                turn=turn,
                tool_call_id=call.id,
                tool_name=call.name,
                arguments=call.arguments,
            )
        ]

    def approval_requested(self, approval: PendingApproval) -> list[EventRecord]:
        """A call waits for a person. The store does not tell, so it passes."""
        return [
            self._passing(
                APPROVAL_REQUESTED,
                turn=approval.turn,
                tool_call_id=approval.tool_call_id,
                tool_name=approval.tool_name,
                arguments=approval.arguments,
                approval=approval,
            )
        ]

    def approval_answered(self, turn: int, call: PlannedCall, approved: bool) -> list[EventRecord]:
        """A person has answered; an approved call runs with these arguments."""
        return [
            self._passing(
                APPROVAL_ANSWERED,
                turn=turn,
                tool_call_id=call.id,
                tool_name=call.name,
                arguments=call.arguments,
                approved=approved,
            )
        ]

    def tool_ended(self, turn: int, entry: EntryJson) -> list[EventRecord]:
        """A tool's result is stored: the end of the call, and the receipt for its result."""
        message = entry["message"]
        call: dict[str, Any] = {
            "turn": turn,
            "tool_call_id": message.get("tool_call_id", ""),
            "tool_name": message.get("tool_name", ""),
            "is_error": bool(message.get("is_error")),
        }
        return [
            self._event(TOOL_EXECUTION_END, **call),
            self._event(MESSAGE_START, **call),
            self._event(MESSAGE_END, **call, entries=[entry], leaf_id=entry["id"]),
        ]

    def joined(self, turn: int, entries: Sequence[EntryJson]) -> list[EventRecord]:
        """Entries that steer the run are stored: a receipt for each."""
        events: list[EventRecord] = []
        for entry in entries:
            events.append(self._event(MESSAGE_START, turn=turn))
            events.append(self._event(MESSAGE_END, turn=turn, entries=[entry], leaf_id=entry["id"]))
        return events

    def turn_ended(self, turn: int) -> list[EventRecord]:
        """Every call of the turn has its result."""
        return [self._event(TURN_END, turn=turn)]

    def ended(self, turn: int, leaf_id: str, usage: Usage) -> list[EventRecord]:
        """The agent is done."""
        return [self._event(AGENT_END, turn=turn, leaf_id=leaf_id, usage=usage)]

    def failed(self, turn: int, leaf_id: str, error: ErrorInfo) -> list[EventRecord]:
        """The run failed; there is no `agent_end` after this."""
        return [self._event(RUN_FAILED, turn=turn, leaf_id=leaf_id, error=error)]

    def _event(self, type_: str, **fields: Any) -> EventRecord:
        index = self.next_index
        self.next_index += 1
        return EventRecord(type=type_, index=index, **self._run, **fields)

    def _passing(self, type_: str, **fields: Any) -> EventRecord:
        return EventRecord(
            type=type_, index=self.next_index, is_passing=True, **self._run, **fields
        )


def rebuild_events(
    outcome: Outcome, input_entries: Sequence[EntryJson], new_entries: Sequence[EntryJson]
) -> Iterator[EventRecord]:
    """The events of a run, from what it stored; of a run in progress (a pending outcome), those
    up to now.
    """
    script = EventScript(outcome.command_id, outcome.start_id, outcome.input_count)
    leaf_id = input_entries[-1]["id"] if input_entries else outcome.start_id
    yield from script.started(list(input_entries), leaf_id)
    story = Story(script)
    for entry in new_entries:
        yield from story.of(entry)
    turn = story.turn
    if outcome.turns > turn:
        yield from script.turn_started(outcome.turns)
    if outcome.error is not None:
        yield from script.failed(outcome.turns, outcome.leaf_id, outcome.error)
    elif outcome.status == "done":
        yield from script.ended(turn, outcome.leaf_id, _usage_of(new_entries))


class Story:
    """Tells the events of stored entries, one entry after the other."""

    def __init__(self, script: EventScript) -> None:
        self.turn = 0
        self._script = script
        self._open_calls = 0

    def of(self, entry: EntryJson) -> list[EventRecord]:
        """What happened around the entry."""
        script = self._script
        role = entry.get("message", {}).get("role")
        if role == "assistant":
            self.turn += 1
            calls = calls_of(entry["message"])
            self._open_calls = len(calls)
            return [
                *script.turn_started(self.turn),
                *script.replied(self.turn, entry),
                *(event for call in calls for event in script.tool_started(self.turn, call)),
                *(script.turn_ended(self.turn) if not calls else []),
            ]
        if self._open_calls and role == "tool_result":
            self._open_calls -= 1
            return [
                *script.tool_ended(self.turn, entry),
                *(script.turn_ended(self.turn) if not self._open_calls else []),
            ]
        return [] if entry["type"] == "compaction" else script.joined(self.turn, [entry])


def calls_of(message: dict[str, Any]) -> list[PlannedCall]:
    """The tool calls in an assistant message that are ours to run, in order."""
    return [
        PlannedCall(
            id=block.get("id", ""),
            name=block.get("name", ""),
            arguments=block.get("arguments") or {},
        )
        for block in message.get("content") or []
        if block.get("type") == "tool_call" and not block.get("server")
    ]


def _usage_of(entries: Sequence[EntryJson]) -> Usage:
    messages = [entry.get("message", {}) for entry in entries]
    usages = [message.get("usage") for message in messages if message.get("role") == "assistant"]
    return sum((Usage.model_validate(usage or {}) for usage in usages), Usage())
