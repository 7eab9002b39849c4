"""The stream-json protocol of the Claude Code CLI: newline-delimited JSON, in both directions.

What a line is goes by its `type`. `assistant` and `user` hold messages in the form of Anthropic's
Messages API, `stream_event` the pieces of one that is being written, `result` the end. All other
types are passed over, as are the messages of the CLI's own sub-agents: they are another
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from perdure.codec import dumps_json
from perdure.errors import LoopError, MaxTurnsError, PerdureError
from perdure.loops.protocol import LoopOutput
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolOutput,
)
from perdure.models.protocol import Delta
from perdure.usage import Cost, Usage

API: Final = "stream-json"
"""The `api` of messages that came over this protocol."""

_FLAGS: Final = {
    "--print": ("-p", []),
    "--output-format": ("", ["stream-json"]),
    "--input-format": ("", ["stream-json"]),
    "--verbose": ("", []),
    # Without them nothing says that a message is whole before its first tool has answered.
    "--include-partial-messages": ("", []),
}
_STOP_REASONS: Final = {
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
}
_DELTAS: Final[dict[str, tuple[Any, str]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("tool_arguments", "partial_json"),
}


@dataclass(frozen=True, slots=True)
class Ending:
    """What a command says at its end: an error, or none."""

    error: PerdureError | None = None


class LineError(Exception):
    """A line that says what it is, and is not: what follows cannot be trusted, either."""


class StreamJson:
    """How to call a command that speaks stream-json, and how to read it."""

    def arguments(
        self, command: Sequence[str], *, instructions: str = "", resume: str = ""
    ) -> list[str]:
        """The command with the flags that the protocol needs, where it has not got them itself.

        `resume` is the ID of a session of the command's own, of which it shall go on in a copy: the
        original stays as it is, for branches and forks that go on from the same place.
        """
        arguments = list(command)
        for flag, (short, values) in _FLAGS.items():
            if not any(_is_flag(argument, flag, short) for argument in command):
                arguments += [flag, *values]
        if instructions:
            arguments += ["--append-system-prompt", instructions]
        if resume:
            # In one piece, so that no value can be taken for another flag.
            arguments += [f"--resume={resume}", "--fork-session"]
        return arguments

    def prompt(self, content: Iterable[ContentBlock]) -> bytes:
        """What the command reads on its standard input."""
        message = {"role": "user", "content": [_given(block) for block in content]}
        line = {
            "type": "user",
            "message": message,
            "parent_tool_use_id": None,
            "session_id": "default",
        }
        return json.dumps(line).encode() + b"\n"

    def reader(self) -> StreamJsonReader:
        """A reader for one run of the command."""
        return StreamJsonReader()


class StreamJsonReader:
    """Reads what a command prints. `session_id` is that of its own session."""

    def __init__(self) -> None:
        self.session_id = ""
        self._open: _OpenMessage | None = None
        self._writing: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._usage = Usage()
        self._has_spoken = False

    def read(self, line: dict[str, Any]) -> Iterator[LoopOutput | Ending]:
        """What a line says. Raises LineError when it is not what it says that it is."""
        if isinstance(session_id := line.get("session_id"), str):
            self.session_id = session_id
        if line.get("parent_tool_use_id") is not None:
            return
        match line.get("type"):
            case "assistant" if not line.get("error"):
                yield from self._said(_message(line))
            case "user":
                yield from self._answered(_message(line))
            case "stream_event":
                yield from self._wrote(_dict(line.get("event")))
            case "result":
                yield from self._ended(line)

    def rest(self) -> Iterator[LoopOutput]:
        """What is whole and was not told yet, when nothing more comes."""
        if self._open is not None and self._open.is_whole:
            yield self._closed()

    def _said(self, message: dict[str, Any]) -> Iterator[LoopOutput]:
        """The CLI prints a message block by block, all under the message's ID."""
        message_id = message.get("id")
        if self._open is not None and (not message_id or self._open.id != message_id):
            yield self._closed()
        if self._open is None:
            self._open = _OpenMessage(str(message_id or ""))
        self._open.add(message)
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                self._names[str(block.get("id"))] = str(block.get("name"))

    def _answered(self, message: dict[str, Any]) -> Iterator[LoopOutput]:
        results = [block for block in _blocks(message) if block.get("type") == "tool_result"]
        if results and self._open is not None:
            yield self._closed()
        for block in results:
            call_id = str(block.get("tool_use_id") or "")
            yield Message(
                role=Role.TOOL_RESULT.value,
                content=_result_content(block.get("content")),
                api=API,
                tool_call_id=call_id,
                tool_name=self._names.get(call_id, ""),
                is_error=block.get("is_error") is True,
                provider_data={"cli_session": self.session_id},
            )

    def _wrote(self, event: dict[str, Any]) -> Iterator[LoopOutput]:
        match event.get("type"):
            case "message_start":
                yield from self.rest()
                self._writing = _dict(event.get("message"))
            case "content_block_delta":
                piece = _dict(event.get("delta"))
                kind, key = _DELTAS.get(str(piece.get("type")), ("", ""))
                index = event.get("index")
                if kind and isinstance(text := piece.get(key), str):
                    yield Delta(kind, text, index if type(index) is int else 0)
            case "message_delta" if self._is_writing():
                assert self._open is not None
                self._open.stop_reason = _dict(event.get("delta")).get("stop_reason")
                self._open.usage |= _counts(event.get("usage"))
            case "message_stop" if self._is_writing():
                # One without calls may be the last, of which the end says more: it is kept until
                # something comes after it.
                assert self._open is not None
                self._open.is_whole = True
                if self._open.calls_tools:
                    yield self._closed()

    def _is_writing(self) -> bool:
        return self._open is not None and self._open.id == self._writing.get("id")

    def _ended(self, line: dict[str, Any]) -> Iterator[LoopOutput | Ending]:
        error = _error_of(line)
        if self._open is None and error is None and not self._has_spoken:
            text = line.get("result")
            if isinstance(text, str) and text:  # of a command that needed no model
                self._open = _OpenMessage("", content=[{"type": "text", "text": text}])
        if self._open is not None:
            yield self._closed(_total(line), is_end=True)
        yield Ending(error)

    def _closed(self, total: Usage | None = None, *, is_end: bool = False) -> Message:
        assert self._open is not None
        written, self._open = self._open, None
        usage = _usage(written.usage)
        self._has_spoken = True
        self._usage = self._usage + usage
        if total is not None:
            # The lines before counted what was sent, and hardly what was said.
            usage = usage + _missing(total, self._usage)
        return Message(
            role=Role.ASSISTANT.value,
            content=_said_content(written.content),
            api=API,
            model=written.model,
            usage=usage,
            stop_reason=written.end,
            provider_data={"cli_session": self.session_id} | ({"is_end": True} if is_end else {}),
        )


