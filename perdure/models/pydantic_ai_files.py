"""Text, images and files as pydantic-ai's; in place of a file that the model that reads it cannot
take stands a note that says so.

A conversation may go on with another model than the one that it began with. What only the first
could read must not end it.
"""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, cast, get_args

from pydantic_ai import messages as ai
from pydantic_ai.profiles import ModelProfile

from perdure.messages import ContentBlock, FileBlock, ImageBlock, TextBlock
from perdure.models.valid_text import valid_text


@dataclass(frozen=True, slots=True)
class Reader:
    """The model that a conversation is sent to.

    `system` is pydantic-ai's name for its provider, `api` the log's name for its protocol,
    `profile` what it can do.
    """

    system: str
    api: str = ""
    profile: ModelProfile = field(default_factory=ModelProfile)

    @property
    def refuses_blank_text(self) -> bool:
        """Whether a text of nothing but white space makes the request a bad one."""
        return self.api in ("anthropic-messages", "bedrock-converse-stream")


_FEW_TYPES: Final = frozenset({"anthropic-messages", "openai-completions", "openai-responses"})
"""Protocols that take images and audio of a few types, and no files of types that they do not
know.
"""
_IMAGES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_AUDIO: Final = frozenset({"audio/mp3", "audio/mpeg", "audio/wav", "audio/wave", "audio/x-wav"})
_TEXTUAL: Final = re.compile(
    r"text/.*|application/(.*[+-])?(json|xml|yaml|toml|sql|javascript|typescript|sh|csv)",
    re.IGNORECASE,
)
_FILE_STORES: Final = frozenset(get_args(ai.UploadedFileProviderName))
_FILE_IDS: Final = {
    "openai": ("file-",),
    "azure": ("file-", "assistant-"),
    "anthropic": ("file_",),
    "google": ("files/", "https://"),
    "bedrock": ("s3://",),
}
"""How the IDs begin that a provider gives to files."""


def user_content(blocks: Iterable[ContentBlock], reader: Reader) -> Iterator[ai.UserContent]:
    """What the blocks say, in their order; empty ones are left out."""
    for block in blocks:
        if isinstance(block, TextBlock):
            if block.text.strip() if reader.refuses_blank_text else block.text:
                yield valid_text(block.text)
        elif isinstance(block, ImageBlock):
            yield _readable(binary(block.data, block.mime_type or "image/png", "image"), reader)
        elif isinstance(block, FileBlock):
            file = _file(block, reader)
            if file is not None:
                yield _readable(file, reader)


def binary(data: str, mime_type: str, kind: str) -> ai.BinaryContent | str:
    """The content of an image or a file, or a note that it cannot be read."""
    try:
        decoded = base64.b64decode(data)
    except ValueError:
        decoded = b""
    if not decoded:
        return f"[{kind} whose data cannot be read]"
    return ai.BinaryContent.narrow_type(ai.BinaryContent(data=decoded, media_type=mime_type))


def _file(block: FileBlock, reader: Reader) -> ai.UserContent | None:
    named = block.filename or block.url
    mime_type = block.mime_type or mimetypes.guess_type(named)[0] or ""
    if block.data:
        return binary(block.data, mime_type or "application/octet-stream", "file")
    if block.url:
        return _linked(valid_text(block.url), mime_type)
    if not block.file_id:
        return None
    if not _keeps(reader.system, block.file_id):
        return f"[file {valid_text(block.file_id)}, kept by another provider]"
    provider = cast(ai.UploadedFileProviderName, reader.system)
    return ai.UploadedFile(
        file_id=valid_text(block.file_id), provider_name=provider, media_type=mime_type or None
    )


def _keeps(system: str, file_id: str) -> bool:
    """Whether the provider may be the one that gave the ID: nothing says so but its form."""
    if system not in _FILE_STORES:
        return False
    stores = {store for store, begin in _FILE_IDS.items() if file_id.startswith(begin)}
    return not stores or any(system.startswith(store) for store in stores)


def _linked(url: str, mime_type: str) -> ai.UserContent:
    if not mime_type:
        return url  # nothing says what it is, so only a reader of links can make something of it
    match mime_type.partition("/")[0]:
        case "image":
            return ai.ImageUrl(url=url, media_type=mime_type)
        case "audio":
            return ai.AudioUrl(url=url, media_type=mime_type)
        case "video":
            return ai.VideoUrl(url=url, media_type=mime_type)
        case _:
            return ai.DocumentUrl(url=url, media_type=mime_type)


def _readable(content: ai.UserContent, reader: Reader) -> ai.UserContent:
    if not isinstance(content, ai.FileUrl | ai.BinaryContent):
        return content
    kind = _kind(content)
    if isinstance(content, ai.BinaryContent) and _TEXTUAL.fullmatch(content.media_type):
        return _textual(content, kind, reader)
    if _reads(kind, content, reader):
        return content
    where = valid_text(content.url) if isinstance(content, ai.FileUrl) else ""
    size = f", {len(content.data):,} bytes" if isinstance(content, ai.BinaryContent) else ""
    described = f"{content.media_type}{size}{where and ', '}{where}"
    return f"[{kind or 'file'} that this model cannot read: {described}]"


def _textual(content: ai.BinaryContent, kind: str, reader: Reader) -> ai.UserContent:
    """A file of text, as a document of the type that the model reads, or as text."""
    text = content.data.decode("utf-8", "replace")
    media_type = content.media_type if _reads(kind, content, reader) else "text/plain"
    document = ai.BinaryContent(data=text.encode(), media_type=media_type)
    return document if _reads(_kind(document), document, reader) else text


def _kind(content: ai.FileUrl | ai.BinaryContent) -> str:
    match content:
        case ai.ImageUrl() | ai.BinaryContent(is_image=True):
            return "image"
        case ai.AudioUrl() | ai.BinaryContent(is_audio=True):
            return "audio"
        case ai.VideoUrl() | ai.BinaryContent(is_video=True):
            return "video"
        case ai.DocumentUrl() | ai.BinaryContent(is_document=True):
            return "document"
        case _:
            return ""


def _reads(kind: str, content: ai.FileUrl | ai.BinaryContent, reader: Reader) -> bool:
    profile, media_type = reader.profile, content.media_type
    takes_all = reader.api not in _FEW_TYPES or isinstance(content, ai.FileUrl)
    match kind:
        case "image":
            return profile.get("supports_image_input", True) and (
                takes_all or media_type in _IMAGES
            )
        case "audio":
            return profile.get("supports_audio_file_input", True) and (
                takes_all or media_type in _AUDIO
            )
        case "video":
            return profile.get("supports_video_input", True)
        case "document":
            supported: Iterable[str] = profile.get("supported_document_media_types", (media_type,))
            return profile.get("supports_document_input", True) and media_type in supported
        case _:
            return takes_all
