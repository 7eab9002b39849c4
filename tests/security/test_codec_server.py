"""`perdure codec-server`: it decrypts for the UI and the CLI of Temporal, and for nobody else."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload

from perdure import EncryptionError
from perdure.dev_server import DevServer, temporal_binary
from perdure.encryption import Keys
from perdure.encryption.codec_server import CodecServer
from perdure.encryption.payloads import EncryptionCodec
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from tests.cli.test_command_line import PERDURE
from tests.engine.agents import echo
from tests.security.conftest import NEW, OLD, Connecting, Serving

UI = "http://localhost:8233"
KEY = f"k1:{base64.b64encode(OLD).decode()}"


@pytest.fixture
def running(keys: Keys) -> Iterator[CodecServer]:
    with serving(CodecServer(keys)) as server:
        yield server


def serving(server: CodecServer) -> Any:
    class Running:
        def __enter__(self) -> CodecServer:
            self.thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            self.thread.start()
            return server

        def __exit__(self, *ending: object) -> None:
            server.shutdown()
            self.thread.join()
            server.server_close()

    return Running()


def ask(
    server: CodecServer, path: str, body: bytes | None, method: str = "POST", **headers: str
) -> tuple[int, str, Any]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(server.url + path, data=body, headers=names, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode(), refusal.headers


def as_body(*payloads: Payload) -> bytes:
    def b64(data: bytes) -> str:
        return base64.b64encode(data).decode()

    return json.dumps(
        {
            "payloads": [
                {"metadata": {k: b64(v) for k, v in p.metadata.items()}, "data": b64(p.data)}
                for p in payloads
            ]
        }
    ).encode()


PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"secret"')


def test_it_decodes_what_a_worker_encoded_and_encodes_what_a_worker_decodes(
    running: CodecServer, keys: Keys
) -> None:
    codec = EncryptionCodec(keys)
    status, answer, _ = ask(running, "/decode", as_body(codec.sealed(PLAIN), PLAIN))
    assert (status, answer) == (200, json.dumps(json.loads(as_body(PLAIN, PLAIN))))
    status, answer, _ = ask(running, "/default/encode?x=1", as_body(PLAIN))
    [sealed] = json.loads(answer)["payloads"]
    metadata = {name: base64.b64decode(value) for name, value in sealed["metadata"].items()}
    encoded = Payload(metadata=metadata, data=base64.b64decode(sealed["data"]))
    assert b"secret" not in encoded.data
    assert codec.opened(encoded) == PLAIN


def test_a_missing_key_is_named(running: CodecServer) -> None:
    sealed = EncryptionCodec(Keys({"k2": NEW})).sealed(PLAIN)
    status, answer, _ = ask(running, "/decode", as_body(sealed))
    assert (status, answer[:34]) == (400, "this is encrypted with key 'k2', a")


def test_a_page_of_the_ui_may_ask_and_others_may_not(running: CodecServer) -> None:
    status, _, headers = ask(running, "/decode", None, "OPTIONS", Origin=UI)
    assert (status, headers["Access-Control-Allow-Origin"]) == (204, UI)
    assert "X-Namespace" in headers["Access-Control-Allow-Headers"]
    status, _, headers = ask(running, "/decode", as_body(PLAIN), Origin=UI)
    assert (status, headers["Access-Control-Allow-Origin"]) == (200, UI)
    for method, body in (("OPTIONS", None), ("POST", as_body(PLAIN))):
        status, answer, headers = ask(running, "/decode", body, method, Origin="https://evil.test")
        assert (status, "Access-Control-Allow-Origin" in headers) == (403, False)
        assert "secret" not in answer


def test_with_a_token_only_who_sends_it_may_ask(keys: Keys) -> None:
    with serving(CodecServer(keys, token="open sesame")) as server:
        body = as_body(PLAIN)
        for headers in ({}, {"Authorization": "open sesame"}, {"Authorization": "Bearer é"}):
            assert ask(server, "/decode", body, **headers)[0] == 401
        assert ask(server, "/decode", body, Authorization="Bearer open sesame")[0] == 200
        # A browser asks first without one.
        assert ask(server, "/decode", None, "OPTIONS", Origin=UI)[0] == 204


@pytest.mark.parametrize(
    "path, body, status",
    [
        ("/decode", b"{", 400),
        ("/decode", b"\xff", 400),
        ("/decode", b'{"payloads": [{"data": 7}]}', 400),
        ("/decode", b"[" * 100_000, 400),
        ("/", b"{}", 404),
        ("/decode/other", b"{}", 404),
    ],
)
def test_what_is_no_request_is_refused(
    running: CodecServer, path: str, body: bytes, status: int
) -> None:
    assert ask(running, path, body)[0] == status
    assert ask(running, "/decode", as_body(PLAIN))[0] == 200


def test_a_request_that_is_too_large_is_refused(running: CodecServer) -> None:
    assert ask(running, "/decode", b"", Content_Length=str(2**40))[0] == 413


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "codec.example.com"])
def test_it_is_not_open_to_the_network_without_a_token(keys: Keys, host: str) -> None:
    with pytest.raises(EncryptionError, match="set PERDURE_CODEC_TOKEN"):
        CodecServer(keys, host=host)


def start(*options: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PERDURE, "codec-server", *options],
        env={**os.environ, **variables},
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_the_temporal_cli_shows_a_session_through_it(
    server: DevServer, connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path
) -> None:
    client = connecting(keys)
    async with secured(client, FileStore(tmp_path), echo()) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        await (await session.run("question-secret"))
        process = start("--port", "0", PERDURE_KEYS=KEY, PERDURE_CODEC_TOKEN="tok-123")
        assert process.stderr is not None
        said = await asyncio.to_thread(process.stderr.readline)
        assert said.startswith("codec server at http://127.0.0.1:")
        assert said.endswith(", keys k1\n")
        url = said.split()[3].rstrip(",")
        show = [
            *(temporal_binary(), "workflow", "show", "--workflow-id", workflow_id(session.id)),
            *("--address", server.address, "--output", "json"),
        ]
        hidden = await output(*show)
        shown = await output(*show, "--codec-endpoint", url, "--codec-auth", "Bearer tok-123")
        process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.to_thread(process.communicate, timeout=10)
    assert (process.returncode, errors) == (0, "")
    assert "question-secret" not in hidden
    assert "question-secret" in shown


async def output(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    told, _ = await process.communicate()
    assert process.returncode == 0
    # Messages are raw JSON, which the CLI shows in base64 at times.
    text = told.decode()
    return text + "".join(
        base64.b64decode(part + "==", validate=False).decode("utf-8", "replace")
        for part in text.split('"')
        if len(part) > 40 and len(part) % 4 != 1 and part.isalnum()
    )


@pytest.mark.parametrize(
    "variables, options, reason",
    [
        ({}, [], "there are no keys; set PERDURE_KEYS or PERDURE_KEYS_FILE"),
        ({"PERDURE_KEYS": KEY[:-2]}, [], "PERDURE_KEYS: key 1 "),
        ({"PERDURE_KEYS": KEY}, ["--host", "0.0.0.0"], "decrypts for everyone who reaches it"),
        ({"PERDURE_KEYS": KEY}, ["--host", "192.0.2.1"], "decrypts for everyone who reaches it"),
    ],
)
def test_what_it_cannot_serve_is_told_in_one_line(
    variables: dict[str, str], options: list[str], reason: str
) -> None:
    process = start(*options, **variables)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert errors.count("\n") == 1
    assert reason in errors
    assert KEY[4:20] not in errors


def test_a_port_that_is_none_is_refused() -> None:
    process = start("--port", "65536", PERDURE_KEYS=KEY)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "'--port': Input should be less than or equal to 65535" in errors
