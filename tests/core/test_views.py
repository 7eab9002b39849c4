from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.codec import decode_entry, encode_entry
from perdure.entries import CompactionEntry, Entry, MessageEntry
from perdure.messages import Message, OpaqueBlock, TextBlock
from perdure.transcript import Transcript
from perdure.views import model_view
from tests.core.building import (
    answered,
    assistant,
    at,
    call,
    compacted,
    entry_of,
    interrupted,
    noted,
    result,
    resulted,
    said,
    user,
)
from tests.core.logs import chains, runs_of_ephemeral, strange_logs
from tests.core.provider import check_as_a_provider


def view(*entries: Entry) -> list[Message]:
    return Transcript(entries).model_view()


def summary(text: str) -> Message:
    return Message(role="user", content=text, timestamp=at(30))


def now(text: str, parent: str) -> MessageEntry:
    return entry_of(f"eph-{text}", parent, user(text), ephemeral=True)


def test_the_model_sees_messages_meta_included_and_no_custom_entry() -> None:
    """3.2, 3.3, 4.2: in the order in which they were given."""
    log = [
        said("a", "rules", meta=True),
        said("b", "hi", "a"),
        noted("c", "b"),
        decode_entry('{"type":"vote","id":"d","parent_id":"c"}'),
        answered("e", "d", "yes?"),
    ]
    assert view(*log) == [user("rules"), user("hi"), assistant("yes?")]


def test_unknown_roles_and_blocks_are_left_out_and_empty_messages_stay() -> None:
    """4.5: a provider is sent only what it knows."""
    film = OpaqueBlock(type="video")
    log = [
        entry_of("a", "", Message(role="judge", content="guilty")),
        entry_of("b", "a", Message(role="user", content=[film, TextBlock(text="look")])),
        entry_of("c", "b", Message(role="assistant", content=[film])),
        entry_of("d", "c", Message(role="user")),
    ]
    assert view(*log) == [user("look"), Message(role="assistant"), Message(role="user")]
    assert view(*(decode_entry(encode_entry(entry)) for entry in log)) == view(*log)


def test_the_latest_compaction_stands_for_what_lies_before_its_first_kept_entry() -> None:
    """4.2: its summary as a user message, the rest verbatim."""
    log = [
        said("a", "q0"),
        answered("b", "a", "a0"),
        compacted("c", "b", "first", "a"),
        said("d", "q1", "c"),
        answered("e", "d", "a1"),
        compacted("f", "e", "second", "d"),
        said("g", "q2", "f"),
    ]
    assert view(*log[:4]) == [summary("first"), user("q0"), assistant("a0"), user("q1")]
    assert view(*log) == [summary("second"), user("q1"), assistant("a1"), user("q2")]


def test_the_time_of_the_summary_is_that_of_the_compaction() -> None:
    """4.2: two views of one log are equal."""
    log = [said("a", "q0"), compacted("c", "a", "s", "")]
    assert view(*log) == view(*log) == [summary("s")]
    assert str(view(*log)[0].timestamp) == str(log[1].created_at)


@pytest.mark.parametrize("first_kept_id", ["", "gone", "c", "d", "e", "branch"])
def test_an_unknown_first_kept_entry_keeps_nothing_before_the_compaction(
    first_kept_id: str,
) -> None:
    """4.2: unknown is whatever is not before the compaction on the path."""
    log = [
        said("a", "q0"),
        said("branch", "other", "a"),
        answered("b", "a", "a0"),
        compacted("c", "b", "s", first_kept_id),
        said("d", "q1", "c"),
        said("e", "q2", "d"),
    ]
    assert view(*log) == [summary("s"), user("q1"), user("q2")]


def test_going_back_before_a_compaction_gives_the_full_conversation() -> None:
    """4.2, 5.4: nothing is deleted."""
    log = [said("a", "q0"), answered("b", "a", "a0"), compacted("c", "b", "s", "b")]
    assert Transcript(log).model_view("b") == [user("q0"), assistant("a0")]


def test_a_result_whose_call_was_compacted_away_is_left_out() -> None:
    """4.5: wherever a compaction cuts."""
    log = [
        answered("a", "", call("x"), call("y")),
        resulted("b", "a", "x"),
        resulted("c", "b", "y"),
        compacted("d", "c", "s", "c"),
        said("e", "go on", "d"),
    ]
    assert view(*log) == [summary("s"), user("go on")]


def test_a_call_and_its_result_may_have_a_compaction_between_them() -> None:
    log = [
        answered("a", "", call("x")),
        compacted("b", "a", "s", "a"),
        resulted("c", "b", "x"),
    ]
    assert view(*log) == [summary("s"), assistant(call("x")), result("x")]


def test_custom_entries_between_a_call_and_its_result_do_not_part_them() -> None:
    log = [answered("a", "", call("x")), noted("b", "a"), resulted("c", "b", "x")]
    assert view(*log) == [assistant(call("x")), result("x")]


def test_a_branch_that_leaves_a_call_behind_is_repaired() -> None:
    """4.4, 4.5: wherever branching cuts."""
    log = [
        answered("a", "", call("x"), call("y", "find")),
        resulted("b", "a", "x"),
        resulted("c", "b", "y"),
        said("d", "never mind", "b"),
    ]
    assert view(*log) == [
        assistant(call("x"), call("y", "find")),
        result("x"),
        interrupted("y", "find"),
        user("never mind"),
    ]


