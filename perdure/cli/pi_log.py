"""The session logs of pi (`~/.pi/agent/sessions/…/<session>.jsonl`): a first line that names the
session, then entries with an ID and that of their parent; in early versions without, one after the
other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perdure.cli.foreign_logs import Growth, Imported, Json, message, text_block, text_of, usage

_STOP_REASONS = {"toolUse": "tool_use"}


def is_pi(lines: list[Json]) -> bool:
    """Whether this is such a log."""
    return bool(lines) and lines[0].get("type") == "session"


def read_pi(lines: Iterable[tuple[int, Json]]) -> Imported:
    """The entries of a log. Raises ForeignLogError."""
    imported, growth = Imported(), Growth()
    last_id = ""
    for number, line in lines:
        kind = str(line.get("type"))
        if kind == "session":
            imported.session_id = str(line.get("id") or "")
            continue
        entry_id = str(line.get("id") or f"line-{number}")
        parent_id = growth.place_of(line["parentId"]) if "parentId" in line else last_id
        wire = _entry(kind, line)
        if wire is None:
            growth.put(entry_id, parent_id)
            imported.left_out[kind] += 1
            continue
        growth.add(number, entry_id, parent_id, str(line.get("timestamp") or ""), wire)
        last_id = entry_id
    imported.entries = growth.entries()
    return imported


def _entry(kind: str, line: Json) -> Json | None:
    said = line.get("message")
    match kind:
        case "message" if isinstance(said, dict):
            return _message(said)
        case "compaction":
            return {
                "type": "compaction",
                "summary": str(line.get("summary") or ""),
                "first_kept_id": str(line.get("firstKeptEntryId") or ""),
                "tokens_before": line.get("tokensBefore") or 0,
            }
        case "branch_summary":
            told = text_block(str(line.get("summary") or ""))
            return {**message("user", [told]), "meta": True}
        case "custom_message":
            shown = message("user", _blocks(line.get("content")))
            return shown if line.get("display") else {**shown, "meta": True}
        case "custom":
            return {
                "type": "custom",
                "kind": str(line.get("customType") or "pi"),
                "data": line.get("data"),
            }
    return None


def _message(said: Json) -> Json:
    role = str(said.get("role"))
    match role:
        case "user":
            return message("user", _blocks(said.get("content")))
        case "assistant":
            reason = str(said.get("stopReason") or "")
            return message(
                "assistant",
                _blocks(said.get("content")),
                api=said.get("api"),
                provider=said.get("provider"),
                model=said.get("model"),
                usage=_usage(said.get("usage")),
                stop_reason=_STOP_REASONS.get(reason, reason),
                error=said.get("errorMessage"),
            )
        case "toolResult":
            return message(
                "tool_result",
                _blocks(said.get("content")),
                tool_call_id=said.get("toolCallId"),
                tool_name=said.get("toolName"),
                is_error=bool(said.get("isError")),
            )
    # A command that the user ran, or what an extension added: kept, with its own fields.
    return {"type": "custom", "kind": f"pi.{role}", "message": said}


def _blocks(content: Any) -> list[Json]:
    if not isinstance(content, list):
        return [text_block(text_of(content))]
    return [_block(block) for block in content if isinstance(block, dict)]


def _block(block: Json) -> Json:
    kind = str(block.get("type"))
    match kind:
        case "text":
            made = {"type": kind, "text": block.get(kind), "signature": block.get("textSignature")}
        case "thinking":
            signature = block.get("thinkingSignature")
            made = {"type": kind, "signature": signature, "thinking": block.get(kind)}
        case "toolCall":
            made = {
                "type": "tool_call",
                "signature": block.get("thoughtSignature"),
                "id": block.get("id"),
                "name": block.get("name"),
                "arguments": block.get("arguments"),
            }
        case "image":
            made = {"type": kind, "data": block.get("data"), "mime_type": block.get("mimeType")}
        case _:
            return {**block, "type": f"pi.{kind}"}
    return {name: value for name, value in made.items() if value}


def _usage(counts: Any) -> Json:
    if not isinstance(counts, dict):
        return {}
    made = usage(
        input=counts.get("input"),
        output=counts.get("output"),
        cache_read=counts.get("cacheRead"),
        cache_write=counts.get("cacheWrite"),
    )
    cost = counts.get("cost")
    if made and isinstance(cost, dict):
        named = {
            "input": cost.get("input"),
            "output": cost.get("output"),
            "cache_read": cost.get("cacheRead"),
            "cache_write": cost.get("cacheWrite"),
        }
        made["cost"] = {name: value for name, value in named.items() if value}
    return made
