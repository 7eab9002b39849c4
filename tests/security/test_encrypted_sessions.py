"""Sessions whose payloads are encrypted work as others do, and nothing of them can be read."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import Iterable
from pathlib import Path

import pytest
from temporalio.client import Client

from perdure import (
    EncryptionError,
    ModelError,
    PerdureError,
    Session,
    Sessions,
    ToolContext,
    ephemeral,
    local,
    text,
    tool,
)
from perdure.data_conversion import data_converter
from perdure.dev_server import dev_server
from perdure.encryption import Keys
from perdure.encryption.keys import new_key
from perdure.encryption.payloads import EncryptionCodec
from perdure.models.scripted import call
from perdure.session_id import workflow_id
from perdure.stores import EncryptedStore, FileStore, PostgresStore
from perdure.worker import build_worker
from tests.engine.agents import echo, scripted, texts, watched
from tests.engine.histories import histories
from tests.security.conftest import NEW, OLD, Connecting, Serving
from tests.stores.postgres_server import PostgresServer

SECRETS = [
    *("question-secret", "answer-secret", "argument-secret", "result-secret", "whisper-secret"),
    *("summary-secret", "failure-secret", "steer-secret", "branch-secret", "own-run-secret"),
]
"""What must be nowhere; each is said in another way."""


@tool(idempotent=True)
async def look(ctx: ToolContext, what: str) -> str:
    """Look something up."""
    return f"result-secret of {what}"


def everything(messages: list[object]) -> object:
    """Says and does a bit of everything, by what it was last told."""
    last = messages[-1].text  # type: ignore[attr-defined]
    if "fail" in last:
        return ModelError("failure-secret")
    if "Summarize" in last:
        return "summary-secret"
    if "look" in last:
        return ["answer-secret", call("look", what="argument-secret")]
    return "answer-secret"


async def live(session: Session) -> None:
    """A life with each of the verbs."""
    run = await session.run(ephemeral(text("whisper-secret")), "question-secret: look", stream=True)
    events, error = await watched(run)
    assert error is None
    assert events[-1].type == "agent_end"
    leaf = await session.leaf_id()
    assert await (await session.run("own-run-secret", run_id="mine")) == await (
        await session.run("own-run-secret", run_id="mine")
    )
    with pytest.raises(ModelError, match="failure-secret"):
        await (await session.run("fail"))
    assert (await session.status()).last_error is not None
    await session.branch(leaf)
    fork = await session.fork(f"{session.id}-fork")
    await (await fork.run("branch-secret"))
    assert await session.compact() is not None
    first, second = await asyncio.gather(
        session.run("question-secret"), session.run("steer-secret", when_busy="steer")
    )
    await asyncio.gather(first, second)
    await session.append("question-secret")
    with pytest.raises(PerdureError):
        await session.cancel("no-such-run")
    await session.close()


async def test_a_life_leaves_nothing_readable_in_files_rows_and_histories(
    keys: Keys, tmp_path: Path
) -> None:
    """The server's database is read as raw bytes, as are the log and each event of history."""
    agent = scripted(everything, tools=[look])
    database = tmp_path / "temporal.db"
    session_id = f"talk-{uuid.uuid4().hex}"
    async with dev_server(database=database) as server:
        config = server.client.config()
        config["data_converter"] = data_converter(keys=keys, payloads=f"files:{tmp_path}/payloads")
        client = Client(**config)
        store = EncryptedStore(FileStore(tmp_path / "sessions"), keys)
        async with build_worker(client, agents=[agent], store=store, task_queue="q"):
            sessions = Sessions(client, store, task_queue="q", max_history_events=20)
            session = await sessions.open(session_id, agent="agent")
            await live(session)
            await (await session.run("question-secret" + "x" * 300_000))
            said = texts(await session.entries())
        assert {"question-secret: look", "result-secret of argument-secret"} <= set(said)
        found = b""
        for name in (session_id, f"{session_id}-fork"):
            async for events in histories(client, workflow_id(name)):
                found += b"".join(event.SerializeToString() for event in events)
        assert b"binary/encrypted" in found
        assert readable(found) == []
    for path in [*tmp_path.glob("temporal.db*"), *tmp_path.glob("sessions/*")]:
        assert readable(path.read_bytes()) == [], path
    payloads = [path for path in (tmp_path / "payloads").rglob("*") if path.is_file()]
    assert payloads
    assert all(readable(path.read_bytes()) == [] for path in payloads)


