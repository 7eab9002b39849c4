"""Change single values of a JSON object's text, and leave the tokens of all others as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from perdure.json_reader import loads_json, scan_string
from perdure.json_writer import quoted

_STRUCTURE: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]')
# Finds where a value ends; what the numbers in it are does not matter.
_scan: Final[Callable[[str, int], tuple[object, int]]] = vars(
    json.JSONDecoder(parse_float=str, parse_int=str)
)["scan_once"]
_FIRST_KEYS: Final = ("type", "id", "parent_id", "created_at")


def splice(
    line: bytes, changes: Mapping[str, str], *, omit: Collection[str] = (), sort_keys: bool = False
) -> bytes:
    """The object with text values set and keys left out; of duplicate keys the last remains.

    The keys of an entry's header come first, in their order, or with `sort_keys` all keys in
    byte order. `line` has to be a JSON object.
    """
    members = _members(line.decode())
    for key, value in changes.items():
        members[key] = f"{quoted(key)}:{quoted(value)}"
    for key in omit:
        members.pop(key, None)
    if sort_keys:
        order = sorted(members)
    else:
        order = [key for key in _FIRST_KEYS if key in members]
        order += [key for key in members if key not in _FIRST_KEYS]
    return f"{{{','.join(members[key] for key in order)}}}".encode()


def _members(text: str) -> dict[str, str]:
    """The text of each member by its key."""
    try:
        return _scanned(text)
    except RecursionError:
        return _matched(text)


def _scanned(text: str) -> dict[str, str]:
    """The members, found by the standard library's parser, which is quick."""
    members: dict[str, str] = {}
    position = _behind_space(text, text.index("{") + 1)
    while text[position] != "}":
        start = position
        key, position = scan_string(text, position + 1, True)
        colon = _behind_space(text, position)
        position = _scan(text, _behind_space(text, colon + 1))[1]
        members[key] = text[start:position]
        position = _behind_space(text, position)
        if text[position] == ",":
            position = _behind_space(text, position + 1)
    return members


def _behind_space(text: str, position: int) -> int:
    while text[position] in " \t\n\r":
        position += 1
    return position


def _matched(text: str) -> dict[str, str]:
    """The members, however deep they are nested."""
    members: dict[str, str] = {}
    depth, key, start = 0, "", 0
    for found in _STRUCTURE.finditer(text):
        token = found[0]
        if token in "{[":
            depth += 1
            if depth == 1:
                start = found.end()
        elif token in "}]":
            depth -= 1
        elif token == ":" and depth == 1:
            key = loads_json(text[start : found.start()].strip())
        if (token == "," and depth == 1) or depth == 0:
            member = text[start : found.start()].strip()
            if member:
                members[key] = member
            start = found.end()
    return members
