"""Entries and session records to lines of the log, and back.

What cannot be read back is not written, and whatever is read is checked whole. An entry that was
read and not changed is written as the line that it was read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

from perdure.entries import CustomEntry, Entry, MessageEntry, SessionRecord
from perdure.errors import EntryDecodeError, EntryEncodeError, JsonError
from perdure.gc_pause import gc_paused
from perdure.json_reader import NumberRangeError, loads_json
from perdure.json_writer import dumps_json
from perdure.line_check import has_infinity, outline_of_plain
from perdure.messages import Outline
from perdure.timestamps import is_time
from perdure.wire_model import WireModel

__all__ = [
    "as_read",
    "decode_entries",
    "decode_entry",
    "decode_record",
    "dumps_json",
    "encode_entry",
    "encode_record",
    "entry_from_json",
    "loads_json",
]

_BOM: Final = b"\xef\xbb\xbf"
# The last two come from models that were made past their validation.
_UNWRITABLE: Final = (
    EntryDecodeError,
    JsonError,
    PydanticSerializationError,
    RecursionError,
    AttributeError,
    TypeError,
)
_set: Final = object.__setattr__
_Model = TypeVar("_Model", bound=WireModel)


def encode_entry(entry: Entry) -> bytes:
    """The entry's line, without the newline.

    Raises `EntryEncodeError` for what would not load again, and for an ephemeral entry.
    """
    if isinstance(entry, MessageEntry) and entry.ephemeral:
        raise EntryEncodeError("an ephemeral entry is never stored; leave it out of what is saved")
    if (source := entry.source_line) is not None:
        return source
    try:
        line = dumps_json(entry.to_wire())
        again = decode_entry(line)
    except _UNWRITABLE as error:
        raise EntryEncodeError(f"entry {entry.id!r} cannot be stored: {error}") from error
    if (again.id, again.parent_id) != (entry.id, entry.parent_id):
        raise EntryEncodeError(f"entry {entry.id!r} cannot be stored: its IDs are not all text")
    if not isinstance(entry, type(again)) or _loses_its_kind(entry, again):
        raise EntryEncodeError(
            f"entry {entry.id!r} cannot be stored: its line would not be read as "
            f"{type(entry).__name__}, but as {type(again).__name__}"
        )
    return line


def _loses_its_kind(entry: Entry, again: Entry) -> bool:
    return (
        isinstance(entry, CustomEntry)
        and entry.registered_kind is not None
        and type(again) is CustomEntry
    )


def decode_entry(line: bytes | str) -> Entry:
    """The entry of a line, checked whole; raises `EntryDecodeError` for a line that is none.

    What lies below the header is taken apart when it is first used. A null of a key that perdure
    knows means that the key is absent; a `timestamp` of a message that cannot be read is ignored.
    """
    encoded = line if isinstance(line, bytes) else line.encode("utf-8", "backslashreplace")
    if (plain := _plain_entry(encoded)) is not None:
        return plain
    source, text = _kept(line)
    may_overflow = False
    try:
        try:
            data = loads_json(text, exact_zeros=False)
        except NumberRangeError:
            # Where perdure gives a number no meaning, it may be as large as it likes.
            data, may_overflow = loads_json(text, allow_overflow=True), True
    except JsonError as error:
        raise EntryDecodeError(str(error)) from None
    if type(data) is not dict:
        raise EntryDecodeError("the line is no JSON object")
    return _unusual_entry(source, data, may_overflow)


def as_read(entry: Entry) -> Entry:
    """The entry as it is when its line has been read. Raises `EntryEncodeError` as
    `encode_entry` does.
    """
    return entry if entry.source_line is not None else decode_entry(encode_entry(entry))


def decode_entries(lines: Sequence[bytes]) -> list[Entry]:
    """The entries of many lines; `index` of the `EntryDecodeError` says which one is none."""
    entries: list[Entry] = []
    try:
        with gc_paused():
            previous_id = ""
            for line in lines:
                entry = decode_entry(line)
                if entry.parent_id == previous_id:
                    # Mostly so; one text for both is a tenth of what an entry takes in memory.
                    entry.__dict__["parent_id"] = previous_id
                previous_id = entry.id
                entries.append(entry)
    except EntryDecodeError as error:
        error.index = len(entries)
        raise
    return entries


def entry_from_json(data: dict[str, Any]) -> Entry:
    """The entry of a line's JSON object; raises `EntryDecodeError` as `decode_entry` does."""
    if type(data.get("type")) is not str or not data["type"]:
        raise EntryDecodeError("there is no type; it is not an entry")
    message = data.get("message") if data["type"] == "message" else None
    if isinstance(message, dict) and isinstance(message.get("content"), str):
        # A constructor takes it for a text block; a line has to say so.
        raise EntryDecodeError("message.content: text, where a list of blocks should be")
    return _validated(Entry, data)


