"""Sessions of AI agents that last: every conversation one long-lived Temporal workflow over a
log that you own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perdure.agent import Agent
from perdure.client import Sessions
from perdure.codec import decode_entry, encode_entry
from perdure.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    OpaqueEntry,
    SessionRecord,
    ephemeral,
    file,
    image,
    text,
)
from perdure.errors import (
    AgentError,
    CommandError,
    CommandTooLargeError,
    DamagedLogError,
    EntryDecodeError,
    EntryEncodeError,
    EntryError,
    EntryKindError,
    InvalidSessionIdError,
    JsonError,
    MaxTurnsError,
    ModelError,
    ModelSpecError,
    PerdureError,
    RunFailedError,
    ServerError,
    ServerMissingError,
    SessionClosedError,
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
    ToolArgumentsError,
    ToolResultError,
    UnknownAgentError,
    UnknownCommandError,
)
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from perdure.protocol import Status
from perdure.run import Run, RunEvent
from perdure.session import Session
from perdure.timestamps import Timestamp
from perdure.tools import ToolContext, tool
from perdure.transcript import Transcript
from perdure.tree import TreeNode
from perdure.usage import Usage

if TYPE_CHECKING:
    from perdure.in_process import local
    from perdure.plugin import PerdurePlugin

# These bring the worker with them, and with it the workflow: a client has no use for either.
_WORKER_SIDE = {"PerdurePlugin": "perdure.plugin", "local": "perdure.in_process"}

__all__ = [
    "Agent",
    "AgentError",
    "CommandError",
    "CommandTooLargeError",
    "CompactionEntry",
    "ContentBlock",
    "CustomEntry",
    "DamagedLogError",
    "Entry",
    "EntryDecodeError",
    "EntryEncodeError",
    "EntryError",
    "EntryKindError",
    "FileBlock",
    "ImageBlock",
    "InvalidSessionIdError",
    "JsonError",
    "MaxTurnsError",
    "Message",
    "MessageEntry",
    "ModelError",
    "ModelSpecError",
    "OpaqueBlock",
    "OpaqueEntry",
    "PerdureError",
    "PerdurePlugin",
    "Run",
    "RunEvent",
    "RunFailedError",
    "ServerError",
    "ServerMissingError",
    "Session",
    "SessionClosedError",
    "SessionExistsError",
    "SessionNotFoundError",
    "SessionRecord",
    "Sessions",
    "Status",
    "StoreError",
    "TextBlock",
    "ThinkingBlock",
    "Timestamp",
    "ToolArgumentsError",
    "ToolCallBlock",
    "ToolContext",
    "ToolResultError",
    "Transcript",
    "TreeNode",
    "UnknownAgentError",
    "UnknownCommandError",
    "Usage",
    "decode_entry",
    "encode_entry",
    "ephemeral",
    "file",
    "image",
    "local",
    "text",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name in _WORKER_SIDE:
        return getattr(import_module(_WORKER_SIDE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
