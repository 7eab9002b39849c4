"""What a model has said so far, while it speaks."""

from __future__ import annotations

from typing import Final, cast, get_args

from perdure.activities.live_events import LiveEvents
from perdure.errors import ModelError
from perdure.messages import Message, Role, StopReason
from perdure.models.protocol import Delta
from perdure.protocol import MAX_RESULT_BYTES, DeltaRecord, MessageJson, RunPlace
from perdure.protocol.events import DeltaKind
from perdure.run_events import MESSAGE_UPDATE

_LONGEST: Final = 50_000
"""Characters of one event; what is longer is told in several."""

_KINDS: Final = get_args(DeltaKind)


class Heard:
    """Hears a model's answer piece by piece, and tells whoever watches the run.

    Pieces of one content block that come one after the other are told together, as one event of a
    batch. An answer that is too long to be passed on at all is told so far and no further.
    """

    def __init__(self, place: RunPlace | None, interval: float) -> None:
        self.live = LiveEvents(place, interval, ends_in_result=True, collect=self._tell)
        self._said: list[str] = []
        self._untold: list[Delta] = []
        self._length = 0
        self._calls: dict[int, tuple[str, str]] = {}

    def add(self, delta: Delta) -> None:
        """Hear a piece. Raises ModelError for what is none."""
        if (
            delta.kind not in _KINDS
            or type(delta.index) is not int
            or not isinstance(cast("object", delta.text), str)
        ):
            raise ModelError(f"the model gave {delta!r}, which is no piece of an answer")
        if delta.kind == "text":
            self._said.append(delta.text)
        self._length += len(delta.text)
        if self.live.is_on and self._length <= MAX_RESULT_BYTES:
            self._untold.append(delta)

    def begin_another(self) -> None:
        """The message is whole; what is heard from now on is of the next one."""
        self._tell()
        self._said.clear()
        self._calls.clear()
        self._length = 0

    def as_message(self) -> MessageJson | None:
        """The text so far as a message that was aborted, if there is any. Only text is kept, a half
        tool call is of no use.
        """
        text = "".join(self._said)
        if not text:
            return None
        message = Message(role=Role.ASSISTANT, content=text, stop_reason=StopReason.ABORTED)
        return message.model_dump(mode="json", by_alias=True)

    def _tell(self) -> None:
        deltas, self._untold = self._untold, []
        start = 0
        for end in range(1, len(deltas) + 1):
            if end == len(deltas) or _block(deltas[end]) != _block(deltas[start]):
                self._tell_block(deltas[start:end])
                start = end

    def _tell_block(self, deltas: list[Delta]) -> None:
        index = deltas[0].index
        call_id, name = self._calls.get(index, ("", ""))
        call_id = next((delta.tool_call_id for delta in deltas if delta.tool_call_id), call_id)
        name = next((delta.tool_name for delta in deltas if delta.tool_name), name)
        if call_id or name:
            self._calls[index] = (call_id, name)
        text = "".join(delta.text for delta in deltas)
        for place in range(0, max(len(text), 1), _LONGEST):
            piece = DeltaRecord(
                kind=deltas[0].kind, text=text[place : place + _LONGEST], index=index
            )
            self.live.tell(MESSAGE_UPDATE, delta=piece, tool_call_id=call_id, tool_name=name)


def _block(delta: Delta) -> tuple[str, int]:
    return delta.kind, delta.index
