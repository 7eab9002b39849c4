"""Messages and their content, as the log holds them and a model is sent them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag

from perdure.deferred import Deferred
from perdure.json_reader import loads_json
from perdure.timestamps import Timestamp
from perdure.usage import Usage
from perdure.wire_model import Flag, Text, WireModel


class Role(StrEnum):
    """Who speaks. The log may hold other roles; they are kept and never sent to a model."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"


class StopReason(StrEnum):
    """Why an assistant message ended."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_USE = "tool_use"
    ERROR = "error"
    ABORTED = "aborted"


class TextBlock(WireModel):
    """Text; `signature` is the provider's own mark on it."""

    type: Literal["text"] = "text"
    text: Text = ""
    signature: Text = ""


class ThinkingBlock(WireModel):
    """What a model thought before it answered."""

    type: Literal["thinking"] = "thinking"
    signature: Text = ""
    thinking: Text = ""


class ImageBlock(WireModel):
    """An image, in base64."""

    type: Literal["image"] = "image"
    data: Text = ""
    mime_type: Text = ""


class FileBlock(WireModel):
    """A file: its content in base64, a URL, or the ID that a provider gave it."""

    type: Literal["file"] = "file"
    data: Text = ""
    mime_type: Text = ""
    url: Text = ""
    file_id: Text = ""
    filename: Text = ""


class ToolOutput(WireModel):
    """What a call that the provider ran itself gave; `raw` is the provider's own form, any JSON."""

    content: Text = ""
    raw: Any = None
    is_error: Flag = False

    def to_wire(self) -> dict[str, Any]:
        """The wire form; `raw` may be empty there, but for null."""
        wire = super().to_wire()
        if self.raw is not None and "raw" not in wire:
            error = wire.pop("is_error", None)
            wire["raw"] = self.raw
            if error is not None:
                wire["is_error"] = error
        return wire


class ToolCallBlock(WireModel):
    """A call of a tool; with `server` one that the provider runs itself, `output` its outcome."""

    type: Literal["tool_call"] = "tool_call"
    signature: Text = ""
    id: Text = ""
    name: Text = ""
    arguments: dict[Text, Any] = Field(default_factory=dict)
    server: Flag = False
    server_type: Text = ""
    output: ToolOutput | None = None


class OpaqueBlock(WireModel):
    """Content of a type that this version does not know: kept, shown, never sent to a model."""

    type: Annotated[Text, Field(min_length=1)]


def _block_tag(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if not isinstance(kind, str) or not kind:
        return None
    return kind if kind in _KNOWN_BLOCKS else "opaque"


_KNOWN_BLOCKS: Final = frozenset({"text", "thinking", "image", "file", "tool_call"})

ContentBlock = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[FileBlock, Tag("file")]
    | Annotated[ToolCallBlock, Tag("tool_call")]
    | Annotated[OpaqueBlock, Tag("opaque")],
    Discriminator(
        _block_tag,
        custom_error_type="block_type",
        custom_error_message="a content block is an object with a type",
    ),
]


class Outline(NamedTuple):
    """What the projection to a model's view asks of a message, without taking it apart."""

    role: str
    tool_call_id: str
    call_ids: tuple[str, ...]
    """The calls that the client runs, in order."""
    has_opaque: bool


def _outline_of(message: Message) -> Outline:
    return Outline(
        message.role,
        message.tool_call_id,
        tuple(call.id for call in message.tool_calls),
        any(isinstance(block, OpaqueBlock) for block in message.content),
    )


def _blocks_of(content: Any) -> Any:
    return (TextBlock(text=content),) if isinstance(content, str) else content


def _readable_time(value: Any) -> Any:
    """A message's time, or None for one that cannot be read: it is no reason to lose a session."""
    if not isinstance(value, str):
        return value if isinstance(value, (Timestamp, datetime)) else None
    try:
        return Timestamp.parse(value)
    except ValueError:
        return None


class Message(Deferred):
    """One message of a conversation. Text given as `content` becomes one text block."""

    __slots__ = ("outline",)  # filled when it is first asked for, or by the codec

    always_written: ClassVar[frozenset[str]] = frozenset({"role", "content"})

    role: Text = ""
    content: Annotated[tuple[ContentBlock, ...], BeforeValidator(_blocks_of)] = ()
    api: Text = ""
    provider: Text = ""
    model: Text = ""
    usage: Usage | None = None
    stop_reason: Text = ""
    error: Text = ""
    tool_call_id: Text = ""
    tool_name: Text = ""
    is_error: Flag = False
    timestamp: Annotated[Timestamp | None, BeforeValidator(_readable_time)] = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            role: str = "",
            content: str | Iterable[ContentBlock] = (),
            api: str = "",
            provider: str = "",
            model: str = "",
            usage: Usage | None = None,
            stop_reason: str = "",
            error: str = "",
            tool_call_id: str = "",
            tool_name: str = "",
            is_error: bool = False,
            timestamp: Timestamp | None = None,
            **unknown: Any,
        ) -> None: ...

        @property
        def outline(self) -> Outline:
            """What the projection to a model's view asks of the message."""

    else:

        def __getattr__(self, name: str) -> Any:
            if name != "outline":
                return super().__getattr__(name)
            outline = _outline_of(self)
            object.__setattr__(self, "outline", outline)
            return outline

    @property
    def text(self) -> str:
        """The text blocks, with nothing between."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls that the client has to run; those that the provider ran are not among them."""
        return tuple(
            block for block in self.content if isinstance(block, ToolCallBlock) and not block.server
        )

    def to_wire(self) -> dict[str, Any]:
        """The wire form: no content is null, and the time is in UTC."""
        wire = super().to_wire()
        wire["content"] = wire["content"] or None
        if isinstance(self.timestamp, Timestamp):
            wire["timestamp"] = str(self.timestamp.in_utc())
        return wire

    def _from_source(self, source: bytes) -> Self:
        data = loads_json(source, allow_overflow=True)
        return self.model_validate(data.get("message") or {})
