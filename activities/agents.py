"""The agents that a worker serves."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.agent import Agent
from perdure.errors import AgentError, ModelSpecError, UnknownAgentError
from perdure.models.protocol import LanguageModel


class AgentRegistry:
    """Agents by name. Raises AgentError when two have one name."""

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._agents: dict[str, Agent] = {}
        for agent in agents:
            if agent.name in self._agents:
                raise AgentError(f"two agents are called {agent.name!r}; rename one of them")
            self._agents[agent.name] = agent

    def find(self, name: str) -> Agent:
        """The agent of that name. Raises UnknownAgentError, which names those that there are."""
        agent = self._agents.get(name)
        if agent is None:
            raise UnknownAgentError(name, sorted(self._agents))
        return agent


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
