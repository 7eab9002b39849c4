"""What watchers are told of a loop of one's own while it runs."""

from __future__ import annotations

from perdure.activities.heard import Heard
from perdure.activities.live_events import LiveEvents
from perdure.activities.loop_log import LoopLog
from perdure.models.protocol import Delta
from perdure.protocol import EventRecord, RunLoop, RunPlace
from perdure.run_events import PROGRESS

_BEGUN = 2
"""Events of a message that begins: of its turn, and its own."""


class LoopTelling:
    """Tells how far the log has got, and, when somebody asked, what is being written.

    What is stored is not sent: whoever watches reads it from the store. So a loop may be as
    talkative as it likes, and workflow history has a few hundred bytes of each batch.
    """

    def __init__(self, request: RunLoop, log: LoopLog, interval: float) -> None:
        self._log = log
        self._is_streamed = request.stream
        self._place = RunPlace(
            run_id=request.run_id,
            start_id=request.start_id,
            input_count=request.input_count,
            turn=log.turns,
            next_index=log.next_index,
        )
        self._heard = Heard(self._place, interval)

    @property
    def live(self) -> LiveEvents:
        """What sends the events, as a context."""
        return self._heard.live

    @property
    def turn(self) -> int:
        """The turn, one whose message is being written included."""
        return self._place.turn

    @property
    def next_index(self) -> int:
        """The number of the run's next event."""
        return self._place.next_index

    def stored(self) -> None:
        """The log has got further."""
        self._heard.begin_another()
        log, place = self._log, self._place
        place.turn, place.next_index = log.turns, log.next_index
        self.live.tell_latest(PROGRESS, leaf_id=log.leaf_id, restarts=log.restarts)

    def written(self, delta: Delta) -> None:
        """A piece of a message that is not whole yet."""
        if not self._is_streamed:
            return
        if self._place.next_index == self._log.next_index:
            self._place.turn += 1
            self._place.next_index += _BEGUN
        self._heard.add(delta)

    def rest(self) -> list[EventRecord]:
        """What was not sent in time, and is worth it: of what is stored the run's end tells. To be
        asked when nothing is sent any more.
        """
        return [event for event in self.live.take_rest() if event.type != PROGRESS]
