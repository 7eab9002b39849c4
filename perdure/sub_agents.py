"""Sub-agents: an agent as a tool of another.

A call starts a session of its own for the agent, gives it one task, and has its answer as the
result. It is the session's workflow that does it, with a workflow for the other session as its
child, so a call takes no place on a worker while the other agent is at work.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from perdure.agent import MAX_NAME, Agent
from perdure.errors import AgentError, ToolCallError
from perdure.tool_condition import NeedsApproval
from perdure.tools import Tool

TASK: Final = "task"
"""The one argument of a sub-agent's tool."""


class SubAgent(Tool[..., Any]):
    """A tool that has another agent do a task. Made by `sub_agent`."""

    __slots__ = ("agent", "agent_name")

    agent_name: Final[str]
    agent: Final[Agent | None]

    def __init__(
        self,
        agent: Agent | str,
        *,
        description: str,
        name: str | None = None,
        timeout: float | None = None,
        needs_approval: NeedsApproval = False,
    ) -> None:
        self.agent = agent if isinstance(agent, Agent) else None
        self.agent_name = _checked_name(agent)
        super().__init__(
            _described(description, self.agent_name),
            name=name or self.agent_name,
            timeout=timeout,
            needs_approval=needs_approval,
        )


def sub_agent(
    agent: Agent | str,
    *,
    description: str,
    name: str | None = None,
    timeout: float | None = None,
    needs_approval: NeedsApproval = False,
) -> SubAgent:
    """Make a tool of an agent: `tools=[sub_agent(researcher, description="Looks things up.")]`.

    The model gives it a `task`, all that the other agent is told. Each call is a session of its
    own, with the calling one as its parent; its last message is the tool's result, and when its run
    fails, so does the call, as an error that the model reads. A worker that serves the calling
    agent serves the other, too; one that is only named has to be served by the same workers.

    `description` says what the agent is good for, `name` what the tool is called (the agent's name,
    unless told otherwise). After `timeout` seconds the other run is cancelled. With
    `needs_approval` a call waits for a person, as that of any tool. Raises `AgentError` when the
    declaration is wrong.
    """
    return SubAgent(
        agent, description=description, name=name, timeout=timeout, needs_approval=needs_approval
    )


def _checked_name(agent: Agent | str) -> str:
    given: Any = agent
    name = given.name if isinstance(given, Agent) else given
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise AgentError(f"a sub-agent is an Agent or the name of one, not {given!r}")
    return name


def _described(description: str, agent_name: str) -> Any:
    given: Any = description
    if not isinstance(given, str) or not given.strip():
        raise AgentError(
            f"the sub-agent {agent_name!r} needs a description: when shall a model ask it?"
        )

    async def ask(
        task: Annotated[
            str,
            Field(
                min_length=1,
                description="What to do, with all that is needed for it: "
                "the agent knows nothing of this conversation.",
            ),
        ],
    ) -> str:
        # A task that fits never gets here: the workflow sees to it.
        raise ToolCallError("the session's workflow is of an older version; ask again later")

    ask.__doc__ = given
    return ask
