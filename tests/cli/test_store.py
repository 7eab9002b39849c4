"""`perdure store`: what it says and returns, as a process."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from perdure.stores import FileStore, PostgresStore
from tests.cli.test_command_line import PERDURE, perdure
from tests.stores.logs import ids, notes
from tests.stores.postgres_server import PostgresServer


@pytest.fixture
async def files(tmp_path: Path) -> FileStore:
    """Three sessions in `sessions`."""
    store = FileStore(tmp_path / "sessions")
    for name, size in (("org/team", 700), ("two", 2), ("none", 0)):
        await store.create_session(name)
        await store.append_entries(name, notes(*(f"e{number}" for number in range(size))))
    return store


def test_what_is_not_there_is_not_copied(tmp_path: Path) -> None:
    status, said, errors = perdure("store", "copy", "files:./sesions", "files:./b", cwd=tmp_path)
    assert (status, said) == (1, "")
    assert errors.startswith("perdure: there is no folder")


async def test_migrate_makes_the_tables_and_may_be_repeated(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url, schema = postgres.url(), postgres.new_schema()
    migrate = ["store", "migrate", "--schema", schema]
    assert perdure(*migrate, url, cwd=tmp_path) == (0, f"schema {schema!r}: version 0 → 2\n", "")
    assert perdure(*migrate, cwd=tmp_path, PERDURE_STORE=url) == (
        0,
        f"schema {schema!r}: is at version 2 already\n",
        "",
    )
    named = f"{url}&schema={schema.replace(' ', '+')}"
    status, said, _ = perdure("store", "migrate", named, "--json", cwd=tmp_path)
    assert (status, json.loads(said)) == (0, {"schema": schema, "before": 2, "after": 2})


async def test_migrate_makes_the_tables_of_an_encrypted_store_without_its_keys(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    schema = postgres.new_schema()
    assert perdure(
        "store", "migrate", "--schema", schema,
        cwd=tmp_path, PERDURE_STORE=f"encrypted:{postgres.url()}",
    ) == (0, f"schema {schema!r}: version 0 → 2\n", "")  # fmt: skip


@pytest.mark.parametrize(
    "arguments, environment, expected",
    [
        (["migrate"], {}, "perdure: no store; name it (perdure store migrate postgresql://…) or"),
        (
            ["migrate", "postgresql://me:pw@127.0.0.1:1/db"],
            {},
            "perdure: PostgreSQL at 127.0.0.1:1",
        ),
        (["migrate", "postgresql://me:p/w@h/db"], {}, "perdure: the URL of PostgreSQL cannot be"),
        (["copy", "files:here", "shoebox:"], {}, "perdure: 'shoebox' is no kind of store"),
        (["copy", "memory:", "files:here"], {}, "perdure: memory: ends with its process; copy"),
        (["copy", "files:.", "postgresql://me:pw@127.0.0.1:1/db", "s"], {}, "perdure: session 's'"),
    ],
)
def test_what_cannot_be_done_is_one_line_on_standard_error(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], expected: str
) -> None:
    status, _, errors = perdure("store", *arguments, cwd=tmp_path, **environment)
    assert status == 1
    assert errors.startswith(expected)
    assert errors.count("\n") == 1
    assert "pw" not in errors


def test_files_need_no_migration(tmp_path: Path) -> None:
    assert perdure("store", "migrate", "files:sessions", cwd=tmp_path) == (
        0,
        "nothing to do: only PostgreSQL has tables\n",
        "",
    )


async def test_copy_to_postgresql_and_back(
    postgres: PostgresServer, files: FileStore, tmp_path: Path
) -> None:
    schema = postgres.new_schema()
    url = f"{postgres.url()}&schema={schema.replace(' ', '+')}"
    copy = ["store", "copy", "files:sessions", url]
    assert perdure(*copy, "two", cwd=tmp_path) == (
        0,
        "checked 1 session of 2 entries, 2 of them new here\n",
        "",
    )
    assert perdure(*copy, cwd=tmp_path) == (
        0,
        "checked 3 sessions of 702 entries, 700 of them new here\n",
        "",
    )
    async with PostgresStore(postgres.url(), schema=schema) as store:
        assert ids(await store.load_entries("two")) == ["e0", "e1"]
    status, said, _ = perdure("store", "copy", url, "files:back", "--json", cwd=tmp_path)
    assert (status, json.loads(said)) == (
        0,
        {"sessions": 3, "entries": 702, "added": 702, "extra": 0, "failed": []},
    )
    for log in files.root.iterdir():
        assert (tmp_path / "back" / log.name).read_bytes() == log.read_bytes()


async def test_copy_names_what_it_leaves_out(files: FileStore, tmp_path: Path) -> None:
    with (files.root / "two.jsonl").open("a") as log:
        log.write("nonsense\n{}\n")
    (files.root / "empty.jsonl").touch()
    status, said, errors = perdure("store", "copy", "files:sessions", "files:there", cwd=tmp_path)
    assert (status, said) == (
        1,
        "checked 2 sessions of 700 entries, 700 of them new here; not copied: 1\n",
    )
    assert errors.startswith("perdure: session 'two': ")
    assert "line 4" in errors
    status, said, _ = perdure(
        "store", "copy", "files:sessions", "files:there", "gone", "--json", cwd=tmp_path
    )
    assert status == 1
    assert [problem["id"] for problem in json.loads(said)["failed"]] == ["gone"]


async def test_copy_shows_a_bar_on_a_terminal(files: FileStore, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [str(PERDURE), "store", "copy", "files:sessions", "files:there"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    ) as process:
        os.close(theirs)
        said, _ = await asyncio.to_thread(process.communicate)
    drawn = os.read(ours, 100_000).decode()
    os.close(ours)
    assert process.returncode == 0
    assert said.decode() == "checked 3 sessions of 702 entries, 702 of them new here\n"
    assert "copying" in drawn
    assert "3/3" in drawn
