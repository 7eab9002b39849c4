"""What a client was told is in the store."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

from chaos.evidence import Evidence, Line, Log, entries_of, text_of


def receipts_are_in_the_store_once(evidence: Evidence) -> tuple[int, list[str]]:
    """Each entry of a receipt is one line of the log, down to its last field."""
    counts = {
        session_id: Counter(str(line.get("id")) for line in log.lines)
        for session_id, log in evidence.logs.items()
    }
    checked, wrong = 0, []
    for note, entry in entries_of(evidence.of("receipt")):
        checked += 1
        session_id, entry_id = note["session"], entry["id"]
        times = counts.get(session_id, Counter())[entry_id]
        if times != 1:
            wrong.append(f"{session_id}: {entry_id} was acknowledged, and is there {times} times")
        elif evidence.log(session_id).get(entry_id) != entry:
            wrong.append(f"{session_id}: {entry_id} is stored otherwise than it was acknowledged")
    return checked, wrong


def receipts_have_the_order_of_the_path(evidence: Evidence) -> tuple[int, list[str]]:
    """Who watches a run, or appends several entries, is told of them one by one as they follow
    each other on the path; and what was acknowledged earlier stands earlier in the log.
    """
    told: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for note, entry in entries_of(evidence.of("receipt")):
        about = note["watch"] or f"{note['via']} at {note['at']}"
        told[note["session"], about].append(entry)
    wrong: list[str] = []
    for (session_id, about), entries in told.items():
        log = evidence.log(session_id)
        for before, after in pairwise(entries):
            if _previous(log, after["id"]) != before["id"]:
                wrong.append(
                    f"{session_id}, {about}: {after['id']} was told after {before['id']}, "
                    "and does not follow it"
                )
            elif log.places[before["id"]] >= log.places[after["id"]]:
                wrong.append(f"{session_id}, {about}: {after['id']} is stored before its parent")
    for note in evidence.of("run ended"):
        entries = told.get((note["session"], note.get("watch", "")), [])
        log = evidence.log(note["session"])
        if entries and note["leaf"] and _itself_or_previous(log, note["leaf"]) != entries[-1]["id"]:
            wrong.append(
                f"{note['session']}: run {note['command']} ended at {note['leaf']}, "
                f"and the last receipt was {entries[-1]['id']}"
            )
    return len(told), wrong


def acknowledged_input_is_on_the_path_of_its_run(evidence: Evidence) -> tuple[int, list[str]]:
    """A run that was done has its input between its start and its leaf, once."""
    asked = {note["command"]: note["texts"] for note in evidence.of("intent") if "command" in note}
    checked, wrong = 0, []
    for note in evidence.of("run ended"):
        if note["status"] != "done" or note["command"] not in asked:
            continue
        checked += 1
        path = [text_of(line) for line in evidence.log(note["session"]).path(note["leaf"])]
        wrong += [
            f"{note['session']}: the input of run {note['command']} is "
            f"{path.count(text)} times on its path"
            for text in asked[note["command"]]
            if path.count(text) != 1
        ]
    return checked, wrong


def _previous(log: Log, entry_id: str) -> str:
    """The entry before it on the path. A compaction between the two has no receipt of its own."""
    walk = log.upwards(entry_id)
    next(walk, None)
    return next((str(line["id"]) for line in walk if line["type"] != "compaction"), "")


def _itself_or_previous(log: Log, entry_id: str) -> str:
    line = log.get(entry_id)
    if line is not None and line["type"] != "compaction":
        return entry_id
    return _previous(log, entry_id)