def encode_record(record: SessionRecord) -> bytes:
    """The record's line, without the newline; raises `EntryEncodeError` if it would not load."""
    try:
        line = dumps_json(record.to_wire())
        decode_record(line)
    except (JsonError, EntryDecodeError) as error:
        raise EntryEncodeError(f"session record {record.id!r} cannot be stored: {error}") from error
    return line


def decode_record(line: bytes | str) -> SessionRecord:
    """The session record of a log's first line; a byte order mark before it is accepted.

    Raises `EntryDecodeError` for anything else, one without an ID included.
    """
    if isinstance(line, bytes):
        line = line.removeprefix(_BOM)
    try:
        data = loads_json(line, allow_overflow=True)
    except JsonError as error:
        raise EntryDecodeError(str(error)) from None
    if type(data) is not dict or data.get("type") != "session_init":
        raise EntryDecodeError("the line is no session record")
    return _validated(SessionRecord, data)


def _kept(line: bytes | str) -> tuple[bytes, str]:
    """The line as it is kept, valid UTF-8 and without line ends, and its text."""
    if isinstance(line, str):
        source, text = line.encode("utf-8", "backslashreplace"), line
    else:
        try:
            source, text = line, line.decode()
        except UnicodeDecodeError:
            text = line.decode("utf-8", "perdure_replace_bytes")
            source = text.encode()
    return _one_line(source), text


def _one_line(source: bytes) -> bytes:
    # In valid JSON a raw line end is space between tokens; in a log it would cut the line.
    return source.strip(b" \t\r\n").replace(b"\n", b" ")


def _plain_entry(line: bytes) -> MessageEntry | None:
    """The entry of a line that is quickly seen to be sound; None for all others.

    pydantic's parser takes a third of the time of the standard library's. What it accepts, both
    read alike; what it refuses (lone surrogates, bytes that are not UTF-8, deep nesting, `NaN`) is
    left to the other. A number beyond a float is an infinity here, which is plain only where
    perdure gives it no meaning.
    """
    try:
        data = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return None
    if type(data) is not dict:
        return None
    message = data.get("message")
    if type(message) is not dict or data.get("type") != "message":
        return None
    entry_id, parent_id, meta = data.get("id"), data.get("parent_id", ""), data.get("meta", False)
    if type(entry_id) is not str or type(parent_id) is not str or type(meta) is not bool:
        return None
    created_at = data.get("created_at")
    if type(created_at) is not str or not is_time(created_at):
        return None
    outline = outline_of_plain(message)
    if outline is None:
        return None
    return _message_entry(_one_line(line), entry_id, parent_id, meta, outline)


def _message_entry(
    source: bytes, entry_id: str, parent_id: str, meta: bool, outline: Outline
) -> MessageEntry:
    entry = MessageEntry.__new__(MessageEntry)
    _set(entry, "_source", source)
    _set(entry, "outline", outline)
    # No more keys than needed here: a sixth would double what the dict takes.
    header = {"id": entry_id, "parent_id": parent_id, "meta": meta, "ephemeral": False}
    _set(entry, "__dict__", header)
    return entry


def _unusual_entry(source: bytes, data: dict[str, Any], may_overflow: bool) -> Entry:
    data.pop("ephemeral", None)  # whatever is stored is not ephemeral
    whole = entry_from_json(data)
    if isinstance(whole, MessageEntry):
        message = whole.message
        if may_overflow and any(has_infinity(call.arguments) for call in message.tool_calls):
            raise EntryDecodeError("a number in a tool call is beyond the range of a float")
        return _message_entry(source, whole.id, whole.parent_id, whole.meta, message.outline)
    entry = type(whole).__new__(type(whole))
    _set(entry, "_source", source)
    _set(entry, "__dict__", {"id": whole.id, "parent_id": whole.parent_id})
    return entry


def _validated(model: type[_Model], data: dict[str, Any]) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise EntryDecodeError(f"{where or 'the line'}: {problem['msg']}") from None
