"""The `temporal` command, as a person or a script without Python would use it on a session."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from perdure.dev_server import DevServer, temporal_binary


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed, and whether it was content."""

    is_ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class TemporalCli:
    """Sends to one session's workflow."""

    server: DevServer
    workflow_id: str

    async def signal(self, verb: str, *inputs: str, options: tuple[str, ...] = ()) -> Answer:
        return await self._run("signal", "--name", verb, *_as_options(inputs), *options)

    async def update(self, verb: str, *inputs: str) -> Answer:
        return await self._run("update", "execute", "--name", verb, *_as_options(inputs))

    async def outcome(self, verb: str, *inputs: str) -> dict[str, Any]:
        """The outcome of an update that succeeds."""
        answer = await self._run(
            "update", "execute", "--name", verb, *_as_options(inputs), "--output", "json"
        )
        assert answer.is_ok, answer.text
        result: dict[str, Any] = json.loads(answer.text)["result"]
        return result

    async def status(self) -> dict[str, Any]:
        answer = await self._run("query", "--type", "status", "--output", "json")
        assert answer.is_ok, answer.text
        [result] = json.loads(answer.text)["queryResult"]
        assert isinstance(result, dict)
        return result

    async def _run(self, *arguments: str) -> Answer:
        process = await asyncio.create_subprocess_exec(
            temporal_binary(),
            "workflow",
            *arguments,
            "--address",
            self.server.address,
            "--workflow-id",
            self.workflow_id,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return Answer(process.returncode == 0, output.decode())


def _as_options(inputs: tuple[str, ...]) -> list[str]:
    return [option for value in inputs for option in ("--input", value)]
