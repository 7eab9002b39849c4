"""`perdure log` and `perdure tree`, on sessions in files, without a server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from perdure.cli.screen import width_of
from tests.cli.sessions import conversation, placed, write
from tests.cli.terminal import plain, terminal
from tests.cli.test_command_line import PERDURE, perdure

TREE = """\
user-42 · 11 entries, 2 branches
● aaaaaa01 11-29 09:12 user Where is order 7?
● aaaaaa02 11-29 09:13 assistant → find_order(order_id="7", deep=[1,{}])
● aaaaaa03 11-29 09:13 tool ✓ find_order {"ships": "Friday"}
● aaaaaa04 11-29 09:14 assistant It ships on Friday.
⑂ forked to what-if
├─ ○ aaaaaa05 11-29 09:15 user And order 8?
│  ○ aaaaaa06 11-29 09:16 assistant Order 8 was cancelled.
● aaaaaa07 11-29 09:17 user Cancel 7, too.
● aaaaaa08 11-29 09:18 assistant Done.
◆ aaaaaa09 11-29 09:19 compaction Order 7 ships on Friday.
● aaaaaa10 11-29 09:20 note {"body":"call back on <Monday>"}
▶ aaaaaa11 11-29 09:21 user Thanks! 谢谢 ← leaf
"""

LOG = """\
── 2026-11-29 ──
09:19:30 compaction · aaaaaa09
Order 7 ships on Friday.

09:20:30 note · aaaaaa10
{"body":"call back on <Monday>"}

09:21:30 user · aaaaaa11
Thanks! 谢谢

