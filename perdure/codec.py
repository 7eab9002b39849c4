"""Entries and session records to lines of the log, and back.

What cannot be read back is not written, and whatever is read is checked whole. An entry that was
read and not changed is written as the line that it was read from.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from math import isinf
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from perdure.deferred import Deferred
from perdure.entries import CustomEntry, Entry, MessageEntry, SessionRecord, entry_class
from perdure.errors import EntryDecodeError, EntryEncodeError, JsonError
from perdure.json_reader import NumberRangeError, loads_json
from perdure.json_writer import dumps_json
from perdure.line_check import outline_of_plain
from perdure.messages import Message, Outline
from perdure.timestamps import Timestamp
from perdure.wire_model import WireModel

__all__ = [
    "decode_entries",
    "decode_entry",
    "decode_record",
    "dumps_json",
    "encode_entry",
    "encode_record",
    "loads_json",
]

_BOM: Final = b"\xef\xbb\xbf"
_MESSAGE_KEYS: Final = frozenset({"type", "id", "parent_id", "created_at", "message"})

_set_source: Final = Deferred._source.__set__  # type: ignore[attr-defined]
_set_outline: Final = Message._outline.__set__  # type: ignore[attr-defined]
_set: Final = object.__setattr__

_Model = TypeVar("_Model", bound=WireModel)


def encode_entry(entry: Entry) -> bytes:
    """The entry's line, without the newline.

    Raises `EntryEncodeError` for what would not load again, and for an ephemeral entry.
    """
    if isinstance(entry, MessageEntry) and entry.ephemeral:
        raise EntryEncodeError("an ephemeral entry is never stored; leave it out of what is saved")
    if (source := entry.source_line()) is not None:
        return source
    try:
        line = dumps_json(entry.to_wire())
        again = decode_entry(line)
    except (EntryDecodeError, JsonError, PydanticSerializationError, RecursionError) as error:
        raise EntryEncodeError(f"entry {entry.id!r} cannot be stored: {error}") from error
    if isinstance(entry, CustomEntry) and not isinstance(entry, type(again)):
        raise EntryEncodeError(f"entry {entry.id!r} cannot be stored: wrong type or kind")
    if type(again) is CustomEntry and type(entry).__dict__.get("registered_kind"):
        raise EntryEncodeError(
            f"entry {entry.id!r} cannot be stored: its fields do not fit {type(entry).__name__}"
        )
    return line


def decode_entry(line: bytes | str) -> Entry:
    """The entry of a line, checked whole; raises `EntryDecodeError` for a line that is none.

    What lies below the header is taken apart when it is first used.
    """
    source, data, may_overflow = _read(line)
    kind = data.get("type")
    if type(kind) is not str or not kind:
        raise EntryDecodeError("the line has no type; it is not an entry")
    if kind == "message" and not may_overflow:
        entry = _plain_message_entry(source, data)
        if entry is not None:
            return entry
    return _unusual_entry(source, data, may_overflow)


def decode_entries(lines: Sequence[bytes]) -> list[Entry]:
    """The entries of many lines; `index` of the `EntryDecodeError` says which one is none.

    The garbage collector is paused meanwhile: it finds nothing, and takes most of the time.
    """
    entries: list[Entry] = []
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for line in lines:
            entries.append(decode_entry(line))
    except EntryDecodeError as error:
        error.index = len(entries)
        raise
    finally:
        if was_enabled:
            gc.enable()
    return entries


def encode_record(record: SessionRecord) -> bytes:
    """The record's line, without the newline; raises `EntryEncodeError` if it would not load."""
    try:
        line = dumps_json(record.to_wire())
        decode_record(line)
    except (JsonError, EntryDecodeError) as error:
        raise EntryEncodeError(f"session record {record.id!r} cannot be stored: {error}") from error
    return line


def decode_record(line: bytes | str) -> SessionRecord:
    """The session record of a log's first line; a byte order mark before it is accepted."""
    if isinstance(line, bytes):
        line = line.removeprefix(_BOM)
    _, data, _ = _read(line)
    if data.get("type") != "session_init":
        raise EntryDecodeError(f"the line is no session record but {data.get('type')!r:.80}")
    return _validated(SessionRecord, data)


def _read(line: bytes | str) -> tuple[bytes, dict[str, Any], bool]:
    """The line as it is kept, what it holds, and whether numbers in it are beyond a float."""
    may_overflow = False
    try:
        data = loads_json(line)
    except NumberRangeError:
        data = loads_json(line, allow_overflow=True)
        may_overflow = True
    except JsonError as error:
        raise EntryDecodeError(str(error)) from None
    if type(data) is not dict:
        raise EntryDecodeError("the line is no JSON object")
    return _kept(line), data, may_overflow


def _kept(line: bytes | str) -> bytes:
    if isinstance(line, str):
        line = line.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its escape
    else:
        try:
            line.decode()
        except UnicodeDecodeError:
            line = line.decode("utf-8", "perdure_replace_bytes").encode()
    # In valid JSON a raw newline is space between tokens; it would cut the line in a log.
    return line.strip(b" \t\r\n").replace(b"\n", b" ")


def _plain_message_entry(source: bytes, data: dict[str, Any]) -> Entry | None:
    content = data.get("message")
    if type(content) is not dict:
        return None
    entry_id, parent_id = data.get("id", ""), data.get("parent_id", "")
    meta, created_at = data.get("meta", False), data.get("created_at")
    if type(entry_id) is not str or type(parent_id) is not str or type(meta) is not bool:
        return None
    if type(created_at) is not str:
        return None
    outline = outline_of_plain(content)
    if outline is None:
        return None
    try:
        moment = Timestamp.parse(created_at)
    except ValueError:
        return None
    header = {"type": "message", "id": entry_id, "parent_id": parent_id, "created_at": moment}
    return _deferred_message_entry(source, header, meta, outline)


def _deferred_message_entry(
    source: bytes, header: dict[str, Any], meta: bool, outline: Outline
) -> MessageEntry:
    message = Message.__new__(Message)
    _set_source(message, source)
    _set_outline(message, outline)
    entry = MessageEntry.__new__(MessageEntry)
    _set_source(entry, source)
    header["meta"] = meta
    header["message"] = message
    header["ephemeral"] = False
    _set(entry, "__dict__", header)
    return entry


def _unusual_entry(source: bytes, data: dict[str, Any], may_overflow: bool) -> Entry:
    data.pop("ephemeral", None)  # a key of the constructor only; what is stored is not ephemeral
    whole = _validated(entry_class(data), data)
    header = {
        "type": whole.type,
        "id": whole.id,
        "parent_id": whole.parent_id,
        "created_at": whole.created_at,
    }
    if isinstance(whole, MessageEntry):
        if may_overflow and any(_has_infinity(call.arguments) for call in whole.message.tool_calls):
            raise EntryDecodeError("a number in a tool call is beyond the range of a float")
        return _deferred_message_entry(source, header, whole.meta, whole.message.outline)
    entry = type(whole).__new__(type(whole))
    _set_source(entry, source)
    if isinstance(whole, CustomEntry):
        header["kind"] = whole.kind
    _set(entry, "__dict__", header)
    return entry


def _validated(model: type[_Model], data: dict[str, Any]) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise EntryDecodeError(f"{where or 'the line'}: {problem['msg']}") from None


def _has_infinity(value: Any) -> bool:
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, float) and isinf(item):
            return True
        if isinstance(item, dict):
            rest.extend(item.values())
        elif isinstance(item, list):
            rest.extend(item)
    return False
