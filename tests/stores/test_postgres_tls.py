"""TLS to a database, through what ends it before a server: its certificate is looked at."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from perdure.errors import StoreError
from perdure.stores import PostgresStore
from tests.stores.logs import ids, notes
from tests.stores.postgres_server import PostgresServer

WANTS_TLS = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
"""How a client of PostgreSQL asks for it."""


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a database")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


@contextlib.asynccontextmanager
async def tls_before(
    postgres: PostgresServer, context: ssl.SSLContext | None
) -> AsyncIterator[tuple[str, list[bool]]]:
    """A port that speaks TLS, or refuses to, before the server's socket; and who came encrypted."""
    came: list[bool] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = await reader.readexactly(8)
        if start == WANTS_TLS:
            writer.write(b"S" if context is not None else b"N")
            await writer.drain()
            start = b""
            if context is not None:
                await writer.start_tls(context)
        came.append(not start and context is not None)
        behind = await asyncio.open_unix_connection(f"{postgres.socket_folder}/.s.PGSQL.5432")
        behind[1].write(start)
        await asyncio.gather(pump(reader, behind[1]), pump(behind[0], writer))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def quietly() -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await serve(reader, writer)
            writer.close()

        tasks.add(asyncio.create_task(quietly()))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres?", came
    await asyncio.wait_for(asyncio.gather(*tasks), 10)


async def test_the_url_says_whose_certificate_is_believed(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    path, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key)
    schema = postgres.new_schema()
    async with tls_before(postgres, context) as (url, came):
        for options in (f"sslmode=verify-full&sslrootcert={path}", "sslmode=require"):
            async with PostgresStore(url + options, schema=schema) as store:
                await store.create_session(options[:20])
                await store.append_entries(options[:20], notes("e1"))
                assert ids(await store.load_entries(options[:20])) == ["e1"]
        assert came == [True] * len(came)
        other = tmp_path / "other"
        other.mkdir()
        stranger, _ = certificate(other)
        wrong = f"{url}sslmode=verify-full&sslrootcert={stranger}"
        async with PostgresStore(wrong, schema=schema) as store:
            with pytest.raises(StoreError) as caught:
                await store.list_sessions()
    assert "TLS failed (CERTIFICATE_VERIFY_FAILED)" in str(caught.value)
    assert str(caught.value).endswith("; look at sslmode and sslrootcert in the URL")


async def test_a_server_without_tls_is_told_from_one_that_does_not_answer(
    postgres: PostgresServer,
) -> None:
    async with tls_before(postgres, None) as (url, _):
        async with PostgresStore(f"{url}sslmode=require") as store:
            with pytest.raises(StoreError, match="the server does not speak TLS; look at sslmode"):
                await store.list_sessions()
        async with PostgresStore(f"{url}sslmode=prefer", schema=postgres.new_schema()) as store:
            assert await store.list_sessions() == []