@dataclass(slots=True)
class _OpenMessage:
    """A message of which more may come."""

    id: str
    content: list[dict[str, Any]] = field(default_factory=list)
    model: str = ""
    stop_reason: Any = None
    usage: dict[str, int] = field(default_factory=dict)
    is_whole: bool = False

    def add(self, message: dict[str, Any]) -> None:
        blocks = _blocks(message)
        # Mostly a line has the next block; one that has all blocks up to now is understood, too.
        is_whole = blocks[: len(self.content)] == self.content
        self.content = blocks if is_whole else [*self.content, *blocks]
        self.model = str(message.get("model") or self.model)
        self.stop_reason = message.get("stop_reason") or self.stop_reason
        self.usage |= _counts(message.get("usage"))

    @property
    def calls_tools(self) -> bool:
        return any(block.get("type") == "tool_use" for block in self.content)

    @property
    def end(self) -> str:
        if self.calls_tools:
            return StopReason.TOOL_USE.value
        return _STOP_REASONS.get(str(self.stop_reason), StopReason.STOP).value


def _is_flag(argument: str, flag: str, short: str) -> bool:
    return argument in (flag, short or flag) or argument.startswith(f"{flag}=")


def _error_of(line: dict[str, Any]) -> PerdureError | None:
    subtype = str(line.get("subtype") or "success")
    if subtype == "error_max_turns":
        return MaxTurnsError(
            "the command used up its own turns (--max-turns); run again without input to let it "
            "go on"
        )
    if subtype == "success" and line.get("is_error") is not True:
        return None
    errors = line.get("errors")
    details = errors if isinstance(errors, list) else [line.get("result")]
    told = "; ".join(str(detail) for detail in details if detail)
    what = "an error" if subtype == "success" else subtype
    return LoopError(
        f"the command reported {what}: {told}" if told else f"the command reported {what}"
    )


