"""A client process: it talks to its sessions, and writes down what it sent and what it was told.

`python -m chaos.client '{"address": …}'`, see `Assignment`. It may be killed at any moment; the
next one of its number reads the journals of those before it and asks after their runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from chaos.conversation import Conversation
from chaos.journal import Journal, read_folder
from chaos.processes import leave_when_told
from chaos.server import connected
from chaos.worker import QUEUE
from perdure.client import Sessions
from perdure.process_end import leave
from perdure.stores import FileStore


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a client is to do: which sessions it owns, and which of others it visits now and then.

    It ends when it is told to, after all that it began has come to an end and each of its own
    sessions has answered once more, each within `deadline` seconds.
    """

    address: str
    folder: str
    who: str
    number: int
    incarnation: int
    seed: int
    owned: list[str]
    visited: list[str]
    pause: float
    deadline: float

    def to_json(self) -> str:
        """As the one argument of the process."""
        return json.dumps(asdict(self))


async def _converse(task: Assignment) -> None:
    folder = Path(task.folder)
    stop = asyncio.Event()
    leave_when_told(stop)
    journal = Journal(folder / "journals", task.who)
    client = await connected(task.address, identity=task.who)
    sessions = Sessions(
        client,
        FileStore(folder / "sessions"),
        task_queue=QUEUE,
        # As new after every step: nothing is carried over more often than that.
        max_history_events=1,
        max_history_events_in_run=1,
    )
    conversations = [
        Conversation(
            sessions,
            session_id,
            journal,
            seed=f"{task.seed} {task.number} {task.incarnation} {session_id}",
            is_owner=session_id in task.owned,
            pause=task.pause,
        )
        for session_id in [*task.owned, *task.visited]
    ]
    began_before = [
        note
        for note in read_folder(folder / "journals")
        if note["kind"] in ("run sent", "run ended") and str(note["by"]).startswith(_name(task))
    ]
    ended = {note["command"] for note in began_before if note["kind"] == "run ended"}
    for note in began_before:
        if note["kind"] == "run sent" and note["command"] not in ended:
            for conversation in conversations:
                if conversation.session_id == note["session"]:
                    conversation.ask_after(note["command"])
    journal.note("client talks", incarnation=task.incarnation)
    await asyncio.gather(*(conversation.go_on(stop) for conversation in conversations))
    await asyncio.gather(*(conversation.end(task.deadline) for conversation in conversations))
    journal.note("client ends")


def _name(task: Assignment) -> str:
    return task.who.rpartition(".")[0]


def main() -> None:
    """Talk until told to stop, or killed."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(_converse(Assignment(**json.loads(sys.argv[1]))))
    leave(0)


if __name__ == "__main__":
    main()