"""


def printed(folder: Path, *arguments: str) -> str:
    status, said, errors = perdure(*arguments, cwd=folder, TZ="UTC")
    assert (status, errors) == (0, "")
    return said


def test_a_tree_shows_branches_the_leaf_compactions_and_forks(folder: Path) -> None:
    assert printed(folder, "tree", "user-42") == TREE


def test_a_fork_names_its_parent(folder: Path) -> None:
    assert printed(folder, "tree", "what-if").splitlines()[:2] == [
        "what-if · 5 entries",
        "⑂ forked from user-42",
    ]


def test_another_leaf_makes_another_branch_the_active_one(folder: Path) -> None:
    told = printed(folder, "tree", "user-42", "--leaf", "aaaaaa06").splitlines()
    assert told[-1] == "▶ aaaaaa06 11-29 09:16 assistant Order 8 was cancelled. ← leaf"
    assert told[6] == "├─ ○ aaaaaa07 11-29 09:17 user Cancel 7, too."


def test_a_log_is_the_path_to_the_leaf(folder: Path) -> None:
    assert printed(folder, "log", "user-42", "--last", "3") == LOG
    assert "Order 8 was cancelled." not in printed(folder, "log", "user-42")


def test_a_log_tells_model_tokens_thoughts_and_calls(folder: Path) -> None:
    told = printed(folder, "log", "user-42", "--leaf", "aaaaaa02").splitlines()
    assert told[4:] == [
        "09:13:30 assistant · aaaaaa02 · claude-sonnet-4-5 · 1.2k in, 340 out",
        "(thinks) I look it up.",
        '→ find_order(order_id="7", deep=[1,{}])',
        "",
    ]


def test_the_whole_log_says_where_it_branches_off(folder: Path) -> None:
    told = printed(folder, "log", "user-42", "--all").splitlines()
    place = told.index("├─ branches off from aaaaaa04")
    assert told[place + 2] == "09:17:30 user · aaaaaa07"


def test_raw_is_the_log_byte_for_byte(folder: Path) -> None:
    told = printed(folder, "log", "user-42", "--all", "--raw")
    lines = (folder / "sessions/user-42.jsonl").read_text().splitlines(keepends=True)
    assert told == "".join(lines[1:])


def test_json_of_a_log_has_every_key_in_every_line(folder: Path) -> None:
    lines = [json.loads(line) for line in printed(folder, "log", "user-42", "--json").splitlines()]
    assert lines[1] == {
        "id": "aaaaaa02",
        "parent_id": "aaaaaa01",
        "created_at": "2026-11-29T09:13:30Z",
        "type": "message",
        "role": "assistant",
        "meta": False,
        "text": "",
        "tool_calls": [
            {"id": "c1", "name": "find_order", "arguments": {"order_id": "7", "deep": [1, {}]}}
        ],
        "tool_call_id": "",
        "tool_name": "",
        "is_error": False,
        "model": "claude-sonnet-4-5",
        "stop_reason": "tool_use",
        "error": "",
        "usage": {"input": 1200, "output": 340},
        "fields": {},
    }
    assert [line.keys() for line in lines] == [lines[0].keys()] * len(lines)
    assert lines[-2]["fields"] == {"body": "call back on <Monday>"}


def test_json_of_a_tree_is_flat(folder: Path) -> None:
    told = json.loads(printed(folder, "tree", "user-42", "--json"))
    nodes = told.pop("nodes")
    assert told == {
        "session_id": "user-42",
        "forked_from": None,
        "leaf_id": "aaaaaa11",
        "leaves": ["aaaaaa06", "aaaaaa11"],
        "roots": ["aaaaaa01"],
        "forks": {"aaaaaa04": ["what-if"]},
    }
    assert nodes[3] == {
        "id": "aaaaaa04",
        "parent_id": "aaaaaa03",
        "created_at": "2026-11-29T09:14:30Z",
        "type": "message",
        "role": "assistant",
        "headline": "It ships on Friday.",
        "children": ["aaaaaa05", "aaaaaa07"],
    }


def test_stored_sessions_are_listed_without_a_server(folder: Path) -> None:
    told = printed(folder, "ls", "--stored", "--json").splitlines()
    assert [json.loads(line)["session_id"] for line in told] == ["user-42", "what-if"]
    assert json.loads(told[0]) == {
        "session_id": "user-42",
        "instance": "",
        "state": "stored",
        "agent": None,
        "runs": None,
        "turns": None,
        "tokens": None,
        "started_at": None,
        "error": None,
    }
    assert "what-if" not in printed(folder, "ls", "user", "--stored")


def test_a_tenant_has_sessions_of_its_own(folder: Path) -> None:
    write(folder / "sessions", "acme:user-42", conversation()[:1])
    assert printed(folder, "tree", "user-42", "--tenant", "acme").startswith("user-42 · 1 entry\n")
    said = printed(folder, "ls", "--stored", "--tenant", "acme", "--json")
    assert [json.loads(line)["session_id"] for line in said.splitlines()] == ["user-42"]
    status, _, errors = perdure("log", "user-42", "--tenant", "No!", cwd=folder)
    assert (status, errors.startswith("perdure: 'No!' cannot name a tenant; ")) == (1, True)


def test_the_store_is_that_of_the_option_then_that_of_the_environment(folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    store = f"files:{folder}/sessions"
    assert perdure("log", "user-42", "--store", store, cwd=elsewhere)[0] == 0
    assert perdure("log", "user-42", cwd=elsewhere, PERDURE_STORE=store)[0] == 0
    assert perdure("log", "user-42", cwd=elsewhere)[0] == 1


# ── in a terminal ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arguments", [["tree", "user-42"], ["log", "user-42"]])
@pytest.mark.parametrize("columns", [20, 100])
def test_every_line_fits_the_terminal(folder: Path, columns: int, arguments: list[str]) -> None:
    with terminal(*arguments, cwd=folder, columns=columns) as window:
        status, said = window.end()
    lines = plain(said).splitlines()
    assert status == 0
    assert max(map(width_of, lines)) <= columns
    assert any("user" in line for line in lines)


@pytest.mark.parametrize("columns", [1, 5, 9, 13, 20])
def test_a_list_fits_any_terminal(folder: Path, columns: int) -> None:
    with terminal("ls", "--stored", cwd=folder, columns=columns) as window:
        status, said = window.end()
    assert status == 0
    assert max(map(width_of, plain(said).splitlines())) <= columns


def test_there_is_colour_on_a_terminal_and_nowhere_else(folder: Path) -> None:
    with terminal("tree", "user-42", cwd=folder, columns=100) as window:
        assert "\x1b[32muser\x1b[0m" in window.end()[1]
    with terminal("tree", "user-42", cwd=folder, columns=100, NO_COLOR="1") as window:
        assert window.end()[1] == TREE
    assert "\x1b" not in printed(folder, "tree", "user-42")


def test_what_a_log_holds_cannot_drive_the_terminal(folder: Path) -> None:
    from perdure.entries import text

    evil = "\x1b]0;owned\x07 \x1b[2J\r hidden"
    write(folder / "sessions", "evil", [placed(text(evil), "\x1b[31m", "", 0)])
    for command in ("tree", "log", "verify"):
        with terminal(command, "evil", cwd=folder, NO_COLOR="1") as window:
            status, said = window.end()
        assert (status, "\x1b" in said, "\r" in said, "\x07" in said) == (0, False, False, False)


def test_a_log_is_followed_until_ctrl_c(folder: Path) -> None:
    with terminal("log", "user-42", "--last", "1", "--follow", cwd=folder) as window:
        window.wait_for("Thanks!")
        entries = conversation()
        late = placed(entries[0], "aaaaaa12", "aaaaaa11", 20)
        from perdure.codec import encode_entry

        with (folder / "sessions/user-42.jsonl").open("ab") as log:
            log.write(encode_entry(late) + b"\n")
        window.wait_for("Where is order 7")
        window.press(b"\x03")
        status, said = window.end()
    assert status == 130
    assert "Traceback" not in said


# ── what goes wrong ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["log", "nobody"], "perdure: session 'nobody' is not in this store; "),
        (["tree", "nobody"], "perdure: session 'nobody' is not in this store; "),
        (["verify", "nobody"], "perdure: session 'nobody' is not in this store; "),
        (["export", "nobody"], "perdure: session 'nobody' is not in this store; "),
        (["log", "user-42", "--leaf", "zzz"], "perdure: no entry 'zzz' in the session's log; "),
        (["tree", "user-42", "--leaf", "aaaaaa"], "perdure: 11 entries begin with 'aaaaaa'; "),
        (["log", ""], "perdure: session ID '' is empty; "),
        (["log", "x", "--store", "shoebox:"], "perdure: 'shoebox' is no kind of store; "),
        (["export", "user-42", "-o", "/nowhere/x"], "perdure: /nowhere/x: No such file"),
        (["export", "user-42", "-o", "/"], "perdure: /: it is a folder; choose another file"),
    ],
)
def test_what_cannot_be_read_is_one_line(folder: Path, arguments: list[str], expected: str) -> None:
    status, said, errors = perdure(*arguments, cwd=folder)
    assert (status, said) == (1, "")
    assert errors.startswith(expected)
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["log"],
        ["log", "user-42", "--raw", "--json"],
        ["verify"],
        ["verify", "user-42", "--all"],
        ["export", "user-42", "--format", "pdf"],
        ["export", "user-42", "--json"],
        ["ls", "--live", "--stored"],
        ["ls", "--state", "asleep"],
        ["run", "user-42", ""],
        ["run", "user-42", "-"],
        ["approve", "user-42", "call", "--deny", "--arguments", "{}"],
    ],
)
def test_a_command_line_that_means_nothing_has_status_2(folder: Path, arguments: list[str]) -> None:
    status, said, errors = perdure(*arguments, cwd=folder)
    assert (status, said) == (2, "")
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", ["log", "tree", "verify", "export"])
def test_damage_is_named_with_its_file_and_line(folder: Path, command: str) -> None:
    log = folder / "sessions/user-42.jsonl"
    lines = log.read_bytes().split(b"\n")
    lines[3] = b'{"type":"message","id":'
    log.write_bytes(b"\n".join(lines))
    status, said, errors = perdure(command, "user-42", cwd=folder)
    assert status == 1
    assert "line 4" in said + errors
    assert len(errors.splitlines()) == 1
    assert "Traceback" not in said + errors


@pytest.mark.parametrize(
    "arguments",
    [
        ["log", "long"],
        ["log", "long", "--raw"],
        ["log", "long", "--json"],
        ["tree", "long", "--all"],
        ["tree", "long", "--json"],
        ["export", "long"],
        ["export", "long", "--format", "html"],
    ],
)
def test_a_reader_that_leaves_early_ends_the_command_quietly(
    long_folder: Path, arguments: list[str]
) -> None:
    with subprocess.Popen(
        [PERDURE, *arguments], cwd=long_folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def test_who_follows_a_log_and_leaves_ends_the_command(folder: Path) -> None:
    """Though nothing is appended that could not be printed."""
    with subprocess.Popen(
        [PERDURE, "log", "user-42", "--follow"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while b"Thanks!" not in process.stdout.readline():
            pass
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == b""


# ── ten thousand entries ───────────────────────────────────────────────────────────────────────


def test_a_large_tree_is_folded_to_what_can_be_read(long_folder: Path) -> None:
    lines = printed(long_folder, "tree", "long").splitlines()
    assert lines[0] == "long · 10,000 entries, 251 branches"
    assert len(lines) == 302
    assert [line for line in lines if "rows, --all shows them" in line] == [lines[41]]
    assert lines[-1].startswith("▶ ")
    assert len(printed(long_folder, "tree", "long", "--all").splitlines()) == 10_001


def test_a_large_log_is_printed_whole_or_from_its_end(long_folder: Path) -> None:
    assert len(printed(long_folder, "log", "long", "--json").splitlines()) == 9_500
    assert len(printed(long_folder, "log", "long", "-n", "2", "--json").splitlines()) == 2


def test_a_full_disk_is_one_line(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [PERDURE, "log", "user-42"],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (
        1,
        "perdure: cannot print: No space left on device\n",
    )
