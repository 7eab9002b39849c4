"""Declaring an agent, and finding it again."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models.test import TestModel as AnyAnswerModel

from perdure.agent import Agent
from perdure.agent_loading import load_agents
from perdure.errors import AgentError, ModelSpecError
from perdure.models import ToolSpec
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.scripted import ScriptedModel
from perdure.tools import tool


@tool(idempotent=True)
def find_order(order_id: str) -> str:
    """Look an order up."""
    return order_id


def plain(order_id: str) -> str:
    """Refund an order."""
    return order_id


def test_an_agent_is_what_it_was_declared_to_be() -> None:
    model = ScriptedModel("Hello.")
    agent = Agent(
        "support", model=model, instructions="Help.", tools=[find_order, plain], max_turns=3
    )

    assert (agent.name, agent.instructions, agent.max_turns) == ("support", "Help.", 3)
    assert agent.language_model() is model
    assert agent.tool("find_order") is find_order
    assert agent.tool("missing") is None
    assert agent.tool_specs == (
        ToolSpec("find_order", "Look an order up.", find_order.parameters),
        ToolSpec("plain", "Refund an order.", find_order.parameters),
    )
    assert Agent("support", model=None).max_turns == 50


def test_an_agent_does_not_change() -> None:
    agent = Agent("support", model=None)

    with pytest.raises(dataclasses.FrozenInstanceError):
        agent.name = "other"  # type: ignore[misc]


def test_an_agent_without_a_model_has_none() -> None:
    assert Agent("records", model=None).language_model() is None


@pytest.mark.parametrize(
    "arguments, reason",
    [
        ({"name": ""}, "an agent needs a name, not ''"),
        ({"name": None}, "an agent needs a name, not None"),
        ({"name": "sup\nport"}, "the agent name 'sup\\nport' holds control characters"),
        ({"name": "sup\ud800port"}, "holds control characters"),
        ({"name": "x" * 201}, "is 201 characters long; at most 200"),
        ({"instructions": 7}, "the instructions of agent 'support' must be text, not 7"),
        ({"max_turns": 0}, "max_turns of agent 'support' must be at least 1, not 0"),
        ({"max_turns": True}, "max_turns of agent 'support' must be at least 1, not True"),
        ({"tools": [find_order, find_order]}, "agent 'support' has two tools named 'find_order'"),
        ({"tools": [lambda: ""]}, "tool name '<lambda>' is not one"),
        ({"tools": [7]}, "the tools of agent 'support' must be functions, with no 7 among them"),
        ({"tools": "find_order"}, "the tools of agent 'support' must be a list"),
        ({"tools": find_order}, "the tools of agent 'support' must be a list"),
        ({"model": ""}, "model '' is not a spec; write it as provider:model"),
        ({"model": "gpt-6.1-sol"}, "model 'gpt-6.1-sol' is not a spec"),
        ({"model": "openai:"}, "model 'openai:' is not a spec"),
        ({"model": "open ai:gpt-6.1-sol"}, "model 'open ai:gpt-6.1-sol' is not a spec"),
        ({"model": 7}, "the model must be a spec such as 'openai:gpt-6.1-sol', a LanguageModel, "),
        ({"model": ScriptedModel}, "not its class; pass an instance"),
    ],
)
def test_a_wrong_declaration_fails_at_once(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(AgentError) as raised:
        Agent(**{"name": "support", "model": None, **arguments})

    assert reason in str(raised.value)


def test_a_model_that_cannot_be_had_fails_when_it_is_asked_for_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """6.2: a bad model name or a missing key is found before anything is stored."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    unknown = Agent("support", model="nobody:model-1")
    keyless = Agent("support", model="openai:gpt-6.1-sol")

    with pytest.raises(ModelSpecError, match="'nobody:model-1' cannot be used: no such provider"):
        unknown.language_model()
    with pytest.raises(ModelSpecError, match="OPENAI_API_KEY"):
        keyless.language_model()


