"""Finding agents by where they are: `support:agent`."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from perdure.agent import Agent
from perdure.errors import AgentError


def load_agents(spec: str) -> list[Agent]:
    """The agents at `module:attribute`; several are separated by commas. An attribute may also be a
    list of agents.

    The current directory is searched for modules first, as `python module.py` in it would. Raises
    `AgentError` when there is no such module or attribute, when it is not an agent, when importing
    it fails, and when two agents share a name.
    """
    agents: dict[str, Agent] = {}
    for place in filter(None, (part.strip() for part in spec.split(","))):
        for agent in _agents_at(place):
            if agents.setdefault(agent.name, agent) is not agent:
                raise AgentError(f"{spec!r} names two agents called {agent.name!r}; rename one")
    if not agents:
        raise AgentError(
            f"{spec!r} names no agent; write module:attribute, for example support:agent"
        )
    return list(agents.values())


def _agents_at(place: str) -> list[Agent]:
    module_name, colon, attribute = place.partition(":")
    if not (module_name and colon and attribute):
        raise AgentError(
            f"{place!r} does not say where an agent is; "
            "write module:attribute, for example support:agent"
        )
    if "/" in module_name or module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise AgentError(f"{place!r} is a path; write the module's name: {dotted}:{attribute}")
    found: Any = _import(module_name, place)
    for step in attribute.split("."):
        try:
            found = getattr(found, step)
        except AttributeError:
            raise AgentError(f"{place!r}: {module_name} has no {attribute}") from None
    agents = list(found) if isinstance(found, (list, tuple)) else [found]
    for agent in agents:
        if not isinstance(agent, Agent):
            raise AgentError(f"{place!r} is not an Agent but {type(agent).__name__}")
    return agents


def _import(module_name: str, place: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise AgentError(
                f"{place!r}: there is no module {error.name} in {here} or on the Python path"
            ) from None
        raise _import_failed(place, error) from error
    except (Exception, SystemExit) as error:
        raise _import_failed(place, error) from error


def _import_failed(place: str, error: BaseException) -> AgentError:
    cause = str(error).split("\n", 1)[0]
    return AgentError(f"{place!r} cannot be imported: {type(error).__name__}: {cause}"[:500])
