"""A provider of a language model: the OpenAI chat completions API, on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from perdure.demo.questions import CRASHES, REPORT, SUMMARY


@dataclass
class Provider:
    """Answers as a model that does what the demo asks for; keeps what it was sent."""

    url: str = ""
    requests: list[list[dict[str, Any]]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        self.requests.append(messages)
        questions = [index for index, said in enumerate(messages) if said["role"] == "user"]
        question, has_results = messages[questions[-1]]["content"], messages[-1]["role"] == "tool"
        if question == CRASHES and not has_results:
            return calling(("list_files", {"path": "perdure/workflows"}))
        if question == REPORT and not has_results:
            return calling(("send_report", {"text": "All well."}), ("count_lines", {"path": "."}))
        if question == SUMMARY and self.requests.count(messages) == 1:
            self.closing.wait(30)  # the worker is killed while it waits for this answer
        return {"role": "assistant", "content": f"My answer to {len(messages)} messages."}


def calling(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call-{name}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for name, arguments in calls
        ],
    }


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider that serves for the length of the block."""
    served = Provider()

    class Completions(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = served.answer(request["messages"])
            body = json.dumps(
                {
                    "id": "completion",
                    "object": "chat.completion",
                    "created": 1,
                    "model": request["model"],
                    "choices": [
                        {
                            "index": 0,
                            "message": message,
                            "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                        }
                    ],
                    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Whoever asked was killed."""

    with Server(("127.0.0.1", 0), Completions) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        served.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield served
        finally:
            served.closing.set()
            server.shutdown()
