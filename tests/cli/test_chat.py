"""`perdure chat`, in a terminal of its own and with a pipe."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from perdure.cli.screen import width_of
from tests.cli.conftest import Served
from tests.cli.terminal import Terminal, plain
from tests.cli.test_command_line import PERDURE

CTRL_C, CTRL_D, UP = b"\x03", b"\x04", b"\x1b[A"


def ready(window: Terminal) -> str:
    """Wait for the prompt; what was printed before it, and since the last time."""
    return plain(window.wait_for_more(r"> (?:\x1b\[0m)?$"))


def status_of(served: Served, session_id: str) -> dict[str, object]:
    told: dict[str, object] = json.loads(served.printed("status", session_id, "--json"))
    return told


def test_a_conversation(served: Served) -> None:
    with served.terminal("chat", "chat/1", "--agent", "support") as window:
        assert ready(window).splitlines()[:3] == [
            "chat/1 · support · 0 entries",
            "/help lists commands",
            "Ctrl-D leaves",
        ]
        window.press(b"Where is order 7?\n")
        said = ready(window).splitlines()
        assert said[1:4] == [
            '→ find_order(order_id="7")',
            '✓ find_order {"ships": "Friday"}',
            "It ships on Friday.",
        ]
        assert said[4].startswith("2 turns · ")
        window.press(CTRL_D)
        status, printed = window.end()
    assert status == 0
    assert "Traceback" not in printed

    # The next chat begins with what was said, and the arrow key brings it back.
    with served.terminal("chat", "chat/1") as window:
        assert ready(window).splitlines()[3:7] == [
            "> Where is order 7?",
            '→ find_order(order_id="7")',
            '✓ find_order {"ships": "Friday"}',
            "It ships on Friday.",
        ]
        window.press(UP)
        window.wait_for_more("Where is order 7")
        window.press(b"\n")
        assert "It ships on Friday." in ready(window)
        window.press(CTRL_D)
        assert window.end()[0] == 0


def test_an_approval_is_asked_for_in_place(served: Served) -> None:
    with served.terminal("chat", "chat/2", "--agent", "support") as window:
        ready(window)
        window.press(b"A refund.\n")
        asked = plain(window.wait_for_more(r"y/n/e\? "))
        assert "refund waits for you:\n  cents = 900\n" in asked
        window.press(b"perhaps\n")
        window.wait_for_more(r"y, n or e\s+.*y/n/e\? ")
        window.press(b"y\n")
        assert "✓ refund refunded 900\n" in ready(window)

        window.press(b"A refund.\n")
        window.wait_for_more(r"y/n/e\? ")
        window.press(b"n\n")
        window.wait_for_more(r"why\? ")
        window.press(b"Over the limit.\n")
        assert "✗ refund A person denied this call" in ready(window)

        window.press(b"A refund.\n")
        window.wait_for_more(r"y/n/e\? ")
        window.press(b"e\n")
        window.wait_for_more(r'arguments: .*\{"cents":900\}')
        window.press(b"\x7f\x7f\x7f\x7fmany}\n")  # the 900 and the brace are taken away
        window.wait_for_more(r"this is not JSON.*\s.*y/n/e\? ")
        window.press(b"e\n")
        window.wait_for_more(r'\{"cents":900\}')
        window.press(b'\x7f\x7f\x7f\x7f"x"}\n')
        window.wait_for_more(r"✗ .*cents.*\s.*y/n/e\? ")
        window.press(b"e\n")
        window.wait_for_more(r'\{"cents":900\}')
        window.press(b"\x7f\x7f\x7f\x7f500}\n")
        assert (
            '✓ refund A person changed the arguments of this call. It ran with: {"cents":500'
            in (ready(window))
        )
        window.press(CTRL_D)
        assert window.end()[0] == 0


def test_whoever_leaves_a_question_finds_it_again(served: Served) -> None:
    with served.terminal("chat", "chat/3", "--agent", "support") as window:
        ready(window)
        window.press(b"A refund.\n")
        window.wait_for_more(r"y/n/e\? ")
        window.press(CTRL_D)
        status, printed = window.end()
    assert (status, "the call goes on waiting" in printed) == (0, True)
    with served.terminal("chat", "chat/3") as window:
        window.wait_for_more(r"> A refund\.[^$]*y/n/e\? ")
        window.press(CTRL_C)
        assert "cancelled" in ready(window)
        window.press(b"/quit\n")
        assert window.end()[0] == 0
    assert status_of(served, "chat/3")["approvals"] == []


def test_ctrl_c_in_the_middle_of_an_answer_keeps_what_was_said_and_the_session(
    served: Served,
) -> None:
    with served.terminal("chat", "chat/4", "--agent", "poet") as window:
        ready(window)
        window.press(b"A poem.\n")
        window.wait_for_more(r"word1 word2")
        window.press(CTRL_C)
        assert "cancelled" in ready(window)
        assert status_of(served, "chat/4")["state"] == "idle"
        window.press(CTRL_C)
        window.wait_for_more("Ctrl-D leaves")
        ready(window)
        window.press(b"/status\n")
        assert "idle" in ready(window)
        window.press(CTRL_D)
        status, printed = window.end()
    assert (status, "Traceback" in printed) == (0, False)
    assert "word1 word2" in served.printed("log", "chat/4")


def test_a_run_that_is_going_on_is_joined(served: Served) -> None:
    served.printed("run", "chat/5", "A poem.", "--agent", "poet", "--no-wait")
    with served.terminal("chat", "chat/5") as window:
        joined = plain(window.wait_for_more(r"a run is in progress; Ctrl-C cancels it.*> A poem"))
        assert joined.count("A poem") == 1
        window.press(CTRL_C)
        assert "cancelled" in ready(window)
        window.press(CTRL_D)
        assert window.end()[0] == 0


def test_what_waits_for_another_run_says_so_and_can_be_taken_back(served: Served) -> None:
    with served.terminal("chat", "chat/6", "--agent", "slow") as window:
        ready(window)
        served.printed("run", "chat/6", "Hello.", "--no-wait")
        window.press(b"And now?\n")
        window.wait_for_more("a run is in progress; this one waits its turn")
        window.press(CTRL_C)
        assert "cancelled" in ready(window)
        window.press(CTRL_D)
        window.end()
    served.printed("cancel", "chat/6")


def test_commands_move_about_in_the_tree(served: Served) -> None:
    with served.terminal("chat", "chat/7", "--agent", "support", columns=100) as window:
        ready(window)

        def told(line: str) -> str:
            window.press(line.encode() + b"\n")
            return ready(window)

        told("One.")
        told("Two.")
        entries = [
            json.loads(line) for line in served.printed("log", "chat/7", "--json").splitlines()
        ]
        second = entries[2]["id"]
        assert "assistant You said 'One.'" in told(f"/branch {second[:8]} --before")
        assert "You said 'Three.'" in told("Three.")
        drawn = told("/tree")
        assert "chat/7 · 6 entries, 2 branches" in drawn
        assert "← leaf" in drawn
        assert "`perdure chat chat/7b` goes on there" in told("/fork chat/7b")
        assert "◆ You said" in told("/compact 1") or "◆ " in told("/compact")
        assert "✗ session 'chat/7b' exists already" in told("/fork chat/7b")
        assert "before the first entry" in told("/branch --to-start")
        assert "state    idle" in told("/status")
        assert "/branch ENTRY" in told("/help")

        assert "✗ there is no command /fly; /help has those that are" in told("/fly")
        assert "✗ write /branch ENTRY" in told("/branch")
        assert "✗ " in told("/branch nowhere")
        assert "✗ write /compact" in told("/compact much")
        assert "✗ scripted raised RuntimeError" in told("break")
        assert "You said '/etc/hosts'" in told("//etc/hosts")
        window.press(CTRL_D)
        status, printed = window.end()
    assert (status, "Traceback" in printed) == (0, False)
    assert "You said 'Three.'" in served.printed("log", "chat/7b")


@pytest.mark.parametrize("columns", [20, 120])
def test_it_fits_narrow_and_wide_terminals(served: Served, columns: int) -> None:
    session_id = f"chat/8-{columns}"
    with served.terminal(
        "chat", session_id, "--agent", "support", columns=columns, NO_COLOR="1"
    ) as window:
        ready(window)
        for line in ("order 7", "/help", "/status", "/tree", "refund"):
            window.press(line.encode() + b"\n")
            if line == "refund":
                window.wait_for_more(r"y/n/e\? ")
                window.press(b"n no\n")
            ready(window)
        window.press(CTRL_D)
        status, printed = window.end()
    lines = [line for line in plain(printed).splitlines() if "\r" not in line]
    assert status == 0
    assert max(map(width_of, lines)) <= columns
    assert "\x1b[3" not in printed


def test_a_pipe_says_a_message_a_line(served: Served) -> None:
    status, said, errors = served.piped(
        "One.\n\nWhere is order 7?\n/status\n", "chat", "chat/9", "--agent", "support"
    )
    assert status == 0
    assert said.startswith("You said 'One.'\nIt ships on Friday.\nsession  chat/9\n")
    assert "\x1b" not in said + errors
    assert "find_order" in errors

    status, said, errors = served.piped("break\nTwo.", "chat", "chat/9")
    assert (status, said) == (1, "You said 'Two.'\n")
    assert errors.startswith("✗ scripted raised RuntimeError; see the worker's log\n")


def test_a_pipe_can_have_json(served: Served) -> None:
    status, said, _ = served.piped(
        "One.\nbreak\n", "chat", "chat/10", "--agent", "support", "--json"
    )
    events = [json.loads(line) for line in said.splitlines()]
    assert status == 1
    assert [event["type"] for event in events] == [
        "agent_start", "turn_start", "message_start", "message_end", "turn_end", "agent_end",
        "agent_start", "turn_start", "message_start", "run_failed",
    ]  # fmt: skip


def test_a_chat_needs_an_agent(served: Served) -> None:
    assert served.piped("Hi.", "chat", "chat/11") == (
        1,
        "",
        "perdure: the session has no agent yet; name the one to talk to with --agent\n",
    )


def test_a_damaged_log_is_one_line(served: Served) -> None:
    served.printed("append", "chat/13", "Hello.", "--agent", "support")
    served.printed("close", "chat/13")
    (log,) = (served.folder / "sessions").rglob("*13.jsonl")
    log.write_bytes(log.read_bytes().replace(b'"message"', b'"mess', 1))
    status, said, errors = served.piped("Hi.", "chat", "chat/13")
    assert (status, said) == (1, "")
    assert "line 2" in errors
    assert len(errors.splitlines()) == 1


def test_a_reader_that_leaves_early_ends_it_quietly(served: Served) -> None:
    with subprocess.Popen(
        [PERDURE, "chat", "chat/14", "--agent", "support", "--task-queue", "cli"],
        cwd=served.folder,
        env=os.environ | {"TEMPORAL_ADDRESS": served.address},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"One.\n")
        process.stdin.flush()
        process.stdout.read(1)
        process.stdout.close()
        _, errors = process.communicate(b"Two.\n")
    assert (process.returncode, b"Traceback" in errors) == (141, False)


def test_an_answer_is_streamed_to_a_terminal_and_whole_in_a_pipe(served: Served) -> None:
    """`perdure run`, too."""
    with served.terminal("run", "chat/12", "A poem.", "--agent", "poet") as window:
        window.wait_for_more("word1 word2")
        window.press(CTRL_C)
        status, printed = window.end()
    assert (status, "Traceback" in printed) == (130, False)
    assert "the run goes on" in plain(printed)
    served.printed("cancel", "chat/12")


# ── a server that is lost ──────────────────────────────────────────────────────────────────────


class Line:
    """A way to the server that can be cut."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._server = (host, int(port))
        self._ends: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        for end in (self._door, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                ours, theirs = self._door.accept()[0], socket.create_connection(self._server)
                self._ends += (ours, theirs)
                for pair in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=_hand_on, args=pair, daemon=True).start()


def _hand_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)


@contextmanager
def line_to(address: str) -> Iterator[Line]:
    line = Line(address)
    try:
        yield line
    finally:
        line.cut()


def test_a_server_that_is_lost_is_told_in_one_line(served: Served) -> None:
    with (
        line_to(served.address) as line,
        served.terminal(
            "chat", "chat/lost", "--agent", "slow", TEMPORAL_ADDRESS=line.address
        ) as window,
    ):
        ready(window)
        window.press(b"Are you there?\n")
        window.wait_for_more("there")
        while status_of(served, "chat/lost")["state"] != "running":
            pass
        line.cut()
        window.wait_for_more("the Temporal server does not answer; trying again")
    served.printed("cancel", "chat/lost")
