"""The tools of MCP servers, as tools of an agent."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp.types import (
    ContentBlock as McpContent,
)
from mcp.types import (
    Tool as McpOffer,
)

from perdure.activities.mcp_connections import McpConnection
from perdure.activities.outputs import faults_against
from perdure.errors import AgentError, ToolArgumentsError, ToolCallError
from perdure.mcp_servers import McpServer
from perdure.messages import ContentBlock, FileBlock, ImageBlock, TextBlock
from perdure.tool_context import ToolContext
from perdure.tool_schema import refuse_invalid_json
from perdure.tools import Tool

_LONGEST_NAME: Final = 64
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")


class McpTool(Tool[..., Any]):
    """A tool that runs on an MCP server."""

    __slots__ = ("_connection", "_offered")

    def __init__(self, server: McpServer, connection: McpConnection, offer: McpOffer) -> None:
        super().__init__(
            _nothing_here,
            name=tool_name(server.prefix, offer.name),
            idempotent=server.is_idempotent(offer.name),
            timeout=server.timeout,
            needs_approval=server.wants_approval(offer.name),
        )
        # What a tool otherwise reads from its function.
        description = offer.description or offer.title or ""
        object.__setattr__(self, "description", description)
        schema = {"type": "object", "properties": {}, **offer.input_schema}
        object.__setattr__(self, "parameters", schema)
        self._connection = connection
        self._offered = offer.name

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Whether the arguments fit the schema that the server gave; the rest is for it to say,
        when it is called. Raises ToolArgumentsError.
        """
        refuse_invalid_json(self.name, arguments)
        faults = faults_against(self.parameters, dict(arguments))
        if faults:
            raise ToolArgumentsError(f"the arguments do not fit {self.name}:\n{faults}")

    async def call(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[ContentBlock, ...]:
        """Have the server run the tool. Raises ToolCallError with what the model shall read,
        ToolArgumentsError for arguments that are no JSON object.
        """
        refuse_invalid_json(self.name, arguments)
        result = await self._connection.call(self._offered, dict(arguments))
        content = content_of(result)
        if result.is_error:
            raise ToolCallError(_as_text(content) or f"{self.name} failed and did not say why")
        return content


async def _nothing_here() -> None:
    """What an MCP tool does, its server does."""


def tools_of(
    server: McpServer, connection: McpConnection, offers: Iterable[McpOffer]
) -> list[McpTool]:
    """The tools that an agent gets of what a server offers. Raises AgentError when the server does
    not offer what the declaration names.
    """
    offered = list(offers)
    names = {offer.name for offer in offered}
    for what in ("only", "idempotent", "needs_approval"):
        wanted: object = getattr(server, what)
        if isinstance(wanted, frozenset) and (missing := sorted(wanted - names)):
            raise AgentError(
                f"the MCP server {server.label!r} has no tool {missing[0]!r}, which {what} names; "
                f"it has: {', '.join(sorted(names)) or 'none'}"
            )
    return [
        McpTool(server, connection, offer)
        for offer in offered
        if server.only is None or offer.name in server.only
    ]


def tool_name(prefix: str, name: str) -> str:
    """What an agent calls a server's tool: a name that every provider takes, the same each time."""
    full = f"{prefix}_{name}" if prefix else name
    plain = _NOT_IN_A_NAME.sub("_", full)
    if len(plain) <= _LONGEST_NAME:
        return plain
    mark = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: _LONGEST_NAME - 9]}_{mark}"


def content_of(result: CallToolResult) -> tuple[ContentBlock, ...]:
    """A result as a model reads it. JSON that the server gave besides is only shown when there is
    nothing else: servers repeat it as text.
    """
    if not result.content and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
        return (TextBlock(text=text),)
    return tuple(_block(part) for part in result.content)


def _block(part: McpContent) -> ContentBlock:
    match part:
        case TextContent():
            return TextBlock(text=part.text)
        case ImageContent():
            return ImageBlock(data=part.data, mime_type=part.mime_type)
        case AudioContent():
            return FileBlock(data=part.data, mime_type=part.mime_type)
        case ResourceLink():
            return TextBlock(text=_link(part))
        case EmbeddedResource():
            return _resource(part)


def _link(link: ResourceLink) -> str:
    kind = f" ({link.mime_type})" if link.mime_type else ""
    about = f": {link.description}" if link.description else ""
    return f"{link.title or link.name} <{link.uri}>{kind}{about}"


def _resource(part: EmbeddedResource) -> ContentBlock:
    resource = part.resource
    if isinstance(resource, TextResourceContents):
        return TextBlock(text=resource.text)
    mime_type = resource.mime_type or "application/octet-stream"
    if mime_type.startswith("image/"):
        return ImageBlock(data=resource.blob, mime_type=mime_type)
    name = PurePosixPath(urlsplit(str(resource.uri)).path).name
    return FileBlock(data=resource.blob, mime_type=mime_type, filename=name)


def _as_text(content: Iterable[ContentBlock]) -> str:
    texts = (block.text for block in content if isinstance(block, TextBlock))
    return "\n".join(text for text in texts if text)
