"""Two live instances of one session: sibling branches, and nobody's work vanishes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from perdure import Session, Sessions, Transcript
from perdure.dev_server import dev_server
from perdure.stores import FileStore
from perdure.worker import build_worker
from tests.engine.agents import echo, texts
from tests.engine.conftest import Serving, replay_all


async def test_a_named_instance_goes_on_from_its_own_leaf(serving: Serving) -> None:
    """1.5: what the two append are siblings; each reads its own branch."""
    async with serving(echo()) as sessions:
        one = await sessions.open("shared", agent="agent")
        [root] = await one.append("root")
        other = await sessions.open("shared", agent="agent", instance="b")
        assert (other.created, await other.leaf_id()) == (False, root.id)

        for number in range(3):
            await (await one.run(f"one {number}"))
            await (await other.run(f"other {number}"))

        for session, name in ((one, "one"), (other, "other")):
            mine = [w for n in range(3) for w in (f"{name} {n}", f"You said '{name} {n}'")]
            assert texts(await session.transcript()) == ["root", *mine]
            assert [message.text for message in await session.messages()] == ["root", *mine]
        assert len(await one.entries()) == 1 + 12
        assert await one.leaves() == [await one.leaf_id(), await other.leaf_id()]
        assert await one.entries() == await other.entries()


async def test_instances_at_work_side_by_side_lose_nothing(serving: Serving) -> None:
    """1.5: they never overwrite each other, whichever of them appends when."""
    async with serving(echo(), max_history_events=30) as sessions:
        first = await sessions.open("side-by-side", agent="agent")
        await first.append("root")
        others = [
            await sessions.open("side-by-side", agent="agent", instance=name)
            for name in ("b", "c/d e", "@")
        ]
        instances = [first, *others]

        async def talk(session: Session, name: str) -> None:
            for number in range(8):
                await (await session.run(f"{name} {number}"))

        await asyncio.gather(*(talk(s, f"speaker {n}") for n, s in enumerate(instances)))
        for number, session in enumerate(instances):
            said = [f"speaker {number} {n}" for n in range(8)]
            expected = [word for text in said for word in (text, f"You said {text!r}")]
            assert texts(await session.transcript()) == ["root", *expected]
        log = await first.entries()
        assert len(log) == len({entry.id for entry in log}) == 1 + 4 * 16


async def test_a_handle_follows_what_others_do_through_the_same_instance(
    serving: Serving,
) -> None:
    """Reads cost Temporal nothing, and find what came after the known leaf, on its branch."""
    async with serving(echo()) as sessions:
        mine = await sessions.open("followed", agent="agent")
        await mine.append("root")
        theirs = await sessions.open("followed", agent="agent")
        stranger = await sessions.open("followed", agent="agent", instance="b")
        await stranger.append("strange")
        await theirs.append("more")
        assert texts(await mine.transcript()) == ["root", "more"]
        await stranger.append("stranger")
        await theirs.append("and more")
        await stranger.append("strangest")
        assert texts(await mine.transcript()) == ["root", "more", "and more"]
        assert texts(await theirs.transcript()) == ["root", "more", "and more"]
        assert texts(await stranger.transcript()) == ["root", "strange", "stranger", "strangest"]


async def test_a_branch_stays_where_it_is_while_another_instance_appends(
    serving: Serving,
) -> None:
    """5.1, 1.5: an earlier leaf is not taken for one that was overtaken."""
    async with serving(echo()) as sessions:
        session = await sessions.open("rewound", agent="agent")
        [first, _] = await session.append("first", "second")
        other = await sessions.open("rewound", agent="agent", instance="b")
        await session.branch(first.id)
        assert texts(await session.transcript()) == ["first"]
        await other.append("third")
        await session.status()
        assert texts(await session.transcript()) == ["first"]
        await session.append("instead")
        assert texts(await session.transcript()) == ["first", "instead"]
        assert texts(await other.transcript()) == ["first", "second", "third"]


async def test_two_servers_over_one_store(tmp_path: Path) -> None:
    """1.5, 1.3: whoever opens it where finds all that was appended anywhere, and loses nothing."""
    store = FileStore(tmp_path / "sessions")
    async with dev_server() as here, dev_server() as there:
        async with (
            build_worker(here.client, agents=[echo()], store=store),
            build_worker(there.client, agents=[echo()], store=store),
        ):
            one = await Sessions(here.client, store).open("two-servers", agent="agent")
            await one.append("root")
            other = await Sessions(there.client, store).open("two-servers", agent="agent")
            await asyncio.gather(_talk(one, "here"), _talk(other, "there"))

            for session, name in ((one, "here"), (other, "there")):
                await session.status()
                expected = [w for n in range(5) for w in (f"{name} {n}", f"You said '{name} {n}'")]
                assert texts(await session.transcript()) == ["root", *expected]
            log = await store.load_entries("two-servers")
            assert len(log) == len({entry.id for entry in log}) == 1 + 2 * 10
            assert len(Transcript(log).leaves()) == 2

            await one.close()
            again = await Sessions(here.client, store).open("two-servers")
            assert await again.leaf_id() == log[-1].id
        await replay_all(here.client, "perdure")
        await replay_all(there.client, "perdure")


async def _talk(session: Session, name: str) -> None:
    for number in range(5):
        await (await session.run(f"{name} {number}"))
