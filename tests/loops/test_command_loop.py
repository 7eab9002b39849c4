"""A command-line agent as a loop: a real program, in a session on a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perdure import (
    Agent,
    CommandLoop,
    Entry,
    ImageBlock,
    LoopError,
    MaxTurnsError,
    RunCancelledError,
    Session,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ephemeral,
    image,
    text,
)
from perdure.testing import ScriptedModel
from tests.engine.agents import shape, texts, watched
from tests.engine.conftest import Serving
from tests.loops.conftest import Cli, is_alive, until


def agent(cli: Cli, *, max_turns: int = 50, instructions: str = "", **options: Any) -> Agent:
    return Agent("agent", model=cli.loop(**options), max_turns=max_turns, instructions=instructions)


async def said(session: Session, *entries: Entry | str) -> list[str]:
    """The texts of what the agent answers."""
    return [message.text for message in await (await session.run(*entries))]


async def test_a_command_answers(cli: Cli, serving: Serving) -> None:
    """6.1: an agent may bring a loop of its own, and its messages are those of the session."""
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        [message] = await (await session.run("hello"))

        assert message.text == "I was told: hello"
        assert (message.role, message.model, message.stop_reason) == (
            "assistant",
            "claude-test",
            "stop",
        )
        assert texts(await session.entries()) == ["hello", "I was told: hello"]


async def test_the_receipts_of_a_command_are_those_of_any_run(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        events, error = await watched(await session.run("use tools"))

        assert error is None
        assert shape(events) == [
            "agent_start*",
            "turn_start",
            "message_start",
            "message_end*",
            "tool_execution_start",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_end*",
            "tool_execution_end",
            "message_start",
            "message_end*",
            "turn_end",
            "turn_start",
            "message_start",
            "message_end*",
            "turn_end",
            "agent_end",
        ]
        receipts = [entry for event in events for entry in event.entries]
        assert receipts == list(await session.entries())
        _, said, listed, picture, _ = await session.messages()
        bash, read = said.tool_calls
        assert said.content == (
            ThinkingBlock(thinking="Two looks.", signature="c2ln"),
            TextBlock(text="Looking."),
            ToolCallBlock(id=bash.id, name="Bash", arguments={"command": "ls"}),
            ToolCallBlock(id=read.id, name="Read", arguments={"file_path": "/tmp/picture.png"}),
        )
        assert (listed.text, listed.tool_name) == ("a.txt\nb.txt", "Bash")
        assert (listed.tool_call_id, picture.tool_call_id) == (bash.id, read.id)
        assert picture.content[1] == ImageBlock(data="aGk=", mime_type="image/png")


async def test_usage_and_cost_are_those_that_the_command_tells_at_its_end(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        events, _ = await watched(await session.run("use tools"))

        usage = events[-1].usage
        assert usage is not None
        assert (usage.input, usage.output, usage.cache_read) == (100, 50, 25)
        assert usage.cost.total == 0.25
        assert (await session.status()).usage == usage


async def test_a_streamed_run_tells_what_is_being_written(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        events, _ = await watched(await session.run("hello there", stream=True))

        pieces = [event.delta.text for event in events if event.delta is not None]
        assert "".join(pieces).strip() == "I was told: hello there"
        assert [kind for kind in shape(events) if kind != "message_update"] == [
            "agent_start*",
            "turn_start",
            "message_start",
            "message_end*",
            "turn_end",
            "agent_end",
        ]
        kinds = shape(events)
        assert kinds.index("message_start") < kinds.index("message_update")
        assert kinds[::-1].index("message_update") > kinds[::-1].index("message_end*")


async def test_the_next_run_resumes_the_commands_own_session(cli: Cli, serving: Serving) -> None:
    """What it knows already it is not told again; where it goes on is a copy."""
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "one")
        assert await said(session, "two") == ["I was told: one | two"]
        assert await said(session, text("three"), ephemeral("four")) == [
            "I was told: one | two | three | four"
        ]
        assert cli.resumed(0) == ""
        assert len({cli.resumed(1), cli.resumed(2)}) == 2
        assert "--fork-session" in cli.calls[1]["flags"]


async def test_after_a_branch_to_the_end_of_a_run_that_run_is_resumed(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "one")
        first = await session.leaf_id()
        await said(session, "two")
        await session.branch(first)

        assert await said(session, "other") == ["I was told: one | other"]
        assert cli.resumed(2) == cli.resumed(1) != ""


async def test_after_a_branch_into_a_run_the_command_is_told_the_conversation(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "use tools")
        await session.branch((await session.entries())[2].id)

        [answer] = await said(session, "what now?")
        assert cli.resumed(1) == ""
        assert "User: use tools" in answer
        assert '[Assistant called Bash with {"command":"ls"}]' in answer
        assert "[Result of Bash]\na.txt\nb.txt" in answer
        assert "[Error of Read]\ntool execution interrupted" in answer
        assert answer.endswith("| what now?")


async def test_a_fork_resumes_what_it_has_and_leaves_the_source_alone(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "one")
        child = await session.fork(f"{session.id}-child")

        assert await said(child, "in the child") == ["I was told: one | in the child"]
        assert await said(session, "two") == ["I was told: one | two"]


async def test_a_fork_in_the_middle_of_a_run_is_told_the_conversation(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "use tools")
        middle = (await session.entries())[3].id
        child = await session.fork(f"{session.id}-child", at=middle)

        [answer] = await said(child, "go on")
        assert cli.resumed(1) == ""
        assert "User: use tools" in answer


async def test_what_others_appended_is_told_to_the_command(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "one")
        await session.append("by the way")
        assert await said(session, "two") == ["I was told: one | by the way | two"]


async def test_a_session_that_is_gone_is_begun_afresh(cli: Cli, serving: Serving) -> None:
    """It may have been another machine's."""
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "one")
        for kept in cli.folder.glob("*.json"):
            kept.unlink()

        [answer] = await said(session, "two")
        assert "Assistant: I was told: one" in answer
        assert [bool(cli.resumed(call)) for call in range(3)] == [False, True, False]


