"""A fork is one child, whole."""

from __future__ import annotations

from collections import defaultdict

from chaos.evidence import Evidence, Line, Log, identity_of, parent_of


def a_fork_is_one_complete_child(evidence: Evidence) -> tuple[int, list[str]]:
    """Each child is of a fork that someone asked for, names its source, and begins with a copy of
    one whole path of it; a fork that was acknowledged has its child, with the path that was asked
    for.
    """
    asked = {note["child"]: note for note in evidence.of("fork sent")}
    children = {session_id: log for session_id, log in evidence.logs.items() if log.parent_id}
    wrong = [
        f"{child}: acknowledged, and not there"
        for child in (note["child"] for note in evidence.of("forked"))
        if child not in children
    ]
    done = {note["child"] for note in evidence.of("forked")}
    for child, log in children.items():
        note = asked.get(child)
        if note is None or note["session"] != log.parent_id:
            wrong.append(f"{child}: nobody asked for it to be forked from {log.parent_id}")
            continue
        fault = _fault(log, evidence.log(log.parent_id), note["entry"] or "")
        if fault and (log.lines or child in done):
            wrong.append(f"{child}: {fault}")
    return len(children), wrong


def _fault(child: Log, source: Log, at: str) -> str:
    by_identity: dict[str, list[Line]] = defaultdict(list)
    for line in source.lines:
        by_identity[identity_of(line)].append(line)
    copied: list[Line] = []
    for line in child.lines:
        if identity_of(line) not in by_identity:
            break
        if parent_of(line) != (copied[-1]["id"] if copied else ""):
            return "the copy is not one path"
        copied.append(line)
    if not copied:
        return "it has no copy of the path"
    shared = {line["id"] for line in child.lines} & {line["id"] for line in source.lines}
    if shared:
        return f"it shares IDs with its source: {sorted(shared)[:3]}"
    ends = [line["id"] for line in by_identity[identity_of(copied[-1])]]
    if at and at not in ends:
        return f"it was to end with {at}"
    for end in [at] if at else ends:
        path = source.path(end)
        if list(map(_content, path)) == list(map(_content, copied)):
            return ""
    return "it is no complete copy of a path"


def _content(line: Line) -> Line:
    """All of an entry that a copy keeps."""
    return {
        key: value for key, value in line.items() if key not in ("id", "parent_id", "first_kept_id")
    }
