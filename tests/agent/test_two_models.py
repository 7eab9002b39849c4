"""The example of a conversation that changes its model, over HTTP, as someone runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.agent.provider_server import provider_server
from tests.agent.wire import ANTHROPIC, RESPONSES, Call, Text

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_what_claude_found_out_openai_goes_on_with(tmp_path: Path) -> None:
    for example in EXAMPLES.glob("*.py"):
        shutil.copy(example, tmp_path)
    claude = (
        ANTHROPIC.whole(Call("toolu_1", "find_order", '{"order_id": "7"}')),
        ANTHROPIC.whole(Text("On Friday.")),
    )
    with provider_server(*claude) as first, provider_server(RESPONSES.whole(Text("42."))) as second:
        ended = subprocess.run(
            [sys.executable, "two_models.py"],
            cwd=tmp_path,
            env=os.environ
            | {"ANTHROPIC_API_KEY": "not-a-key", "ANTHROPIC_BASE_URL": first.url}
            | {"OPENAI_API_KEY": "not-a-key", "OPENAI_BASE_URL": f"{second.url}/v1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "gpt-6.1-sol-2026: 42."
    assert (len(first.requests), len(second.requests)) == (2, 1)
    kinds = [item.get("type", item.get("role")) for item in second.requests[0]["input"]]
    assert kinds == ["system", "user", "function_call", "function_call_output", "assistant", "user"]
    [call] = [item for item in second.requests[0]["input"] if item.get("type") == "function_call"]
    assert (call["call_id"], call["arguments"]) == ("toolu_1", '{"order_id":"7"}')
    assert "walking boots" in str(second.requests[0]["input"])