async def test_a_life_leaves_nothing_readable_in_postgresql(
    connecting: Connecting, keys: Keys, postgres: PostgresServer
) -> None:
    """All rows of all tables in one schema: sessions, entries, and payloads of 128 kB and more."""
    agent = scripted(everything, tools=[look])
    schema, queue = postgres.new_schema(), f"test-{uuid.uuid4().hex}"
    client = connecting(keys, f"{postgres.url()}&schema={schema.replace(' ', '+')}")
    async with PostgresStore(postgres.url(), schema=schema) as rows:
        store = EncryptedStore(rows, keys)
        async with build_worker(client, agents=[agent], store=store, task_queue=queue):
            sessions = Sessions(client, store, task_queue=queue, max_history_events=20)
            session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
            await live(session)
            await (await session.run("question-secret" + "x" * 300_000))
            assert "result-secret of argument-secret" in texts(await session.entries())
    connection = await postgres.connect()
    try:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema
        )
        kept = {
            table: await connection.fetch(f'SELECT * FROM "{schema}"."{table}"')
            for (table,) in tables
        }
    finally:
        await connection.close()
    assert set(kept) == {"entries", "payloads", "schema_version", "sessions"}
    assert all(kept.values())
    for table, found in kept.items():
        for row in found:
            for value in row:
                data = value if isinstance(value, bytes) else str(value).encode()
                assert readable(data) == [], table


def readable(data: bytes) -> list[str]:
    """The secrets that are found in these bytes, as they are or in base64."""
    return [secret for secret in SECRETS if any(form in data for form in forms(secret))]


def forms(secret: str) -> Iterable[bytes]:
    yield secret.encode()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + secret.encode())
        yield encoded[4 if shift else 0 : -4]


async def test_the_scan_finds_what_is_not_encrypted(tmp_path: Path) -> None:
    agent = scripted(everything, tools=[look])
    database = tmp_path / "temporal.db"
    async with dev_server(database=database) as server:
        store = FileStore(tmp_path / "sessions")
        async with build_worker(server.client, agents=[agent], store=store, task_queue="q"):
            session = await Sessions(server.client, store, task_queue="q").open(agent="agent")
            await live(session)
    rows = b"".join(path.read_bytes() for path in tmp_path.glob("temporal.db*"))
    assert set(readable(rows)) >= {"question-secret", "answer-secret", "result-secret"}


async def test_summaries_and_details_in_the_ui_are_encrypted_too(
    connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path
) -> None:
    client = connecting(keys)
    async with secured(client, FileStore(tmp_path), scripted(everything, tools=[look])) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        await (await session.run("look"))
        handle = client.get_workflow_handle(workflow_id(session.id))
        described = await handle.describe()
        # Read by a client with the keys, they are words.
        assert await described.static_summary() == f"perdure session {session.id}"
        [events] = [events async for events in histories(client, workflow_id(session.id))]
    summaries = [event.user_metadata.summary for event in events if event.HasField("user_metadata")]
    assert len(summaries) >= 3
    assert {dict(summary.metadata)["encoding"] for summary in summaries} == {b"binary/encrypted"}
    opened = await EncryptionCodec(keys).decode(summaries)
    assert any(b"argument-secret" in summary.data for summary in opened)


async def test_a_running_session_goes_on_under_a_new_key(
    connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path
) -> None:
    store, queue = FileStore(tmp_path), f"test-{uuid.uuid4().hex}"
    session_id = f"talk-{uuid.uuid4().hex}"
    async with secured(connecting(keys), store, echo(), task_queue=queue) as sessions:
        await (await (await sessions.open(session_id, agent="agent")).run("under the old key"))
    rotated = connecting(Keys({"k2": NEW, "k1": OLD}))
    async with secured(rotated, store, echo(), task_queue=queue) as sessions:
        session = await sessions.open(session_id)
        await (await session.run("under the new key"))
        [events] = [events async for events in histories(rotated, workflow_id(session_id))]
    used = [key for key in (b"k1", b"k2") if key in b"".join(e.SerializeToString() for e in events)]
    assert used == [b"k1", b"k2"]
    assert texts(await session.entries())[-1] == "You said 'under the new key'"


async def test_encryption_can_be_turned_on_for_a_running_session(
    connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path
) -> None:
    store, queue = FileStore(tmp_path), f"test-{uuid.uuid4().hex}"
    session_id = f"talk-{uuid.uuid4().hex}"
    async with secured(connecting(), store, echo(), task_queue=queue) as sessions:
        await (await (await sessions.open(session_id, agent="agent")).run("in the open"))
    async with secured(connecting(keys), store, echo(), task_queue=queue) as sessions:
        session = await sessions.open(session_id)
        await (await session.run("behind a door"))
    assert len(await session.entries()) == 4


@pytest.mark.parametrize("theirs", [None, Keys({"k2": NEW})], ids=["none", "others"])
async def test_a_client_without_the_key_is_told_which_and_harms_nothing(
    connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path, theirs: Keys | None
) -> None:
    store = FileStore(tmp_path)
    async with secured(connecting(keys), store, echo()) as sessions:
        session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
        await (await session.run("one"))
        stranger = Sessions(connecting(theirs), store, task_queue=sessions.task_queue)
        with pytest.raises(EncryptionError, match="encrypted with key 'k1'") as raised:
            await stranger.open(session.id, timeout=5)
        assert raised.value.key_id == "k1"
        await (await session.run("two"))
        assert len(await session.entries()) == 4