def test_ephemeral_messages_stand_after_their_parents_in_their_order() -> None:
    """3.2, 3.3, 3.4: the model sees them for one run."""
    transcript = Transcript([said("a", "q0"), answered("b", "a", "a0"), said("c", "q1", "b")])
    found = transcript.model_view(
        ephemeral=[now("2", "b"), now("0", ""), now("1", "a"), now("3", "b"), now("4", "gone")]
    )
    assert [message.text for message in found] == ["0", "q0", "1", "a0", "2", "3", "q1", "4"]
    assert len(transcript.model_view()) == 3


def test_ephemeral_messages_do_not_come_between_a_call_and_its_results() -> None:
    """4.5: and providers accept what comes of it."""
    transcript = Transcript(
        [
            answered("a", "", call("x"), call("y"), call("z")),
            resulted("b", "a", "x"),
            noted("c", "b"),
            resulted("d", "c", "y"),
            said("e", "and?", "d"),
        ]
    )
    for parent in "abcd":
        assert transcript.model_view(ephemeral=[now("!", parent)]) == [
            assistant(call("x"), call("y"), call("z")),
            result("x"),
            result("y"),
            interrupted("z"),
            user("!"),
            user("and?"),
        ]


def test_ephemeral_messages_are_not_compacted_away() -> None:
    """3.2: they come first of what is kept."""
    transcript = Transcript(
        [
            said("a", "q0"),
            said("b", "q1", "a"),
            compacted("c", "b", "s", "b"),
            said("d", "q2", "c"),
        ]
    )
    run = [now("0", ""), now("1", "a"), now("2", "b"), now("3", "c"), now("4", "d")]
    assert [message.text for message in transcript.model_view(ephemeral=run)] == [
        "s", "0", "1", "q1", "2", "3", "q2", "4",
    ]  # fmt: skip


def test_an_empty_path_still_shows_ephemeral_messages() -> None:
    assert Transcript().model_view(ephemeral=[now("!", "")]) == [user("!")]


def test_views_of_decoded_entries_take_no_message_apart() -> None:
    log = [said("a", "q0"), answered("b", "a", call("x")), resulted("c", "b", "x")]
    read = [decode_entry(encode_entry(entry)) for entry in log]
    found = Transcript(read).model_view()
    assert [message._is_complete() for message in found] == [False, False, False]
    assert found == view(*log)


@given(chains())
def test_whatever_the_log_holds_a_provider_accepts_the_view(log: list[Entry]) -> None:
    """4.5: checked by the providers' own rules."""
    check_as_a_provider(view(*log))


@given(strange_logs)
def test_nothing_raises_on_a_strange_log(log: list[Entry]) -> None:
    transcript = Transcript(log)
    for leaf_id in (None, *(entry.id for entry in log)):
        check_as_a_provider(transcript.model_view(leaf_id))


@given(st.data(), chains())
def test_ephemeral_messages_are_all_seen_and_the_view_is_still_accepted(
    data: st.DataObject, log: list[Entry]
) -> None:
    run = data.draw(runs_of_ephemeral(log))
    found = Transcript(log).model_view(ephemeral=run)
    check_as_a_provider(found)
    ours = {id(entry.message) for entry in run}
    assert len([message for message in found if id(message) in ours]) == len(run)
    others = [message for message in found if id(message) not in ours]
    assert others == Transcript(log).model_view()


@given(chains())
def test_the_view_is_that_of_the_rules_taken_word_by_word(log: list[Entry]) -> None:
    assert view(*log) == _plain_view(log)


@given(chains())
def test_decoded_entries_have_the_views_of_the_entries_that_were_written(log: list[Entry]) -> None:
    read = [decode_entry(encode_entry(entry)) for entry in log]
    assert view(*read) == view(*log)
    assert Transcript(read).transcript_view() == Transcript(log).transcript_view()


def test_a_view_is_a_projection_of_a_list_too() -> None:
    assert model_view([said("a", "hi")]) == [user("hi")]


def _plain_view(log: list[Entry]) -> list[Message]:
    messages: list[Message] = []
    for compaction in [entry for entry in log if isinstance(entry, CompactionEntry)][-1:]:
        messages.append(summary("s").model_copy(update={"timestamp": compaction.created_at}))
        before = log[: log.index(compaction)]
        kept_ids = [entry.id for entry in before]
        start = (
            kept_ids.index(compaction.first_kept_id)
            if compaction.first_kept_id in kept_ids
            else None
        )
        kept = before[start:] if start is not None else []
        log = kept + log[log.index(compaction) + 1 :]
    for entry in log:
        if isinstance(entry, MessageEntry) and entry.message.role != "judge":
            content = tuple(b for b in entry.message.content if not isinstance(b, OpaqueBlock))
            messages.append(entry.message.model_copy(update={"content": content}))
    return _plain_repair(messages)


def _plain_repair(messages: list[Message]) -> list[Message]:
    found: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool_result":
            continue
        found.append(message)
        if message.role != "assistant":
            continue
        following: list[Any] = []
        for other in messages[index + 1 :]:
            if other.role != "tool_result":
                break
            following.append(other)
        waiting = [tool_call.id for tool_call in message.tool_calls]
        for other in following:
            if other.tool_call_id in waiting:
                waiting.remove(other.tool_call_id)
                found.append(other)
        for position, tool_call in enumerate(message.tool_calls):
            later = [c.id for c in message.tool_calls[position:]].count(tool_call.id)
            if later <= waiting.count(tool_call.id):
                found.append(interrupted(tool_call.id, tool_call.name))
    return found
