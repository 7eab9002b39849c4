"""A command-line agent that speaks stream-json, for tests: `python agent_cli.py <folder> -p …`.

It does what the last text of its prompt says, see `PLAYS`. In its folder it keeps its sessions, a
journal of what it was called with, and waits there while a file `hold` exists.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
FLAGS = sys.argv[2:]


def flag(name: str) -> str | None:
    """The value of a flag, in one piece with it or after it."""
    for place, argument in enumerate(FLAGS):
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
        if argument == name:
            return FLAGS[place + 1] if place + 1 < len(FLAGS) else ""
    return None


class Session:
    """What this program remembers: all that it was told."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        self.told: list[str] = []
        self.turns = 0
        resumed = flag("--resume")
        if resumed:
            file = FOLDER / f"{resumed}.json"
            if not file.exists():
                print(f"No conversation found with session ID: {resumed}", file=sys.stderr)
                sys.exit(1)
            self.told = json.loads(file.read_text())
            if flag("--fork-session") is None:
                self.id = resumed

    def hear(self, content: list[dict[str, Any]]) -> str:
        texts: list[str] = [block.get("text", f"[{block['type']}]") for block in content]
        self.told += texts
        (FOLDER / f"{self.id}.json").write_text(json.dumps(self.told))
        return texts[-1]

    def print(self, type_: str, **fields: Any) -> None:
        line = {"type": type_, "session_id": self.id, "uuid": str(uuid.uuid4()), **fields}
        print(json.dumps(line), flush=True)

    def say(self, *blocks: dict[str, Any], parent: str | None = None) -> None:
        """A message, block by block, as the CLI prints it."""
        self.turns += 1
        message_id = f"msg_{uuid.uuid4().hex[:12]}"
        usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5}
        message = {"id": message_id, "role": "assistant", "model": "claude-test", "usage": usage}
        self.event("message_start", parent, message=message | {"content": []})
        for index, block in enumerate(blocks):
            self.pieces(index, block, parent)
            self.print(
                "assistant",
                message=message | {"content": [block], "stop_reason": None},
                parent_tool_use_id=parent,
            )
        reason = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        delta = {"stop_reason": reason}
        self.event("message_delta", parent, delta=delta, usage={"output_tokens": 7})
        self.event("message_stop", parent)

    def pieces(self, index: int, block: dict[str, Any], parent: str | None) -> None:
        if block["type"] == "text":
            for word in block["text"].split(" ")[:50]:
                delta = {"type": "text_delta", "text": f"{word} "}
                self.event("content_block_delta", parent, index=index, delta=delta)

    def event(self, type_: str, parent: str | None, **fields: Any) -> None:
        if flag("--include-partial-messages") is not None:
            self.print("stream_event", event={"type": type_, **fields}, parent_tool_use_id=parent)

    def result_of(self, call: dict[str, Any], content: Any, **fields: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": content, **fields}
        message = {"role": "user", "content": [block]}
        self.print("user", message=message, parent_tool_use_id=None)

    def end(self, subtype: str = "success", **fields: Any) -> None:
        usage = {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 25}
        self.print(
            "result",
            **{
                "subtype": subtype,
                "is_error": False,
                "num_turns": self.turns,
                "total_cost_usd": 0.25,
                "usage": usage,
                **fields,
            },
        )


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def tool_use(name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": f"toolu_{uuid.uuid4().hex[:8]}",
        "name": name,
        "input": arguments,
    }


def wait_while_held() -> None:
    while (FOLDER / "hold").exists():
        time.sleep(0.02)


def answer(session: Session, said: str) -> None:
    session.say(text(f"I was told: {' | '.join(session.told)}"))
    session.end()


def use_tools(session: Session, said: str) -> None:
    thought = {"type": "thinking", "thinking": "Two looks.", "signature": "c2ln"}
    first, second = tool_use("Bash", command="ls"), tool_use("Read", file_path="/tmp/picture.png")
    session.say(thought, text("Looking."), first, second)
    session.say(text("a sub-agent speaks"), parent=first["id"])
    session.result_of(first, "a.txt\nb.txt")
    wait_while_held()
    picture = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    session.result_of(second, [text("a picture"), {"type": "image", "source": picture}])
    answer(session, said)


def many(session: Session, said: str) -> None:
    for number in range(int(said.split()[1])):
        call = tool_use("Count", number=number)
        session.say(call)
        session.result_of(call, str(number))
    answer(session, said)


def fail(session: Session, said: str) -> None:
    session.say(text("Something is wrong."), call := tool_use("Bash", command="false"))
    session.result_of(call, "it failed", is_error=True)
    print(f"warming up\nno credit left on key {os.environ.get('CLI_KEY')}", file=sys.stderr)
    sys.exit(1)


def say_and_die(session: Session, said: str) -> None:
    session.say(text("So far so good."))
    sys.exit(1)


def say_and_hang(session: Session, said: str) -> None:
    session.say(text("So far so good."))
    session.event("message_start", None, message={"id": "msg_next"})
    session.pieces(0, text("But then"), None)
    hang(session, said)


def keep_the_pipe(session: Session, said: str) -> None:
    child = [sys.executable, "-c", "import time; time.sleep(600)"]
    (FOLDER / "child").write_text(str(subprocess.Popen(child).pid))
    if said.endswith("without a result"):
        os._exit(3)
    answer(session, said)


def garbage(session: Session, said: str) -> None:
    for number in range(int(said.split()[1])):
        print(f"garbage {number} {{", flush=True)
    print("\x1b[?1004l", end="")
    answer(session, said)


def hang(session: Session, said: str) -> None:
    if "stubborn" in said:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = [sys.executable, "-c", "import time; time.sleep(600)"]
    (FOLDER / "child").write_text(str(subprocess.Popen(child).pid))
    time.sleep(600)


def big(session: Session, said: str) -> None:
    session.say(text("x" * int(said.split()[1])))
    session.end()


def run_out_of_turns(session: Session, said: str) -> None:
    session.say(call := tool_use("Bash", command="ls"))
    session.result_of(call, "a.txt")
    session.end("error_max_turns")


def refuse(session: Session, said: str) -> None:
    session.print("assistant", message={"content": [text("API Error: 529")]}, error="server_error")
    session.end(is_error=True, result="API Error: 529 overloaded")


PLAYS: dict[str, Callable[[Session, str], None]] = {
    "use tools": use_tools,
    "many": many,
    "fail": fail,
    "say and die": say_and_die,
    "say and hang": say_and_hang,
    "keep the pipe": keep_the_pipe,
    "garbage": garbage,
    "print": lambda session, said: print(said.partition(" ")[2], flush=True),
    "hang": hang,
    "big": big,
    "run out of turns": run_out_of_turns,
    "refuse": refuse,
    "say nothing": lambda session, said: session.end(result="/cost: nothing"),
    "leave": lambda session, said: None,
}


def main() -> None:
    with (FOLDER / "journal").open("a") as journal:
        note = {
            "pid": os.getpid(),
            "flags": FLAGS,
            "extra": os.environ.get("CLI_EXTRA"),
            "cwd": os.getcwd(),
        }
        journal.write(json.dumps(note) + "\n")
    session = Session()
    line = json.loads(sys.stdin.readline())
    said = session.hear(line["message"]["content"])
    session.print("system", subtype="init", tools=[], model="claude-test")
    session.print("rate_limit_event", rate_limit_info={"status": "allowed"})
    for beginning, play in PLAYS.items():
        if said.startswith(beginning):
            play(session, said)
            return
    answer(session, said)


main()
