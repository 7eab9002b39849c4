"""TLS and API keys come from the SDK's environment configuration, and are not told to anyone."""

from __future__ import annotations

import base64
import os
import subprocess
import traceback
from pathlib import Path

import pytest

from perdure import ServerError, Sessions
from perdure.client import connect_client
from perdure.dev_server import DevServer
from perdure.encryption import Keys
from tests.cli.test_command_line import PERDURE
from tests.security.conftest import OLD

API_KEY = "api-key-secret"
WRITTEN = base64.b64encode(OLD).decode()


def told(error: BaseException) -> str:
    """All that a log of the error would have."""
    return "".join(traceback.format_exception(error))


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")


@pytest.mark.usefixtures("unreachable")
@pytest.mark.parametrize("key", [API_KEY, f"{API_KEY}\n", f"{API_KEY}é"], ids=["", "lf", "text"])
async def test_an_api_key_is_not_in_the_error_when_there_is_no_connection(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", key)
    with pytest.raises(ServerError, match=r"answers at 127\.0\.0\.1:1") as raised:
        await connect_client()
    assert API_KEY not in told(raised.value)


@pytest.mark.parametrize(
    "config",
    [
        f'[profile.default]\naddress = "127.0.0.1:1"\napi_key = "{API_KEY}',
        f'[profile.default]\napi_key = ["{API_KEY}"]',
        f'[profile.default.tls]\nclient_key_data = """-----BEGIN\n{API_KEY}"""\n[profile',
    ],
    ids=["cut", "kind", "tls"],
)
async def test_a_configuration_that_cannot_be_read_is_not_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, config: str
) -> None:
    (tmp_path / "temporal.toml").write_text(config)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))
    with pytest.raises(ServerError, match="configuration cannot be read") as raised:
        await connect_client()
    assert API_KEY not in told(raised.value)
    assert str(tmp_path) in str(raised.value)


async def test_a_certificate_that_is_missing_or_none_is_an_error_without_its_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    (tmp_path / "key.pem").write_text(API_KEY)
    monkeypatch.setenv("TEMPORAL_TLS", "true")
    for variable in ("TEMPORAL_TLS_CLIENT_KEY_PATH", "TEMPORAL_TLS_CLIENT_CERT_PATH"):
        monkeypatch.setenv(variable, str(tmp_path / "key.pem"))
    with pytest.raises(ServerError) as raised:
        await connect_client()
    assert API_KEY not in told(raised.value)
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", str(tmp_path / "nothing.pem"))
    with pytest.raises(ServerError) as raised:
        await connect_client()
    assert "nothing.pem" in str(raised.value)


async def test_what_an_application_holds_shows_no_secret(
    server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    monkeypatch.setenv("PERDURE_KEYS", f"k1:{WRITTEN}")
    async with Sessions.connect(store="encrypted:memory:") as sessions:
        client = sessions.client
        held = (sessions, vars(sessions), sessions.store, client.config(), client.data_converter)
        shown = [repr(value) for value in held]
    assert all(WRITTEN not in text and repr(OLD)[2:20] not in text for text in shown)


@pytest.mark.parametrize("variable", ["PERDURE_KEYS", "PERDURE_KEYS_FILE"])
async def test_one_variable_turns_encryption_on(
    server: DevServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    (tmp_path / "keys").write_text(f"k1:{WRITTEN}")
    value = f"k1:{WRITTEN}" if variable == "PERDURE_KEYS" else str(tmp_path / "keys")
    monkeypatch.setenv(variable, value)
    client = await connect_client()
    assert repr(client.data_converter.payload_codec) == "EncryptionCodec(Keys(ids=['k1']))"
    other = await connect_client(keys=Keys({"k9": OLD}))
    assert "k9" in repr(other.data_converter.payload_codec)
    monkeypatch.delenv(variable)
    assert (await connect_client()).data_converter.payload_codec is None


@pytest.mark.parametrize(
    "variables",
    [
        {"PERDURE_KEYS": WRITTEN},
        {"PERDURE_KEYS": f"k1:{WRITTEN}", "TEMPORAL_ADDRESS": "127.0.0.1:1"},
        {"TEMPORAL_API_KEY": API_KEY, "TEMPORAL_ADDRESS": "127.0.0.1:1"},
        {"PERDURE_KEYS": f"k1:{WRITTEN}", "PERDURE_STORE": "encrypted:nonsense:"},
    ],
    ids=["keys", "no server", "api key", "store"],
)
def test_a_worker_that_cannot_start_tells_no_secret_also_with_a_traceback(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    (tmp_path / "nobody.py").write_text("from perdure import Agent\nagent = Agent('a')\n")
    ended = subprocess.run(
        [PERDURE, "--debug", "worker", "nobody:agent"],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    for secret in (WRITTEN, API_KEY):
        assert secret not in ended.stdout + ended.stderr
