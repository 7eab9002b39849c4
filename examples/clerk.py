"""An agent with an MCP server and a sub-agent: `perdure worker clerk:agent` serves both agents."""

import os
import sys
from pathlib import Path

from perdure import Agent, McpServer, sub_agent

MODEL = os.environ.get("CLERK_MODEL", "anthropic:claude-sonnet-5-5")

checker = Agent(
    "checker",
    model=MODEL,
    instructions="You check what a shop says about shoes. Answer in one sentence.",
)

agent = Agent(
    "clerk",
    model=MODEL,
    instructions="You sell shoes. Look what is in stock, and have every claim checked.",
    tools=[sub_agent(checker, description="Checks a claim about shoes.", timeout=300)],
    mcp=[
        McpServer(
            sys.executable,
            Path(__file__).with_name("shop_server.py"),
            name="shop",
            idempotent=["stock"],
        )
    ],
)