async def test_a_compacted_conversation_is_told_from_its_summary(
    cli: Cli, serving: Serving
) -> None:
    model = ScriptedModel(lambda messages: "They counted.")
    counting = Agent("agent", model=cli.loop(), compact_model=model)
    async with serving(counting) as sessions:
        session = await sessions.open(agent="agent")
        await said(session, "one")
        await session.compact()
        assert await said(session, "two") == ["I was told: They counted. | two"]


async def test_instructions_images_folder_and_variables_reach_the_command(
    cli: Cli, serving: Serving
) -> None:
    instructed = agent(
        cli, instructions="Be brief.", cwd=cli.folder, env={"CLI_EXTRA": "yes", "HOME": None}
    )
    async with serving(instructed) as sessions:
        session = await sessions.open(agent="agent")
        assert await said(session, image(b"hi", "image/png"), "look") == [
            "I was told: [image] | look"
        ]
        [call] = cli.calls
        assert (call["extra"], call["cwd"]) == ("yes", str(cli.folder))
        flags = call["flags"]
        assert flags[flags.index("--append-system-prompt") + 1] == "Be brief."


async def test_a_command_that_exits_with_1_is_an_error_with_its_last_words_and_no_secret(
    cli: Cli, serving: Serving
) -> None:
    """6.4: what was stored stays, and a run without input goes on in the command's session."""
    async with serving(agent(cli, env={"CLI_KEY": "sk-very-secret"})) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run("fail")
        with pytest.raises(LoopError) as failed:
            await run

        assert str(failed.value) == (
            "cli ended with status 1, before it had a result: warming up\nno credit left on key ***"
        )
        assert texts(await session.entries()) == ["fail", "Something is wrong.", "it failed"]
        assert await said(session) == ["I was told: fail | Continue."]