def _given(block: ContentBlock) -> dict[str, Any]:
    """A block of what a person said, in the form of the Messages API."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
            return {"type": "image", "source": source}
        case FileBlock() if block.data or block.url:
            kind = "image" if block.mime_type.startswith("image/") else "document"
            source = (
                {"type": "base64", "media_type": block.mime_type, "data": block.data}
                if block.data
                else {"type": "url", "url": block.url}
            )
            return {"type": kind, "source": source}
    return {"type": "text", "text": dumps_json(block.to_wire()).decode("utf-8", "replace")}


def _said_content(blocks: list[dict[str, Any]]) -> list[ContentBlock]:
    content: list[ContentBlock] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                content.append(TextBlock(text=str(block.get("text") or "")))
            case "thinking":
                content.append(
                    ThinkingBlock(
                        thinking=str(block.get("thinking") or ""),
                        signature=str(block.get("signature") or ""),
                    )
                )
            case "tool_use" | "server_tool_use" | "mcp_tool_use" as kind:
                content.append(
                    ToolCallBlock(
                        id=str(block.get("id") or ""),
                        name=str(block.get("name") or ""),
                        arguments=_dict(block.get("input")),
                        server=kind != "tool_use",
                    )
                )
            case str(kind) if kind.endswith("_tool_result"):
                _put_output(content, block)
            case _:
                content.append(_unknown(block))
    return content


def _put_output(content: list[ContentBlock], block: dict[str, Any]) -> None:
    """What a tool gave that the provider ran belongs to its call."""
    for place, call in enumerate(content):
        if isinstance(call, ToolCallBlock) and call.id == block.get("tool_use_id"):
            output = ToolOutput(raw=block.get("content"), is_error=block.get("is_error") is True)
            content[place] = call.model_copy(update={"output": output})
            return
    content.append(_unknown(block))


def _result_content(content: Any) -> list[ContentBlock]:
    if isinstance(content, str):
        return [TextBlock(text=content)]
    blocks: list[ContentBlock] = []
    for block in content if isinstance(content, list) else ():
        source = _dict(_dict(block).get("source"))
        match _dict(block).get("type"):
            case "text":
                blocks.append(TextBlock(text=str(block.get("text") or "")))
            case "image" if source.get("type") == "base64":
                blocks.append(
                    ImageBlock(
                        data=str(source.get("data") or ""),
                        mime_type=str(source.get("media_type") or ""),
                    )
                )
            case _:
                blocks.append(_unknown(_dict(block)))
    return blocks


def _unknown(block: dict[str, Any]) -> OpaqueBlock:
    """Content that perdure has no form for is kept as it is, under a type that is not one of
    perdure's.
    """
    return OpaqueBlock.model_validate({**block, "type": f"{API}/{block.get('type')}"})


def _counts(usage: Any) -> dict[str, int]:
    return {
        key: count
        for key, count in _dict(usage).items()
        if type(count) is int and 0 <= count < 2**53
    }


def _usage(counts: dict[str, int]) -> Usage:
    return Usage(
        input=counts.get("input_tokens", 0),
        output=counts.get("output_tokens", 0),
        cache_read=counts.get("cache_read_input_tokens", 0),
        cache_write=counts.get("cache_creation_input_tokens", 0),
    )


def _total(line: dict[str, Any]) -> Usage:
    """What the whole run of the command consumed. Of its cost only the sum is known."""
    cost = line.get("total_cost_usd")
    usage = _usage(_counts(line.get("usage")))
    if not isinstance(cost, (int, float)) or not 0 < cost < float("inf"):
        return usage
    return usage.model_copy(update={"cost": Cost(output=float(cost))})


def _missing(total: Usage, counted: Usage) -> Usage:
    counts = ("input", "output", "cache_read", "cache_write")
    return Usage(
        **{name: max(getattr(total, name) - getattr(counted, name), 0) for name in counts},
        cost=total.cost,
    )


def _message(line: dict[str, Any]) -> dict[str, Any]:
    message = line.get("message")
    if not isinstance(message, dict):
        raise LineError(f"`message` is {_kind(message)}, not an object")
    content = message.get("content")
    if not isinstance(content, str | list):
        raise LineError(f"the `content` of the message is {_kind(content)}, not a text or a list")
    if isinstance(content, list) and not all(isinstance(block, dict) for block in content):
        raise LineError("the `content` of the message lists something that is not an object")
    return message


def _kind(value: Any) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
