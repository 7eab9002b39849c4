"""The session logs of Claude Code (`~/.claude/projects/<project>/<session>.jsonl`).

What there is no description of by its makers was learned from logs: each line names its parent;
an answer is written a block a line, each hanging from the one before, all with the ID of one
message; the results of parallel calls hang from the lines of their calls. Here an answer is one
entry, and its results follow it one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perdure.cli.foreign_logs import Growth, Imported, Json, message, text_block, text_of, usage

_STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_use",
}


def is_claude_code(lines: list[Json]) -> bool:
    """Whether this is such a log."""
    return any("parentUuid" in line and "uuid" in line for line in lines[:200])


def read_claude_code(lines: Iterable[tuple[int, Json]]) -> Imported:
    """The entries of a log. Raises ForeignLogError."""
    reader = _Reader()
    for number, line in lines:
        reader.take(number, line)
    reader.imported.entries = reader.growth.entries()
    return reader.imported


class _Answer:
    """An answer in the making: its entry, its calls, and the last of their results."""

    def __init__(self, wire: Json) -> None:
        self.wire = wire
        self.members: set[str] = {wire["id"]}
        self.last_id: str = wire["id"]


class _Reader:
    def __init__(self) -> None:
        self.imported = Imported()
        self.growth = Growth()
        self._answers: dict[str, _Answer] = {}  # by the ID of their message
        self._callers: dict[str, tuple[_Answer, str]] = {}  # by the ID of the call, with its name
        self._tokens_before = 0

    def take(self, number: int, line: Json) -> None:
        """Take a line, in the order of the file."""
        kind = str(line.get("type"))
        foreign_id = str(line.get("uuid") or "")
        self.imported.session_id = self.imported.session_id or str(line.get("sessionId") or "")
        parent_id = self.growth.place_of(line.get("parentUuid") or line.get("logicalParentUuid"))
        content = line.get("message")
        is_said = kind in ("user", "assistant") and foreign_id and isinstance(content, dict)
        if is_said and not line.get("isSidechain") and isinstance(content, dict):
            take = self._take_user if kind == "user" else self._take_assistant
            take(number, line, foreign_id, parent_id, content)
            return
        compacted = line.get("compactMetadata")
        if isinstance(compacted, dict):
            tokens = compacted.get("preTokens")
            self._tokens_before = tokens if isinstance(tokens, int) else 0
        self.growth.put(foreign_id, parent_id)
        what = "sidechain" if line.get("isSidechain") else kind
        self.imported.left_out[what] += 1

    def _take_user(
        self, number: int, line: Json, foreign_id: str, parent_id: str, said: Json
    ) -> None:
        created_at = str(line.get("timestamp") or "")
        if line.get("isCompactSummary"):
            wire = {
                "type": "compaction",
                "summary": text_of(said.get("content")),
                "first_kept_id": "",
                "tokens_before": self._tokens_before,
            }
            self.growth.add(number, foreign_id, parent_id, created_at, wire)
            self._tokens_before = 0
            return
        blocks = said.get("content")
        if not isinstance(blocks, list):
            blocks = [{"type": "text", "text": blocks or ""}]
        made = 0
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                made += 1
                entry_id = foreign_id if made == 1 else f"{foreign_id}.{made}"
                parent_id = self._add_result(number, entry_id, parent_id, created_at, block)
        rest = [_block(b) for b in blocks if isinstance(b, dict) and b.get("type") != "tool_result"]
        if rest or not made:
            entry_id = foreign_id if not made else f"{foreign_id}.{made + 1}"
            wire = message("user", rest)
            if line.get("isMeta"):
                wire["meta"] = True
            self.growth.add(number, entry_id, parent_id, created_at, wire)
            parent_id = entry_id
        self.growth.put(foreign_id, parent_id)

    def _add_result(
        self, number: int, entry_id: str, parent_id: str, created_at: str, block: Json
    ) -> str:
        """Append a result. What hangs from its answer, the next result too, follows it."""
        call_id = str(block.get("tool_use_id") or "")
        answer, name = self._callers.pop(call_id, (None, ""))
        content = block.get("content")
        given = content if isinstance(content, list) else [text_block(str(content or ""))]
        wire = message(
            "tool_result",
            [_block(inner) for inner in given if isinstance(inner, dict)],
            tool_call_id=call_id,
            tool_name=name,
            is_error=bool(block.get("is_error")),
        )
        self.growth.add(number, entry_id, parent_id, created_at, wire)
        if answer is not None:
            for member in answer.members:
                self.growth.put(member, entry_id)
            answer.members.add(entry_id)
            answer.last_id = entry_id
        return entry_id

    def _take_assistant(
        self, number: int, line: Json, foreign_id: str, parent_id: str, said: Json
    ) -> None:
        message_id = str(said.get("id") or "")
        blocks = said.get("content")
        content = (
            [_block(b) for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
        )
        answer = self._answers.get(message_id)
        if answer is None or not message_id or parent_id not in answer.members:
            created_at = str(line.get("timestamp") or "")
            wire = message("assistant", [], provider="anthropic", model=said.get("model"))
            wire = self.growth.add(number, foreign_id, parent_id, created_at, wire)
            answer = self._answers[message_id] = _Answer(wire)
        made = answer.wire["message"]
        made["content"] = (made["content"] or []) + content
        self._finish(made, line, said)
        answer.members.add(foreign_id)
        self.growth.put(foreign_id, answer.last_id)
        for block in content:
            if block["type"] == "tool_call":
                self._callers[block["id"]] = (answer, block["name"])

    def _finish(self, made: Json, line: Json, said: Json) -> None:
        counts = said.get("usage")
        if isinstance(counts, dict):
            made["usage"] = usage(
                input=counts.get("input_tokens"),
                output=counts.get("output_tokens"),
                cache_read=counts.get("cache_read_input_tokens"),
                cache_write=counts.get("cache_creation_input_tokens"),
            )
        reason = _STOP_REASONS.get(str(said.get("stop_reason")))
        if reason:
            made["stop_reason"] = reason
        if line.get("isApiErrorMessage"):
            made["stop_reason"], made["error"] = "error", text_of(said.get("content"))


def _block(block: Json) -> Json:
    kind = str(block.get("type"))
    source: Any = block.get("source")
    match kind:
        case "text":
            return text_block(str(block.get("text") or ""))
        case "thinking":
            made = {"type": kind, "signature": block.get("signature"), "thinking": block.get(kind)}
            return {name: value for name, value in made.items() if value}
        case "tool_use":
            made = {"type": "tool_call", "id": str(block.get("id")), "name": str(block.get("name"))}
            return made | ({"arguments": block["input"]} if block.get("input") else {})
        case "image" if isinstance(source, dict) and source.get("type") == "base64":
            return {"type": kind, "data": source.get("data"), "mime_type": source.get("media_type")}
        case "document" if isinstance(source, dict) and source.get("type") == "base64":
            return {
                "type": "file",
                "data": source.get("data"),
                "mime_type": source.get("media_type"),
            }
    # Kept as a block of an unknown type: shown, and never sent to a model.
    return {**block, "type": f"claude-code.{kind}"}