async def test_what_was_said_before_a_command_dies_stays(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="before it had a result"):
            await said(session, "say and die")
        assert texts(await session.entries()) == ["say and die", "So far so good."]


async def test_what_was_said_before_a_run_is_cancelled_stays(cli: Cli, serving: Serving) -> None:
    """6.6: all that is whole; of the message in progress nothing."""
    async with serving(agent(cli, grace=0.3)) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run("say and hang")
        await cli.child()
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert texts(await session.entries()) == ["say and hang", "So far so good."]


async def test_what_the_command_reports_as_an_error_is_one(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="cli: the command reported an error: API Error: 529"):
            await said(session, "refuse")
        assert len(await session.entries()) == 1


async def test_a_command_that_used_up_its_turns_goes_on_in_the_next_run(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(MaxTurnsError):
            await said(session, "run out of turns")
        assert await said(session) == ["I was told: run out of turns | Continue."]


async def test_the_agents_own_max_turns_ends_a_command(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli, max_turns=2)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(MaxTurnsError, match="after 2 turns"):
            await said(session, "many 5")
        roles = [message.role for message in await session.messages()]
        assert roles == ["user", *["assistant", "tool_result"] * 2]
        await until(lambda: not is_alive(cli.calls[0]["pid"]))


async def test_a_little_garbage_is_let_pass(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        assert await said(session, "garbage 7") == ["I was told: garbage 7"]


async def test_nothing_but_garbage_is_an_error(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="100 lines that are no JSON objects, the last: garb"):
            await said(session, "garbage 10000")
        assert await said(session, "again")
        assert not is_alive(cli.calls[0]["pid"])


@pytest.mark.parametrize(
    "line, fault",
    [
        ({"type": "assistant"}, "`message` is missing, not an object"),
        ({"type": "user", "message": "hi"}, "`message` is a str, not an object"),
        (
            {"type": "assistant", "message": {"content": 5}},
            "the `content` of the message is a int, not a text or a list",
        ),
        (
            {"type": "assistant", "message": {"content": ["hi"]}},
            "the `content` of the message lists something that is not an object",
        ),
    ],
)
async def test_a_line_that_is_not_what_it_says_fails_the_run_and_is_shown(
    cli: Cli, serving: Serving, line: dict[str, Any], fault: str
) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError) as caught:
            await said(session, f"print {json.dumps(line)}")
        shown = json.dumps(line, separators=(",", ":"))
        assert str(caught.value) == f"cli printed a line in which {fault}: {shown}"
        assert await said(session, "again")


async def test_a_command_that_leaves_without_a_word_is_an_error(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="ended with status 0, before it had a result"):
            await said(session, "leave")


async def test_a_result_without_a_message_is_the_message(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        assert await said(session, "say nothing") == ["/cost: nothing"]


async def test_a_command_that_hangs_is_stopped_with_all_that_it_started(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli, timeout=1.0, grace=0.2)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="cli printed nothing for 1 seconds and was stopped"):
            await said(session, "hang, stubborn")
        assert not is_alive(cli.calls[0]["pid"])
        assert not is_alive(await cli.child())
        assert await said(session, "again")


async def test_a_child_that_keeps_the_pipe_open_holds_nothing_up(
    cli: Cli, serving: Serving
) -> None:
    """Nor does it outlive the run."""
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        assert await said(session, "keep the pipe") == ["I was told: keep the pipe"]
        assert not is_alive(await cli.child())
        with pytest.raises(LoopError, match="ended with status 3"):
            await said(session, "keep the pipe without a result")
        assert not is_alive(await cli.child())


async def test_a_line_may_be_large(cli: Cli, serving: Serving) -> None:
    """A message never travels through the engine, so its limits are not those of a message."""
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        [message] = await (await session.run("big 5000000"))
        assert len(message.text) == 5_000_000


async def test_a_line_may_not_be_endless(cli: Cli, serving: Serving) -> None:
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="a line of more than 16,777,216 bytes"):
            await said(session, "big 17000000")