@pytest.mark.parametrize("workers", [None, Keys({"k1": OLD})], ids=["none", "others"])
@pytest.mark.parametrize("runs", [True, False], ids=["running", "new"])
async def test_a_client_whose_key_the_workers_lack_is_told_so(
    connecting: Connecting, secured: Serving, tmp_path: Path, workers: Keys | None, runs: bool
) -> None:
    """Whether its session runs or not: one that is ahead in a rotation, for example."""
    store, queue = FileStore(tmp_path), f"test-{uuid.uuid4().hex}"
    session_id = f"talk-{uuid.uuid4().hex}"
    ahead = connecting(Keys({"k2": NEW, "k1": OLD}))
    async with build_worker(connecting(workers), agents=[echo()], store=store, task_queue=queue):
        if runs:
            await Sessions(connecting(workers), store, task_queue=queue).open(
                session_id, agent="agent"
            )
        early = Sessions(ahead, store, task_queue=queue)
        with pytest.raises(EncryptionError) as raised:
            await early.open(session_id, agent="agent", timeout=3)
        here = "the keys here are 'k1'" if workers is not None else "no keys are set here"
        assert str(raised.value) == (
            "the session's worker cannot read what it is sent: this is encrypted with key 'k2', and"
            f" {here}; add it to PERDURE_KEYS or to the file that PERDURE_KEYS_FILE names"
        )
        assert raised.value.key_id == "k2"
    async with secured(ahead, store, echo(), task_queue=queue) as sessions:
        session = await sessions.open(session_id, agent="agent")
        assert (await (await session.run("now")))[-1].text == "You said 'now'"


async def test_where_neither_reads_the_other_both_are_named(
    connecting: Connecting, tmp_path: Path
) -> None:
    store, queue = FileStore(tmp_path), f"test-{uuid.uuid4().hex}"
    theirs, ours = connecting(Keys({"k1": OLD})), connecting(Keys({"k2": NEW}))
    async with build_worker(theirs, agents=[echo()], store=store, task_queue=queue):
        with pytest.raises(EncryptionError, match="give it that key") as raised:
            await Sessions(ours, store, task_queue=queue).open(agent="agent", timeout=3)
        assert raised.value.key_id == "k1"
        assert "the keys here are 'k2'" in str(raised.value)

        session = await Sessions(theirs, store, task_queue=queue).open(agent="agent")
        session._remote.client = ours
        with pytest.raises(EncryptionError, match="give the client the worker's keys"):
            await session.status()


async def test_a_local_server_encrypts_under_the_keys_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A store only when it is named so, as everywhere."""
    monkeypatch.setenv("PERDURE_KEYS", new_key("k7"))
    database = tmp_path / "temporal.db"
    store = f"encrypted:files:{tmp_path}/sessions"
    async with local(agents=[echo()], store=store, database=database) as sessions:
        session = await sessions.open("s", agent="agent")
        await (await session.run("question-secret"))
        assert texts(await session.transcript())[0] == "question-secret"
    for path in [*tmp_path.glob("temporal.db*"), *tmp_path.glob("sessions/*")]:
        assert readable(path.read_bytes()) == []
        assert b"k7" in path.read_bytes() or path.suffix != ".jsonl"


async def test_a_worker_without_the_key_leaves_a_session_as_it_is(
    connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path
) -> None:
    """Signals that it cannot read wait for a worker that can; the log and the leaf stay."""
    store, queue = FileStore(tmp_path), f"test-{uuid.uuid4().hex}"
    client, session_id = connecting(keys), f"talk-{uuid.uuid4().hex}"
    async with secured(client, store, echo(), task_queue=queue) as sessions:
        session = await sessions.open(session_id, agent="agent")
        await (await session.run("one"))
    for other in (None, Keys({"k2": NEW})):
        worker = build_worker(connecting(other), agents=[echo()], store=store, task_queue=queue)
        async with worker:
            handle = client.get_workflow_handle(workflow_id(session_id))
            await handle.signal("run", text("two").model_dump(mode="json"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.append("three"), 2)
    async with secured(client, store, echo(), task_queue=queue):
        await (await session.run("four"))
    asked = [said for said in texts(await session.entries()) if not said.startswith("You said")]
    # What was given up may be done all the same, when a worker comes that can read it.
    assert [said for said in asked if said != "three"] == ["one", "two", "two", "four"]


async def test_update_ids_tell_nothing_of_what_was_sent(
    connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path
) -> None:
    """A digest of a short message could be guessed; under encryption it is keyed."""
    ids: list[str] = []
    for client in (connecting(), connecting(keys), connecting(Keys({"k1": NEW}))):
        async with secured(client, FileStore(tmp_path / uuid.uuid4().hex), echo()) as sessions:
            session = await sessions.open(f"talk-{uuid.uuid4().hex}", agent="agent")
            await (await session.run("yes", run_id="mine"))
            [events] = [events async for events in histories(client, workflow_id(session.id))]
            accepted = [e.workflow_execution_update_accepted_event_attributes for e in events]
            [own] = {
                update.accepted_request.meta.update_id
                for update in accepted
                if update.accepted_request.meta.update_id.startswith("mine.")
            }
            ids.append(own)
    assert len(set(ids)) == 3
