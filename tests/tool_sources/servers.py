"""MCP servers for the tests: processes of their own, and where to look what became of them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from perdure import McpServer

ROOT = Path(__file__).parents[2]
_MODULE = "tests.tool_sources.mcp_server"


class Folder:
    """Where a server writes its journal, and looks whether to wait."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def server(self, kind: str = "useful", **options: Any) -> McpServer:
        """A server over pipes."""
        env = {"PYTHONPATH": str(ROOT), **options.pop("env", {})}
        words = ("-m", _MODULE, str(self.path), "--kind", kind)
        return McpServer(sys.executable, *words, env=env, name="test server", **options)

    @contextmanager
    def http(self, port: int) -> Iterator[None]:
        """A server over HTTP, for the block."""
        words = [sys.executable, "-m", _MODULE, str(self.path), "--http", str(port)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(words, cwd=ROOT, stdout=quiet, stderr=quiet) as process:
            try:
                _wait_for(port, process)
                yield
            finally:
                process.kill()

    def hold(self, step: str) -> None:
        (self.path / f"hold-{step}").touch()

    def let_go(self, step: str) -> None:
        (self.path / f"hold-{step}").unlink()

    def steps(self) -> Counter[str]:
        return Counter(line.split()[0] for line in self._lines())

    async def reached(self, step: str, times: int = 1) -> None:
        async with asyncio.timeout(30):
            while self.steps()[step] < times:  # noqa: ASYNC110 - another process takes them
                await asyncio.sleep(0.02)

    def processes(self) -> list[int]:
        """Those of the servers that were started here which are alive."""
        pids = [int(line.split()[1]) for line in self._lines() if line.startswith("started")]
        return [pid for pid in pids if _is_alive(pid)]

    async def emptied(self) -> None:
        """Wait until no server is alive."""
        async with asyncio.timeout(30):
            while self.processes():  # noqa: ASYNC110 - other processes end
                await asyncio.sleep(0.02)

    def _lines(self) -> list[str]:
        journal = self.path / "journal"
        return journal.read_text().splitlines() if journal.exists() else []


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as connecting:
            if connecting.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the server ended before it listened")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")  # one that nobody has waited for yet is dead, too
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


class OldServer(ThreadingHTTPServer):
    """An HTTP server of an older version of the protocol: it gives sessions, and forgets them when
    it is told to.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _OldHandler)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self.generation = 1
        self.initialized = 0
        self.status = 0
        Thread(target=self.serve_forever, daemon=True).start()

    def forget(self) -> None:
        self.generation += 1


class _OldHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: OldServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(405)

    def do_DELETE(self) -> None:
        self._send(200)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.status:
            return self._send(self.server.status)
        if "id" not in asked:
            return self._send(202)
        if asked["method"] == "initialize":
            self.server.initialized += 1
            capabilities = {"capabilities": {"tools": {}}, "serverInfo": {"name": "old"}}
            told = {"protocolVersion": "2025-06-18", **capabilities}
            told["serverInfo"]["version"] = "1"  # type: ignore[index]
            return self._answer(asked, told)
        known = f"session-{self.server.generation}"
        if self.headers.get("mcp-session-id") not in (None, known):
            return self._send(404, {"code": -32001, "message": "Session not found"}, asked["id"])
        match asked["method"]:
            case "tools/list":
                return self._answer(asked, {"tools": [{"name": "hi", "inputSchema": _OBJECT}]})
            case "tools/call":
                return self._answer(asked, {"content": [{"type": "text", "text": "hello"}]})
        return self._send(400, {"code": -32601, "message": "no such method"}, asked["id"])

    def _answer(self, asked: Any, result: Any) -> None:
        self._send(200, result, asked["id"], kind="result")

    def _send(self, status: int, body: Any = None, asked: Any = 0, kind: str = "error") -> None:
        told = {"jsonrpc": "2.0", "id": asked, kind: body}
        data = b"" if body is None else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("mcp-session-id", f"session-{self.server.generation}")
        self.end_headers()
        self.wfile.write(data)


_OBJECT = {"type": "object", "properties": {}}