def test_a_model_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    agent = Agent("support", model="openai:gpt-6.1-sol")

    model = agent.language_model()

    assert model is not None
    assert model.name == "openai:gpt-6.1-sol"
    assert agent.language_model() is model


def test_a_model_of_pydantic_ai_is_taken_as_it_is() -> None:
    theirs = AnyAnswerModel()
    model = Agent("support", model=theirs).language_model()

    assert isinstance(model, PydanticAIModel)
    assert model.model is theirs


def test_declaring_an_agent_loads_neither_pydantic_ai_nor_a_provider() -> None:
    program = """
        import sys
        from perdure.agent import Agent
        from perdure.agent_loading import load_agents
        from perdure.models.scripted import ScriptedModel
        from perdure.tools import ToolContext, tool

        @tool
        async def find_order(ctx: ToolContext, order_id: str) -> str:
            "Look an order up."

        Agent("support", model="anthropic:claude-sonnet-5-5", tools=[find_order])
        loaded = {name.partition(".")[0] for name in sys.modules}
        print(sorted(loaded & {"pydantic_ai", "anthropic", "openai", "griffe", "httpx2"}))
    """

    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )

    assert printed.stdout == "[]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("made_"):
            del sys.modules[name]


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["from perdure.agent import Agent", *lines]) + "\n")


def test_agents_are_found_by_module_and_attribute(folder: Path) -> None:
    write(folder / "made_one.py", 'agent = Agent("one", model=None)')
    write(folder / "made_pack" / "deep.py", "class Holder:", '    agent = Agent("two", model=None)')
    write(
        folder / "made_many.py", 'agents = [Agent("three", model=None), Agent("four", model=None)]'
    )

    agents = load_agents(
        "made_one:agent, made_pack.deep:Holder.agent,made_many:agents,made_one:agent"
    )

    assert [agent.name for agent in agents] == ["one", "two", "three", "four"]


@pytest.mark.parametrize(
    "spec, reason",
    [
        ("", "'' names no agent; write module:attribute, for example support:agent"),
        ("made_a", "'made_a' does not say where an agent is; write module:attribute"),
        ("made_a:", "'made_a:' does not say where an agent is"),
        ("made_a.py:agent", "'made_a.py:agent' is a path; write the module's name: made_a:agent"),
        ("./sub/made_a.py:agent", "is a path; write the module's name: sub.made_a:agent"),
        ("made_nowhere:agent", "'made_nowhere:agent': there is no module made_nowhere in "),
        ("made_nowhere.deep:agent", "there is no module made_nowhere in "),
        ("made_a:missing", "'made_a:missing': made_a has no missing"),
        ("made_a:number", "'made_a:number' is not an Agent but int"),
        ("made_a:mixed", "'made_a:mixed' is not an Agent but str"),
        ("made_a:agent,made_a:twin", "names two agents called 'a'; rename one"),
        ("made_raises:agent", "'made_raises:agent' cannot be imported: ValueError: first line"),
        ("made_exits:agent", "'made_exits:agent' cannot be imported: SystemExit: 3"),
        (
            "made_needs:agent",
            "cannot be imported: ModuleNotFoundError: No module named 'made_gone'",
        ),
        ("made_syntax:agent", "'made_syntax:agent' cannot be imported: SyntaxError: "),
    ],
)
def test_an_agent_that_is_not_there_is_a_clear_error(folder: Path, spec: str, reason: str) -> None:
    write(
        folder / "made_a.py",
        'agent = Agent("a", model=None)',
        'twin = Agent("a", model=None)',
        "number = 7",
        'mixed = [agent, "b"]',
    )
    write(folder / "made_raises.py", 'raise ValueError("first line\\nsecond line")')
    write(folder / "made_exits.py", "raise SystemExit(3)")
    write(folder / "made_needs.py", "import made_gone")
    write(folder / "made_syntax.py", "def")

    with pytest.raises(AgentError) as raised:
        load_agents(spec)

    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
