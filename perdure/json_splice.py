"""Change single values of a JSON object's text, and leave the tokens of all others as they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from perdure.json_reader import loads_json
from perdure.json_writer import dumps_json

_STRUCTURE: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]')
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
        members[key] = f"{dumps_json(key).decode()}:{dumps_json(value).decode()}"
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
