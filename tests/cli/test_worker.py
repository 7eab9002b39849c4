"""`perdure worker`, and the examples that it serves, as their README says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure.dev_server import DevServer, dev_server
from tests.agent.provider_server import Reply, provider_server
from tests.agent.test_providers import completion
from tests.cli.test_command_line import PERDURE

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[DevServer]:
    async with dev_server() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the examples, as someone has it who tries them."""
    for example in EXAMPLES.glob("*.py"):
        shutil.copy(example, tmp_path)
    return tmp_path


def environment(server: DevServer | None = None) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    own["SUPPORT_MODEL"] = "test"  # pydantic-ai's own: it calls each tool once, and needs no key
    return own | ({"TEMPORAL_ADDRESS": server.address} if server else {})


def worker(folder: Path, server: DevServer, *options: str) -> subprocess.Popen[str]:
    """A worker that serves."""
    process = subprocess.Popen(
        [PERDURE, "worker", "support:agent", *options],
        cwd=folder,
        env=environment(server),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "serving support on task queue 'perdure'" in process.stderr.readline()
    return process


def converse(folder: Path, server: DevServer | None, example: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, example, "Where is order 7?"],
        cwd=folder,
        env=environment(server),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_conversation_is_served_and_the_worker_ends_cleanly(
    server: DevServer, folder: Path
) -> None:
    process = worker(folder, server, "--store", "files:./sessions")
    said = converse(folder, server, "conversation.py")
    assert said[0].startswith("agent_start ['")
    assert said[-1] == '{"find_order":"there is no such order"}'
    assert [log.name for log in (folder / "sessions").iterdir()] == ["customer-42.jsonl"]

    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_an_approval_is_asked_for_and_without_a_terminal_denied(folder: Path) -> None:
    *_, seven, eight, done = converse(folder, None, "approvals.py")
    assert seven == "tool_result: refunded 9.00 for order 7"
    assert eight.startswith("tool_result: A person denied this call; it did not run.")
    assert done.startswith("assistant: Done:")


def test_ctrl_c_ends_a_worker_with_status_130(server: DevServer, folder: Path) -> None:
    process = worker(folder, server)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_namespace_that_does_not_exist_is_told_in_one_line(
    server: DevServer, folder: Path
) -> None:
    ended = subprocess.run(
        [PERDURE, "worker", "support:agent"],
        cwd=folder,
        env=environment(server) | {"TEMPORAL_NAMESPACE": "nowhere"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "perdure: cannot serve namespace 'nowhere': Worker validation failed: "
        "Namespace nowhere was not found or otherwise could not be described"
    )
    assert "Traceback" not in ended.stderr


def test_the_conversation_in_one_process(folder: Path) -> None:
    assert converse(folder, None, "laptop.py")[-1] == (
        'assistant: {"find_order":"there is no such order"}'
    )


def test_the_answer_word_by_word(folder: Path) -> None:
    said = converse(folder, None, "streamed.py")
    assert said[0] == "(find_order …)"
    assert said[-1] == '{"find_order":"there is no such order"}'


def test_an_object_out_of_a_text(folder: Path) -> None:
    """A provider that answers wrongly first, over HTTP."""
    wrong, right = (
        {"shop": "Chez Paul", "items": [{"name": "coffee", "cents": cents}]} for cents in (-1, 210)
    )
    replies = [
        Reply(completion({"role": "assistant", "content": json.dumps(answer)}, "stop"))
        for answer in (wrong, right)
    ]
    with provider_server(*replies) as server:
        own = {"OPENAI_API_KEY": "not-a-key", "OPENAI_BASE_URL": f"{server.url}/v1"}
        ended = subprocess.run(
            [sys.executable, "receipt.py"],
            cwd=folder,
            env=environment() | own | {"RECEIPT_MODEL": "openai-chat:gpt-5"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["Chez Paul: coffee, 2.10"]
    first, second = server.requests
    assert first["response_format"]["json_schema"]["name"] == "Receipt"
    assert "greater than or equal to 0" in str(second["messages"][-1])
