"""Loops of one's own: whatever runs an agent by itself, in place of a model that perdure drives."""

from perdure.loops.command import CommandLoop, CommandProtocol
from perdure.loops.protocol import Loop, LoopContext, LoopOutput, OnCrash
from perdure.loops.stream_json import StreamJson

__all__ = [
    "CommandLoop",
    "CommandProtocol",
    "Loop",
    "LoopContext",
    "LoopOutput",
    "OnCrash",
    "StreamJson",
]