@pytest.mark.parametrize("play", ["hang", "hang, stubborn"])
async def test_cancelling_ends_the_command_and_all_that_it_started(
    cli: Cli, serving: Serving, play: str
) -> None:
    """6.6: the run ends as cancelled, and the session is ready."""
    async with serving(agent(cli, grace=0.3)) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run(play)
        child = await cli.child()
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert not is_alive(cli.calls[0]["pid"])
        assert not is_alive(child)
        assert [message.text for message in await session.messages()] == [play]
        assert len(await said(session, "again")) == 1


async def test_what_was_stored_before_a_cancel_stays_and_open_calls_count_as_interrupted(
    cli: Cli, serving: Serving
) -> None:
    cli.hold()
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run("use tools")
        async for event in run:
            if event.type == "tool_execution_end":
                break
        await session.cancel()
        with pytest.raises(RunCancelledError):
            await run
        assert [message.text for message in await session.messages()] == [
            "use tools",
            "Looking.",
            "a.txt\nb.txt",
            "tool execution interrupted",
        ]
        cli.let_go()
        assert await said(session, "go on") == ["I was told: use tools | go on"]
        assert cli.resumed(1) != ""


async def test_the_status_shows_the_turn_while_a_command_runs(cli: Cli, serving: Serving) -> None:
    cli.hold()
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run("use tools")
        queued = await session.run("queued")

        async def turn() -> int:
            doing = (await session.status()).doing
            return doing.turn if doing is not None else 0

        while await turn() == 0:
            pass
        steering = await session.run("steering", when_busy="steer")
        status = await session.status()
        assert status.doing is not None
        assert (status.doing.command_id, status.doing.turn) == (run.id, 1)
        assert [waiting.command_id for waiting in status.queue] == [queued.id, steering.id]
        cli.let_go()
        await steering
        assert (await session.status()).turns == 4


async def test_another_process_may_attach_to_a_command_in_progress(
    cli: Cli, serving: Serving
) -> None:
    """6.7: from the first event on, whenever it comes."""
    cli.hold()
    async with serving(agent(cli)) as sessions:
        session = await sessions.open(agent="agent")
        run = await session.run("use tools")
        seen = []
        async for event in (await sessions.open(session.id)).attach(run.id):
            seen.append(event)
            if event.type == "tool_execution_end" and (cli.folder / "hold").exists():
                cli.let_go()
        late, _ = await watched((await sessions.open(session.id)).attach(run.id))
        assert seen == late


async def test_a_missing_command_fails_the_run_before_anything_is_stored(
    cli: Cli, serving: Serving
) -> None:
    """6.2: a loop that cannot start."""
    missing = Agent("agent", model=CommandLoop(["perdure-no-such-command", "-p"]))
    async with serving(missing) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="no command 'perdure-no-such-command' on this worker"):
            await said(session, "hello")
        assert list(await session.entries()) == []


def test_a_file_that_is_not_executable_is_told_apart_from_one_that_is_missing(
    tmp_path: Path,
) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh")
    with pytest.raises(LoopError, match=r"agent' is not executable; chmod \+x makes it so"):
        CommandLoop(["./agent"], cwd=tmp_path).check()
    with pytest.raises(LoopError, match=r"there is no command '\./other' on this worker"):
        CommandLoop(["./other"], cwd=tmp_path).check()


async def test_a_missing_folder_fails_the_run_before_anything_is_stored(
    cli: Cli, serving: Serving
) -> None:
    async with serving(agent(cli, cwd=cli.folder / "none")) as sessions:
        session = await sessions.open(agent="agent")
        with pytest.raises(LoopError, match="there is no folder"):
            await said(session, "hello")
        assert list(await session.entries()) == []
