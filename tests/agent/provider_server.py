"""A real HTTP server on this machine that stands in for a provider: it gives the answers that it is
told, in order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One answer. A list of events is streamed; with `cut` the connection breaks after them, or
    before anything is said, and with `hangs` nothing more comes, and the connection stays.
    """

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    events: tuple[object, ...] = ()
    cut: bool = False
    hangs: bool = False


class ProviderServer:
    """Where it listens, and what it was sent."""

    def __init__(self, url: str, replies: Iterator[Reply]) -> None:
        self.url = url
        self.requests: list[Any] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        self.connections = 0
        self.replies = replies


@contextmanager
def provider_server(*replies: Reply) -> Iterator[ProviderServer]:
    """A server that gives these replies and then none."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = self.rfile.read(length)
            server.bodies.append(body)
            server.requests.append(json.loads(body))
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            reply = next(server.replies, Reply("no more replies", status=400))
            if not reply.events and (reply.cut or reply.hangs):
                server.closing.wait(0 if reply.cut else 30)
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.events:
                self._stream(reply)
            else:
                self._whole(reply)

        def _whole(self, reply: Reply) -> None:
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, reply: Reply) -> None:
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            if reply.cut or reply.hangs:
                self.send_header("content-length", "1000000")
            self.end_headers()
            for event in reply.events:
                name = event.get("type") if isinstance(event, dict) else None
                data = event if isinstance(event, str) else json.dumps(event)
                self.wfile.write(
                    f"event: {name}\ndata: {data}\n\n".encode()
                    if name
                    else f"data: {data}\n\n".encode()
                )
            if reply.hangs:
                self.wfile.flush()
                server.closing.wait(30)
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = ProviderServer(f"http://127.0.0.1:{listener.server_port}", iter(replies))
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        listener.shutdown()
        listener.server_close()
        thread.join()
