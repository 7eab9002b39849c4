"""A session as one HTML file: the tree to click through, readable offline, printable.

Everything is in the file, and whatever the log holds is text in it: it is escaped, and the page's
own policy lets a browser load nothing, run nothing but the page's own script, and send nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from perdure.cli.entry_lines import (
    block_line,
    call_line,
    counted,
    fields_of,
    headline,
    plain_json,
    plural,
    role_of,
    tokens_of,
)
from perdure.cli.screen import safe
from perdure.entries import CompactionEntry, Entry, MessageEntry, SessionRecord
from perdure.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolCallBlock
from perdure.transcript import Transcript
from perdure.tree import TreeNode

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_CLASSES = frozenset({"user", "assistant", "tool", "meta", "compaction"})
_DEEPEST = 12


@dataclass(slots=True)
class _Stretch:
    """Entries without a branching between them, and where they hang."""

    number: int
    parent: _Stretch | None
    depth: int
    entries: list[Entry] = field(default_factory=list)
    branches: list[_Stretch] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"s{self.number}"


def html_page(record: SessionRecord, transcript: Transcript, leaf_id: str) -> Iterator[str]:
    """The pieces of the page."""
    stretches = _stretches(transcript, leaf_id)
    style = _page_file("page.css")
    script = _page_file("page.js")
    leaf = next(
        (stretch.name for stretch in stretches if _holds(stretch, leaf_id)),
        stretches[-1].name if stretches else "",
    )
    size = plural(len(transcript), "entry", "entries")
    branches = plural(len(transcript.leaves()), "branch", "branches")
    forked = f" · forked from {_text(record.parent_id)}" if record.parent_id else ""
    yield (
        "<!doctype html>\n"
        f'<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="generator" content="perdure">\n'
        f"<title>{_text(record.id)}</title>\n<style>{style}</style>\n</head>\n"
        f'<body data-leaf="{leaf}">\n<header>\n<h1>{_text(record.id)}</h1>\n'
        f"<p>{size}, {branches}{forked} · since {_text(str(record.created_at))}</p>\n</header>\n"
        '<div class="columns">\n<nav aria-label="Branches">\n<ul>\n'
    )
    for stretch in stretches:
        yield _link(stretch)
    yield "</ul>\n</nav>\n<main>\n"
    for stretch in stretches:
        yield from _section(stretch, leaf_id)
    yield f"</main>\n</div>\n<script>{script}</script>\n</body>\n</html>\n"


def _stretches(transcript: Transcript, leaf_id: str) -> list[_Stretch]:
    """The tree in stretches, each before those that branch off from it; what goes on along the
    active path stays at its depth.
    """
    path = {entry.id for entry in transcript.path(leaf_id)}
    found: list[_Stretch] = []
    waiting: list[tuple[TreeNode, _Stretch | None, int]] = []

    def branch_off(nodes: list[TreeNode], parent: _Stretch | None, depth: int) -> None:
        if not nodes:
            return
        straight = next((node for node in nodes if node.entry.id in path), nodes[-1])
        waiting.append((straight, parent, depth))
        sides = [node for node in nodes if node is not straight]
        waiting.extend((node, parent, depth + 1) for node in reversed(sides))

    branch_off(transcript.tree(), None, 0)
    while waiting:
        node, parent, depth = waiting.pop()
        stretch = _Stretch(len(found), parent, depth)
        found.append(stretch)
        if parent is not None:
            parent.branches.append(stretch)
        stretch.entries.append(node.entry)
        while len(node.children) == 1:
            node = node.children[0]
            stretch.entries.append(node.entry)
        branch_off(node.children, stretch, depth)
    return found


def _holds(stretch: _Stretch, leaf_id: str) -> bool:
    return any(entry.id == leaf_id for entry in stretch.entries)


def _link(stretch: _Stretch) -> str:
    first = stretch.entries[0]
    title = counted(stretch.entries)
    said = f"{role_of(first)}: {headline(first)}"[:80]
    return (
        f'<li><a href="#{stretch.name}" style="--depth:{min(stretch.depth, _DEEPEST)}" '
        f'title="{_text(title)}">{_text(said)} <small>{len(stretch.entries):,}</small></a></li>\n'
    )


def _section(stretch: _Stretch, leaf_id: str) -> Iterator[str]:
    parent = stretch.parent
    parent_name = f' data-parent="{parent.name}"' if parent else ""
    yield f'<section id="{stretch.name}"{parent_name}>\n'
    if parent is not None:
        yield f"<h2>goes on from {_text(parent.entries[-1].id)}</h2>\n"
    for entry in stretch.entries:
        yield _article(entry, is_leaf=bool(leaf_id) and entry.id == leaf_id)
    if len(stretch.branches) > 1:
        links = ", ".join(
            f'<a href="#{branch.name}">{_text(headline(branch.entries[0])[:60])}</a>'
            for branch in stretch.branches
        )
        yield f'<p class="others">{len(stretch.branches):,} branches from here: {links}</p>\n'
    yield "</section>\n"


def _article(entry: Entry, *, is_leaf: bool) -> str:
    role = role_of(entry)
    details = [f"<b>{_text(role)}</b>", f"<time>{_text(str(entry.created_at))}</time>"]
    body: list[str] = []
    if isinstance(entry, MessageEntry):
        message = entry.message
        details += [_text(message.model), _text(tokens_of(message.usage))]
        body = _message(message)
    elif isinstance(entry, CompactionEntry):
        body = [_said(entry.summary)]
    else:
        body = [_pre(plain_json(fields_of(entry)))]
    details.append(_text(entry.id))
    if is_leaf:
        details.append("<b>leaf</b>")
    kind = role if role in _CLASSES else "other"
    head = " · ".join(filter(None, details))
    return f'<article class="{kind}">\n<h3>{head}</h3>\n{"".join(body)}</article>\n'


def _message(message: Message) -> list[str]:
    parts: list[str] = []
    if message.role == "tool_result":
        sign = "✗" if message.is_error else "✓"
        parts.append(_part(f"{sign} {message.tool_name}", message.text, is_bad=message.is_error))
        parts += [_block(block) for block in message.content if not isinstance(block, TextBlock)]
    else:
        parts += [_block(block) for block in message.content]
    if message.error:
        parts.append(f'<p class="said bad">{_text(message.error)}</p>\n')
    return parts


def _block(block: Any) -> str:
    match block:
        case TextBlock():
            return _said(block.text)
        case ThinkingBlock():
            return _part("thinks", block.thinking)
        case ToolCallBlock():
            told = plain_json(block.arguments)
            if block.output is not None:
                told += f"\n\n{block.output.content}"
            return _part(f"→ {call_line(block.name, block.arguments)[:120]}", told)
        case ImageBlock() if block.mime_type in _PICTURES and (data := _picture(block.data)):
            return f'<p><img alt="" src="data:{block.mime_type};base64,{data}"></p>\n'
    return _said(block_line(block))


def _picture(data: str) -> str:
    """The data as base64 that was made here; empty when it is none."""
    try:
        return base64.b64encode(base64.b64decode(data, validate=True)).decode()
    except (binascii.Error, ValueError):
        return ""


def _part(title: str, text: str, *, is_bad: bool = False) -> str:
    shown = ' class="bad"' if is_bad else ""
    return f"<details><summary{shown}>{_text(title)}</summary>{_pre(text)}</details>\n"


def _said(text: str) -> str:
    return f'<div class="said">{_text(text)}</div>\n' if text else ""


def _pre(text: str) -> str:
    return f"<pre>{_text(text)}</pre>\n"


def _text(text: str) -> str:
    return escape(safe(text))


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _page_file(name: str) -> str:
    return files("perdure.cli.page").joinpath(name).read_text(encoding="utf-8")
