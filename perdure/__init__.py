"""Sessions of AI agents that last: every conversation one long-lived Temporal workflow over a log
that you own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        CommandConflictError,
        CommandError,
        CommandTooLargeError,
        ContentFilterError,
        ContextOverflowError,
        DamagedLogError,
        EncryptionError,
        EntryDecodeError,
        EntryEncodeError,
        EntryError,
        EntryKindError,
        EntryNotFoundError,
        InvalidSessionIdError,
        JsonError,
        LoopError,
        MaxTurnsError,
        McpServerError,
        ModelAccessError,
        ModelError,
        ModelQuotaError,
        ModelRequestError,
        ModelSpecError,
        OutputError,
        PerdureError,
        RunCancelledError,
        RunFailedError,
        ServerError,
        ServerMissingError,
        SessionBusyError,
        SessionClosedError,
        SessionExistsError,
        SessionNotFoundError,
        StoreError,
        TenantError,
        ToolArgumentsError,
        ToolCallError,
        ToolResultError,
        UnknownAgentError,
        UnknownCommandError,
    )
    from perdure.in_process import local
    from perdure.lifecycle import SessionEvent
    from perdure.loops import CommandLoop, Loop, LoopContext
    from perdure.mcp_servers import McpServer
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
    from perdure.output_run import OutputRun
    from perdure.plugin import PerdurePlugin
    from perdure.protocol import PendingApproval, Status
    from perdure.run import Run, RunEvent
    from perdure.session import Session
    from perdure.sub_agents import sub_agent
    from perdure.timestamps import Timestamp
    from perdure.tools import ToolContext, tool
    from perdure.transcript import Transcript
    from perdure.tree import TreeNode
    from perdure.usage import Usage

__all__ = [
    "Agent",
    "AgentError",
    "CommandConflictError",
    "CommandError",
    "CommandLoop",
    "CommandTooLargeError",
    "CompactionEntry",
    "ContentBlock",
    "ContentFilterError",
    "ContextOverflowError",
    "CustomEntry",
    "DamagedLogError",
    "EncryptionError",
    "Entry",
    "EntryDecodeError",
    "EntryEncodeError",
    "EntryError",
    "EntryKindError",
    "EntryNotFoundError",
    "FileBlock",
    "ImageBlock",
    "InvalidSessionIdError",
    "JsonError",
    "Loop",
    "LoopContext",
    "LoopError",
    "MaxTurnsError",
    "McpServer",
    "McpServerError",
    "Message",
    "MessageEntry",
    "ModelAccessError",
    "ModelError",
    "ModelQuotaError",
    "ModelRequestError",
    "ModelSpecError",
    "OpaqueBlock",
    "OpaqueEntry",
    "OutputError",
    "OutputRun",
    "PendingApproval",
    "PerdureError",
    "PerdurePlugin",
    "Run",
    "RunCancelledError",
    "RunEvent",
    "RunFailedError",
    "ServerError",
    "ServerMissingError",
    "Session",
    "SessionBusyError",
    "SessionClosedError",
    "SessionEvent",
    "SessionExistsError",
    "SessionNotFoundError",
    "SessionRecord",
    "Sessions",
    "Status",
    "StoreError",
    "TenantError",
    "TextBlock",
    "ThinkingBlock",
    "Timestamp",
    "ToolArgumentsError",
    "ToolCallBlock",
    "ToolCallError",
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
    "sub_agent",
    "text",
    "tool",
]

# Loaded when they are first used: whoever only reads logs does not wait for Temporal's client, and
# a client does not wait for the worker.
_HOMES = {
    "Agent": "perdure.agent",
    "Sessions": "perdure.client",
    "decode_entry": "perdure.codec",
    "encode_entry": "perdure.codec",
    "CompactionEntry": "perdure.entries",
    "CustomEntry": "perdure.entries",
    "Entry": "perdure.entries",
    "MessageEntry": "perdure.entries",
    "OpaqueEntry": "perdure.entries",
    "SessionRecord": "perdure.entries",
    "ephemeral": "perdure.entries",
    "file": "perdure.entries",
    "image": "perdure.entries",
    "text": "perdure.entries",
    "AgentError": "perdure.errors",
    "CommandConflictError": "perdure.errors",
    "CommandError": "perdure.errors",
    "CommandTooLargeError": "perdure.errors",
    "ContentFilterError": "perdure.errors",
    "ContextOverflowError": "perdure.errors",
    "DamagedLogError": "perdure.errors",
    "EncryptionError": "perdure.errors",
    "EntryDecodeError": "perdure.errors",
    "EntryEncodeError": "perdure.errors",
    "EntryError": "perdure.errors",
    "EntryKindError": "perdure.errors",
    "EntryNotFoundError": "perdure.errors",
    "InvalidSessionIdError": "perdure.errors",
    "JsonError": "perdure.errors",
    "LoopError": "perdure.errors",
    "MaxTurnsError": "perdure.errors",
    "McpServerError": "perdure.errors",
    "ModelAccessError": "perdure.errors",
    "ModelError": "perdure.errors",
    "ModelQuotaError": "perdure.errors",
    "ModelRequestError": "perdure.errors",
    "ModelSpecError": "perdure.errors",
    "OutputError": "perdure.errors",
    "PerdureError": "perdure.errors",
    "RunCancelledError": "perdure.errors",
    "RunFailedError": "perdure.errors",
    "ServerError": "perdure.errors",
    "ServerMissingError": "perdure.errors",
    "SessionBusyError": "perdure.errors",
    "SessionClosedError": "perdure.errors",
    "SessionExistsError": "perdure.errors",
    "SessionNotFoundError": "perdure.errors",
    "StoreError": "perdure.errors",
    "TenantError": "perdure.errors",
    "ToolArgumentsError": "perdure.errors",
    "ToolCallError": "perdure.errors",
    "ToolResultError": "perdure.errors",
    "UnknownAgentError": "perdure.errors",
    "UnknownCommandError": "perdure.errors",
    "SessionEvent": "perdure.lifecycle",
    "local": "perdure.in_process",
    "CommandLoop": "perdure.loops",
    "Loop": "perdure.loops",
    "LoopContext": "perdure.loops",
    "McpServer": "perdure.mcp_servers",
    "ContentBlock": "perdure.messages",
    "FileBlock": "perdure.messages",
    "ImageBlock": "perdure.messages",
    "Message": "perdure.messages",
    "OpaqueBlock": "perdure.messages",
    "TextBlock": "perdure.messages",
    "ThinkingBlock": "perdure.messages",
    "ToolCallBlock": "perdure.messages",
    "OutputRun": "perdure.output_run",
    "PerdurePlugin": "perdure.plugin",
    "PendingApproval": "perdure.protocol",
    "Status": "perdure.protocol",
    "Run": "perdure.run",
    "RunEvent": "perdure.run",
    "Session": "perdure.session",
    "sub_agent": "perdure.sub_agents",
    "Timestamp": "perdure.timestamps",
    "ToolContext": "perdure.tools",
    "tool": "perdure.tools",
    "Transcript": "perdure.transcript",
    "TreeNode": "perdure.tree",
    "Usage": "perdure.usage",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
