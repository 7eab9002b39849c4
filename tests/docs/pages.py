"""What the pages take for granted, by page."""

from __future__ import annotations

from typing import Final

from perdure.models import LanguageModel
from perdure.testing import ScriptedModel, call

CLAUDE: Final = "anthropic:claude-sonnet-5-5"

MODELS: Final[dict[str, dict[str, LanguageModel]]] = {
    "README.md": {
        CLAUDE: ScriptedModel(
            [call("find_order", order_id="7")],
            "Order 7 ships on Friday.",
            lambda messages: "Order 8, too.",
        )
    },
    "docs/mcp-and-sub-agents.md": {
        CLAUDE: ScriptedModel(
            [call("stock", shoe="walking boots")],
            lambda messages: f"There are {messages[-1].text} pairs in stock.",
        ),
        "openai:gpt-6.1-sol": ScriptedModel("No, they sink."),
        "google:gemini-3.8-flash": ScriptedModel(
            [call("checker", task="Can boots swim?")], "They sink."
        ),
    },
}
"""Who speaks for a provider's model."""

PRELUDES: Final[dict[str, str]] = {
    "docs/tree.md": """
from perdure import Agent, Sessions
from perdure.testing import ScriptedModel

def answer(messages):
    if messages[-1].text.startswith("Summarize"):
        return "The customer asked when order 7 ships."
    return f"{sum(message.role == 'assistant' for message in messages) + 1}. noted"

support = Agent("support", model=ScriptedModel(answer))
connected = Sessions.connect(store="files:./sessions")
sessions = await connected.__aenter__()
""",
    "docs/sessions.md": """
from perdure import Agent
from perdure.testing import ScriptedModel

support = Agent(
    "support",
    model=ScriptedModel(
        "Order 7 ships on Friday.",
        lambda messages: f'You said "{messages[-1].text}"',
    ),
)
""",
}
"""Python that runs before a page's own."""

NOT_RUN: Final[dict[tuple[str, str], str]] = {
    (
        "docs/opentelemetry.md",
        'async with Sessions.connect(store="files:./sessions", otel=True) as sessions:',
    ): "it needs a collector",
    ("CONTRIBUTING.md", 'if workflow.patched("one-append-per-turn"):'): "a piece of a workflow",
}
"""Blocks that are not run, by page and first line, each with the reason that the page gives."""
