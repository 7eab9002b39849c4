"""Where the Python of one page runs: a folder, a module and an event loop of its own, and a worker
for the agents that the page declares.

The blocks of a page build on each other. They run in a thread, so that a program among them can
start an event loop itself; the worker runs beside them, in the loop of the tests.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import perdure.agent
from perdure import Agent, custom_entry
from perdure.dev_server import DevServer
from perdure.models import LanguageModel, ModelChoice, resolve_model
from perdure.names import SESSION_WORKFLOW, TASK_QUEUE
from perdure.worker import build_worker
from tests.docs.markdown import Block

STORE = "files:./sessions"
"""The store of the pages' clients, and so of their worker."""

_PATIENCE = 30.0
_GUARD = 'if __name__ == "__main__":'


class Stage:
    """Runs blocks, and the tests that they define; keeps what they print and which agents they
    declare.
    """

    def __init__(self, server: DevServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page")
        self._runner = asyncio.Runner()
        self._output = io.StringIO()
        self._modules = [ModuleType("page")]
        self._worker = AsyncExitStack()
        self._served: list[Agent] = []

    async def run(self, block: Block) -> None:
        """Run a block; one with a title is written to a file, and run from there."""
        if title := block.options.get("title"):
            (self._folder / title).write_text(block.text, "utf-8")
            self._modules.append(await self._in_thread(lambda: _imported(title)))
        if not title or _GUARD in block.text:
            await self._in_thread(lambda: self._execute(block.text, block.page, block.line))

    async def prepare(self, source: str) -> None:
        """Run what a page takes for granted."""
        await self._in_thread(lambda: self._execute(source, "prelude", 1))

    async def serve(self) -> None:
        """Have a worker for every agent that was declared up to now."""
        agents = {agent.name: agent for module in self._modules for agent in _agents_in(module)}
        if list(agents.values()) == self._served:
            return
        await self._worker.aclose()
        self._served = list(agents.values())
        worker = build_worker(self._server.client, agents=self._served, store=STORE)
        await self._worker.enter_async_context(worker)

    def printed(self) -> str:
        """What was printed since this was last asked for."""
        text = self._output.getvalue()
        self._output.seek(0)
        self._output.truncate()
        return text

    async def close(self) -> None:
        """Stop the worker, and whatever the page left running on the server."""
        await self._in_thread(self._runner.close)
        await self._worker.aclose()
        self._thread.shutdown()
        running = f"WorkflowType = '{SESSION_WORKFLOW}' AND ExecutionStatus = 'Running'"
        client = self._server.client
        async for workflow in client.list_workflows(f"{running} AND TaskQueue = '{TASK_QUEUE}'"):
            await client.get_workflow_handle(workflow.id).terminate("the page is over")

    async def _in_thread(self, job: Callable[[], Any]) -> Any:
        ending = asyncio.get_running_loop().run_in_executor(self._thread, job)
        return await asyncio.wait_for(ending, _PATIENCE)

    def _execute(self, source: str, name: str, line: int) -> None:
        # Blank lines before it, so that a traceback names the line of the page.
        code = compile(
            "\n" * (line - 1) + source,
            name,
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        namespace = vars(self._modules[0])
        namespace["__name__"] = "__main__" if _GUARD in source else "page"
        known = set(namespace)
        with contextlib.redirect_stdout(self._output):
            self._finish(eval(code, namespace))
            for name in namespace.keys() - known:
                if name.startswith("test_"):
                    self._finish(namespace[name]())

    def _finish(self, pending: Any) -> None:
        if inspect.iscoroutine(pending):
            self._runner.run(pending)


@asynccontextmanager
async def stage(
    server: DevServer,
    folder: Path,
    models: dict[str, LanguageModel],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Stage]:
    """A stage in that folder. Where an agent names a provider's model, one of `models` speaks, by
    the name of the agent's model.
    """

    def chosen(model: ModelChoice) -> LanguageModel | None:
        return models[model] if isinstance(model, str) and model in models else resolve_model(model)

    monkeypatch.setattr(perdure.agent, "resolve_model", chosen)
    monkeypatch.setattr(custom_entry, "_kinds", dict(custom_entry._kinds))
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    known = set(sys.modules)
    on_stage = Stage(server, folder)
    try:
        yield on_stage
    finally:
        await on_stage.close()
        for name in set(sys.modules) - known:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and Path(origin).is_relative_to(folder):
                del sys.modules[name]


def _imported(title: str) -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module(title.removesuffix(".py"))


def _agents_in(module: ModuleType) -> list[Agent]:
    return [value for value in vars(module).values() if isinstance(value, Agent)]
