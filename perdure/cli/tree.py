"""`perdure tree`."""

from __future__ import annotations

import asyncio
from typing import Any

from perdure.cli.entry_lines import headline, plural, role_of
from perdure.cli.forks import forks_of
from perdure.cli.place import Where
from perdure.cli.screen import Screen, one_line, out
from perdure.cli.stored import entry_id, load_from, opened
from perdure.cli.tree_view import TreeView
from perdure.entries import SessionRecord
from perdure.errors import EntryNotFoundError
from perdure.transcript import Transcript
from perdure.tree import TreeNode


def show_tree(
    session_id: str,
    *,
    where: Where,
    leaf: str | None,
    show_all: bool,
    forks: bool | None,
    as_json: bool,
) -> None:
    """Print the tree of a stored session.

    Raises SessionNotFoundError, DamagedLogError, StoreError; EntryNotFoundError for a leaf that is
    not there.
    """
    asyncio.run(_show(session_id, where, leaf, show_all, forks, as_json))


async def _show(
    session_id: str,
    where: Where,
    leaf: str | None,
    show_all: bool,
    forks: bool | None,
    as_json: bool,
) -> None:
    store = opened(where)
    record, transcript = await load_from(store, session_id)
    leaf_id = chosen_leaf(transcript, leaf)
    found: dict[str, list[str]] | None = {}
    if forks is not False:
        found = await forks_of(store, session_id, transcript, anyway=bool(forks))
    screen = out()
    if as_json:
        screen.json(_as_json(record, transcript, leaf_id, found))
    else:
        print_tree(screen, record, transcript, leaf_id, found, show_all)


def chosen_leaf(transcript: Transcript, given: str | None) -> str:
    """The leaf that was asked for, or the last appended entry. Raises EntryNotFoundError."""
    if given is None:
        return transcript.leaf_id
    leaf_id = entry_id(transcript, given)
    if leaf_id not in transcript:
        raise EntryNotFoundError(
            f"no entry {given!r} in the session's log; `perdure tree` has them"
        )
    return leaf_id


def print_tree(
    screen: Screen,
    record: SessionRecord,
    transcript: Transcript,
    leaf_id: str,
    forks: dict[str, list[str]] | None,
    show_all: bool,
) -> None:
    """Print a tree; of the forks None says that they were not looked for."""
    leaves = len(transcript.leaves())
    size = f"{plural(len(transcript), 'entry', 'entries')}"
    if leaves > 1:
        size += f", {plural(leaves, 'branch', 'branches')}"
    screen.line(screen.styled(screen.fit(f"{one_line(record.id)} · {size}"), "bold"))
    if record.parent_id:
        screen.line(
            screen.styled(screen.fit(f"⑂ forked from {one_line(record.parent_id)}"), "magenta")
        )
    for child in (forks or {}).get("", ()):
        screen.line(screen.styled(screen.fit(f"⑂ forked to {one_line(child)}"), "magenta"))
    TreeView(transcript, leaf_id, forks or {}, show_all).show(screen)
    if forks is None:
        screen.line(screen.styled(screen.fit("forks were not looked for; --forks does"), "dim"))


def _as_json(
    record: SessionRecord,
    transcript: Transcript,
    leaf_id: str,
    forks: dict[str, list[str]] | None,
) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    roots = transcript.tree()
    for root in roots:
        nodes.extend(_node_json(node) for _, node in root.walk())
    return {
        "session_id": record.id,
        "forked_from": record.parent_id or None,
        "leaf_id": leaf_id,
        "leaves": transcript.leaves(),
        "roots": [root.entry.id for root in roots],
        "nodes": nodes,
        "forks": None if forks is None else forks,
    }


def _node_json(node: TreeNode) -> dict[str, Any]:
    entry = node.entry
    return {
        "id": entry.id,
        "parent_id": entry.parent_id,
        "created_at": str(entry.created_at),
        "type": entry.type,
        "role": role_of(entry),
        "headline": headline(entry),
        "children": [child.entry.id for child in node.children],
    }
