"""What runs in a session: a model, its instructions and its tools."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from perdure.errors import AgentError
from perdure.loops.protocol import Loop, is_loop
from perdure.mcp_servers import McpServer
from perdure.models import LanguageModel, ModelChoice, ToolSpec, check_model, resolve_model
from perdure.tools import Tool

MAX_NAME: Final = 200


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Agent:
    """A named agent. Workers are given agents; sessions name the one that they use.

    `model` is a spec (`"anthropic:claude-sonnet-5-5"`), a pydantic-ai model, any `LanguageModel`,
    a `Loop` that runs in place of one, or None for sessions that only record. A plain function
    among `tools` becomes a tool; the tools of the servers in `mcp` come after those, and are listed
    anew for each run. `max_turns` is how often one run may call the model. With
    `compact_at_tokens`, a conversation that the last call was charged that many tokens for is
    compacted before the next call, and one that turns out to be too long for the model is compacted
    once and sent again; `compact_model` writes the summaries in place of `model`. `stream_interval`
    is how often those who watch a streamed run are told what the model says, in seconds.

    Raises `AgentError` when something is declared wrongly. A spec is only looked up when a run
    starts, so that an agent can be declared where no API key is at hand.
    """

    name: str
    model: ModelChoice | Loop
    instructions: str
    tools: tuple[Tool[..., Any], ...]
    mcp: tuple[McpServer, ...]
    max_turns: int
    compact_at_tokens: int | None
    compact_model: ModelChoice
    stream_interval: float

    def __init__(
        self,
        name: str,
        *,
        model: ModelChoice | Loop,
        instructions: str = "",
        tools: Iterable[Tool[..., Any] | Callable[..., Any]] = (),
        mcp: Iterable[McpServer] = (),
        max_turns: int = 50,
        compact_at_tokens: int | None = None,
        compact_model: ModelChoice = None,
        stream_interval: float = 0.2,
    ) -> None:
        _check_name(name)
        if is_loop(model):
            _check_loop_agent(name, bool(tools or mcp), compact_at_tokens)
        else:
            check_model(cast("ModelChoice", model))
        if not isinstance(instructions, str):
            raise AgentError(
                f"the instructions of agent {name!r} must be text, not {instructions!r}"
            )
        if type(max_turns) is not int or max_turns < 1:
            raise AgentError(f"max_turns of agent {name!r} must be at least 1, not {max_turns!r}")
        if compact_at_tokens is not None and (
            type(compact_at_tokens) is not int or compact_at_tokens < 1
        ):
            raise AgentError(
                f"compact_at_tokens of agent {name!r} must be at least 1, not {compact_at_tokens!r}"
            )
        check_model(compact_model)
        if type(stream_interval) not in (int, float) or not 0 < stream_interval < math.inf:
            raise AgentError(
                f"stream_interval of agent {name!r} must be seconds, more than 0, "
                f"not {stream_interval!r}"
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "instructions", instructions)
        object.__setattr__(self, "tools", _tools(name, tools))
        object.__setattr__(self, "mcp", _servers(name, mcp))
        object.__setattr__(self, "max_turns", max_turns)
        object.__setattr__(self, "compact_at_tokens", compact_at_tokens)
        object.__setattr__(self, "compact_model", compact_model)
        object.__setattr__(self, "stream_interval", float(stream_interval))

    def __repr__(self) -> str:
        return f"<Agent {self.name!r}>"

    def tool(self, name: str) -> Tool[..., Any] | None:
        """The agent's own tool of that name, if it has one."""
        return self._tools_by_name.get(name)

    @cached_property
    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """The agent's own tools as the model is told of them, in the order of their declaration."""
        return tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in self.tools)

    @property
    def loop(self) -> Loop | None:
        """The loop that runs in place of a model, if the agent brings one."""
        return self.model if is_loop(self.model) else None

    def language_model(self) -> LanguageModel | None:
        """The model, made once and kept; None for an agent without one, or with a loop.

        Raises `ModelSpecError` when a spec names nothing that is known, or lacks its package or its
        API key.
        """
        return self._language_model

    def compaction_model(self) -> LanguageModel | None:
        """The model that writes summaries, where it is not the agent's own."""
        return self._compaction_model

    @cached_property
    def _compaction_model(self) -> LanguageModel | None:
        return resolve_model(self.compact_model)

    @cached_property
    def _language_model(self) -> LanguageModel | None:
        return None if is_loop(self.model) else resolve_model(cast("ModelChoice", self.model))

    @cached_property
    def _tools_by_name(self) -> dict[str, Tool[..., Any]]:
        return {tool.name: tool for tool in self.tools}


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise AgentError(f"an agent needs a name, not {name!r}: sessions find it by that")
    if len(name) > MAX_NAME:
        raise AgentError(
            f"the agent name {name[:40]!r}… is {len(name)} characters long; at most {MAX_NAME}"
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise AgentError(f"the agent name {name!r} holds control characters; use printable ones")


def _check_loop_agent(name: str, has_tools: bool, compact_at_tokens: int | None) -> None:
    if has_tools:
        raise AgentError(
            f"agent {name!r} brings a loop, which calls tools of its own; give them to the loop"
        )
    if compact_at_tokens is not None:
        raise AgentError(
            f"agent {name!r} brings a loop, which minds its own context; leave compact_at_tokens "
            "out, and compact its sessions with session.compact()"
        )


def _tools(agent_name: str, declared: object) -> tuple[Tool[..., Any], ...]:
    if not isinstance(declared, Iterable) or isinstance(declared, (str, bytes)):
        raise AgentError(f"the tools of agent {agent_name!r} must be a list, not {declared!r}")
    tools: dict[str, Tool[..., Any]] = {}
    for function in declared:
        if not isinstance(function, Tool) and not callable(function):
            raise AgentError(
                f"the tools of agent {agent_name!r} must be functions, with no {function!r} among "
                "them"
            )
        tool = function if isinstance(function, Tool) else Tool(function)
        if tool.name in tools:
            raise AgentError(f"agent {agent_name!r} has two tools named {tool.name!r}; rename one")
        tools[tool.name] = tool
    return tuple(tools.values())


def _servers(agent_name: str, declared: object) -> tuple[McpServer, ...]:
    if not isinstance(declared, Iterable) or isinstance(declared, (str, bytes)):
        raise AgentError(f"mcp of agent {agent_name!r} must be a list, not {declared!r}")
    servers = tuple(declared)
    for server in servers:
        if not isinstance(server, McpServer):
            raise AgentError(
                f"mcp of agent {agent_name!r} lists McpServer(…)s, not {type(server).__name__}"
            )
    return servers
