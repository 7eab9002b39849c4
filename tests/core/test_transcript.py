from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure.codec import decode_entry, encode_entry
from perdure.entries import Entry, ephemeral, text
from perdure.transcript import Transcript
from tests.core.building import answered, compacted, noted, said
from tests.core.logs import chains, strange_logs


def ids(entries: list[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def branched() -> Transcript:
    return Transcript(
        [said("a", "hi"), answered("b", "a", "yes?"), said("c", "go", "b"), said("d", "no", "b")]
    )


def test_an_empty_log_is_an_empty_transcript() -> None:
    transcript = Transcript()
    assert (transcript.leaf_id, len(transcript), transcript.size_bytes) == ("", 0, 0)
    assert transcript.path() == transcript.model_view() == transcript.transcript_view() == []
    assert (transcript.leaves(), transcript.get(""), "" in transcript) == ([], None, False)


def test_the_leaf_is_the_last_appended_entry() -> None:
    """1.3, 2.5: whatever its time and its place in the tree."""
    transcript = branched()
    assert transcript.leaf_id == "d"
    transcript.extend([said("e", "", "a")])
    assert (transcript.leaf_id, ids(transcript.path())) == ("e", ["a", "e"])


def test_an_entry_without_an_id_is_never_the_leaf_nor_a_parent() -> None:
    transcript = Transcript([said("a", ""), said("", "x", "a")])
    assert (transcript.leaf_id, len(transcript), transcript.leaves()) == ("a", 2, ["a"])
    assert "" not in transcript
    assert Transcript([said("", "x"), said("b", "y", "")]).path() == [said("b", "y")]


def test_a_repeated_id_names_the_entry_that_was_there_first() -> None:
    first = said("a", "first")
    transcript = Transcript([first, said("b", "", "a"), said("a", "second", "b")])
    assert (transcript.leaf_id, transcript.get("a")) == ("a", first)
    assert transcript.path() == [first]
    assert transcript.path("b") == [first, said("b", "", "a")]


def test_the_path_leads_from_the_root_to_the_leaf() -> None:
    """4.1: the walk along the parents."""
    transcript = branched()
    assert ids(transcript.path()) == ["a", "b", "d"]
    assert ids(transcript.path("c")) == ["a", "b", "c"]
    assert ids(transcript.path("a")) == ["a"]


def test_the_path_to_an_unknown_leaf_is_empty() -> None:
    """4.1: an unknown leaf has no path."""
    transcript = branched()
    for leaf_id in ("", "gone"):
        assert transcript.path(leaf_id) == transcript.transcript_view(leaf_id) == []
        assert transcript.model_view(leaf_id) == []


def test_a_missing_parent_ends_the_path() -> None:
    """4.1: with what there is."""
    transcript = Transcript([said("b", "", "a"), said("c", "", "b")])
    assert ids(transcript.path()) == ["b", "c"]
    transcript.extend([said("a", "")])
    assert ids(transcript.path("c")) == ["a", "b", "c"]


def test_a_circle_ends_the_path() -> None:
    """4.1: with what there is."""
    transcript = Transcript([said("a", "", "c"), said("b", "", "a"), said("c", "", "b")])
    assert ids(transcript.path()) == ["a", "b", "c"]
    assert ids(transcript.path("a")) == ["b", "c", "a"]
    assert ids(Transcript([said("a", "", "a")]).path()) == ["a"]


def test_a_path_of_a_hundred_thousand_entries_is_walked() -> None:
    """4.1: depth is unlimited."""
    line = encode_entry(said("0", "hi"))
    log = [decode_entry(line)]
    log += [log[0].with_header(id=str(n), parent_id=str(n - 1)) for n in range(1, 100_000)]
    transcript = Transcript(log)
    assert ids(transcript.path()) == [str(number) for number in range(100_000)]
    assert len(transcript.model_view()) == len(transcript.transcript_view()) == 100_000
    assert transcript.leaves() == ["99999"]


def test_lists_that_were_handed_out_are_the_callers() -> None:
    transcript = branched()
    for handed_out in (transcript.path, transcript.transcript_view, transcript.leaves):
        handed_out().reverse()
    transcript.model_view().reverse()
    assert ids(transcript.path()) == ids(transcript.transcript_view()) == ["a", "b", "d"]
    assert [message.text for message in transcript.model_view()] == ["hi", "yes?", "no"]
    assert transcript.leaves() == ["c", "d"]


def test_leaves_are_what_no_other_entry_follows_in_append_order() -> None:
    """1.5: concurrent instances grow sibling branches, and it can be seen."""
    assert branched().leaves() == ["c", "d"]
    assert Transcript([said("b", "", "a"), said("a", "")]).leaves() == ["b"]
    assert Transcript([said("a", "", "a")]).leaves() == ["a"]


def test_the_size_is_that_of_the_lines() -> None:
    built, read = said("a", "hi"), decode_entry(encode_entry(said("b", "ho", "a")))
    transcript = Transcript([built])
    assert transcript.size_bytes == len(encode_entry(built))
    transcript.extend([read, ephemeral(text("x"))])
    assert transcript.size_bytes == len(encode_entry(built)) + len(encode_entry(read))


def test_entries_are_found_by_their_ids() -> None:
    transcript = branched()
    assert ("c" in transcript, "x" in transcript, 5 in transcript) == (True, False, False)
    assert (transcript.get("c"), transcript.get("x")) == (said("c", "go", "b"), None)
    assert ids(list(transcript.entries)) == ["a", "b", "c", "d"]


@given(strange_logs, st.sampled_from(["", "gone", None, *"abcdefgh"]))
def test_the_path_is_that_of_the_plain_recursive_walk(log: list[Entry], leaf: str | None) -> None:
    transcript = Transcript(log)
    wanted = transcript.leaf_id if leaf is None else leaf
    assert [id(entry) for entry in transcript.path(leaf)] == [
        id(entry) for entry in _plain_path(log, wanted, [])
    ]


def _plain_path(log: list[Entry], leaf_id: str, below: list[Entry]) -> list[Entry]:
    found = [entry for entry in log if entry.id and entry.id == leaf_id][:1]
    if not found or any(found[0] is entry for entry in below):
        return below
    return _plain_path(log, found[0].parent_id, found + below)


@given(st.lists(strange_logs, max_size=4), st.lists(st.sampled_from("abcdefgh"), max_size=4))
def test_a_transcript_that_grew_is_as_one_that_was_made_at_once(
    parts: list[list[Entry]], leaves: list[str]
) -> None:
    grown, so_far = Transcript(), list[Entry]()
    for part in parts:
        grown.extend(part)
        so_far += part
        fresh = Transcript(so_far)
        assert (grown.leaf_id, grown.leaves()) == (fresh.leaf_id, fresh.leaves())
        for leaf_id in (None, *leaves):
            assert grown.path(leaf_id) == Transcript(so_far).path(leaf_id)
            assert grown.model_view(leaf_id) == Transcript(so_far).model_view(leaf_id)
            assert grown.transcript_view(leaf_id) == Transcript(so_far).transcript_view(leaf_id)


@given(chains(), st.integers(0, 14))
def test_a_view_that_grew_is_as_one_that_was_made_at_once(log: list[Entry], cut: int) -> None:
    grown = Transcript(log[:cut])
    grown.model_view()
    for entry in log[cut:]:
        grown.extend([entry])
        grown.model_view()
    assert grown.model_view() == Transcript(log).model_view()


def test_a_compaction_that_was_just_appended_is_seen() -> None:
    transcript = Transcript([said("a", "hi"), answered("b", "a", "yes?"), said("c", "go", "b")])
    assert len(transcript.model_view()) == 3
    transcript.extend([compacted("d", "c", "s", "c"), said("e", "on", "d")])
    assert [message.text for message in transcript.model_view()] == ["s", "go", "on"]


def test_a_person_reads_everything_but_meta_and_ephemeral_messages() -> None:
    """3.2, 4.3: custom entries and compactions are kept."""
    log = [
        said("a", "skill", meta=True),
        said("b", "hi", "a"),
        noted("c", "b"),
        ephemeral(said("d", "now", "c")),
        compacted("e", "d", "s", "b"),
        decode_entry('{"type":"vote","id":"f","parent_id":"e"}'),
    ]
    assert ids(Transcript(log).transcript_view()) == ["b", "c", "e", "f"]
