"""The agents that a worker serves."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.agent import Agent
from perdure.errors import AgentError, ModelSpecError, UnknownAgentError
from perdure.models.protocol import LanguageModel
from perdure.sub_agents import SubAgent


class AgentRegistry:
    """Agents by name, and with them the sub-agents that they bring along. Raises AgentError when
    two have one name.
    """

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._agents: dict[str, Agent] = {}
        if isinstance(agents, (str, bytes, Agent)) or not isinstance(agents, Iterable):
            raise AgentError(f"agents must be a list of Agents, not {agents!r}")
        for agent in agents:
            if not isinstance(agent, Agent):
                raise AgentError(f"agents must be a list of Agents, with no {agent!r} in it")
            if agent.name in self._agents:
                raise AgentError(f"two agents are called {agent.name!r}; rename one of them")
            self._agents[agent.name] = agent
        waiting = list(self._agents.values())
        while waiting:
            waiting += [agent for agent in _sub_agents_of(waiting.pop()) if self._add(agent)]

    def _add(self, agent: Agent) -> bool:
        """Serve a sub-agent; tells whether it is new."""
        known = self._agents.get(agent.name)
        if known is None:
            self._agents[agent.name] = agent
        elif known is not agent:
            raise AgentError(
                f"a sub-agent and another agent are called {agent.name!r}; rename one of them"
            )
        return known is None

    def find(self, name: str) -> Agent:
        """The agent of that name. Raises UnknownAgentError, which names those that there are."""
        agent = self._agents.get(name)
        if agent is None:
            raise UnknownAgentError(name, sorted(self._agents))
        return agent


def _sub_agents_of(agent: Agent) -> list[Agent]:
    subs = [tool.agent for tool in agent.tools if isinstance(tool, SubAgent)]
    return [agent for agent in subs if agent is not None]


def model_of(agent: Agent) -> LanguageModel:
    """The model that the agent runs. Raises ModelSpecError when it has none, or when it cannot
    be made.
    """
    model = agent.language_model()
    if model is None and agent.loop is not None:
        raise ModelSpecError(
            f"agent {agent.name!r} brings a loop, which writes no summaries; "
            "give it a compact_model for that"
        )
    if model is None:
        raise ModelSpecError(
            f"agent {agent.name!r} has no model, so its sessions only record; give it one to run"
        )
    return model
