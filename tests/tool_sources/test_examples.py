"""The example with an MCP server and a sub-agent, as someone tries it."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from perdure import Agent
from tests.engine.conftest import Serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "clerk.py"


@pytest.fixture
def clerk(monkeypatch: pytest.MonkeyPatch) -> Agent:
    """The example's agent, with pydantic-ai's own model, which calls each tool once."""
    monkeypatch.setenv("CLERK_MODEL", "test")
    spec = spec_from_file_location("clerk", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "clerk", module)
    spec.loader.exec_module(module)
    agent: Agent = module.agent
    return agent


async def test_the_clerk_asks_the_server_and_the_checker(serving: Serving, clerk: Agent) -> None:
    async with serving(clerk) as sessions:
        session = await sessions.open("example-clerk", agent="clerk")
        messages = await (await session.run("Do you have walking boots?"))
        results = {message.tool_name: message for message in messages if message.tool_name}
        assert set(results) == {"checker", "stock"}
        assert not any(result.is_error for result in results.values())
        assert results["stock"].text == "0"
