from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
)
from pydantic.alias_generators import to_pascal

from perdure import custom_entry
from perdure.codec import decode_entry, encode_entry
from perdure.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    ephemeral,
    file,
    image,
    text,
)
from perdure.errors import EntryEncodeError, EntryKindError
from perdure.messages import FileBlock, ImageBlock, Message, Role, StopReason, TextBlock
from perdure.timestamps import Timestamp
from perdure.usage import Cost, Usage
from tests.core.building import at, call, user


@pytest.fixture(autouse=True)
def _forget_kinds() -> Iterator[None]:
    known = dict(custom_entry._kinds)
    yield
    custom_entry._kinds.clear()
    custom_entry._kinds.update(known)


def test_a_registered_kind_comes_back_with_its_fields() -> None:
    """3.5: a subclass with a kind is that kind's class."""

    class Artifact(CustomEntry, kind="artifact"):
        title: str
        tags: list[str] = []

    artifact = Artifact(id="a", parent_id="b", title="Plan", tags=["x"])
    line = encode_entry(artifact)
    assert line.decode() == (
        '{"created_at":"0001-01-01T00:00:00Z","id":"a","kind":"artifact","parent_id":"b",'
        '"tags":["x"],"title":"Plan","type":"custom"}'
    )
    read = decode_entry(line)
    assert (type(read), read) == (Artifact, artifact)
    assert isinstance(read, Artifact)
    assert (read.kind, read.title, read.tags) == ("artifact", "Plan", ["x"])


def test_fields_may_have_another_name_in_the_log() -> None:
    class Artifact(CustomEntry, kind="artifact"):
        title: str = Field(alias="Title")
        version: int = Field(default=1, alias="Version")

    artifact = Artifact(id="a", title="Plan")  # type: ignore[call-arg]
    line = encode_entry(artifact)
    assert line.startswith(b'{"Title":"Plan","Version":1,"created_at"')
    read = decode_entry(line)
    assert (read, read.model_dump()["title"]) == (artifact, "Plan")
    assert read.model_dump(mode="json", by_alias=True)["Title"] == "Plan"
    assert read.model_dump(mode="json")["title"] == "Plan"


def test_names_that_an_application_generates_are_not_for_the_header() -> None:
    class Artifact(CustomEntry, kind="artifact"):
        model_config = ConfigDict(alias_generator=to_pascal)

        page_title: str

    artifact = Artifact(id="a", parent_id="p", page_title="Plan")
    line = encode_entry(artifact)
    assert line.decode() == (
        '{"PageTitle":"Plan","created_at":"0001-01-01T00:00:00Z","id":"a","kind":"artifact",'
        '"parent_id":"p","type":"custom"}'
    )
    assert decode_entry(line) == artifact


def test_fields_may_be_read_under_several_names() -> None:
    class Artifact(CustomEntry, kind="artifact"):
        title: str = Field(validation_alias=AliasChoices("Title", "heading"))

    entry = decode_entry('{"type":"custom","kind":"artifact","heading":"Plan"}')
    assert isinstance(entry, Artifact)
    assert entry.title == "Plan"
    with pytest.raises(EntryKindError, match="takes a name of the entry's own"):

        class Greedy(CustomEntry, kind="greedy"):
            title: str = Field(validation_alias=AliasChoices("title", "id"))


def test_fields_are_written_as_pydantic_writes_them() -> None:
    class Reminder(CustomEntry, kind="reminder"):
        due: datetime
        note: str | None = None
        weight: float = 2.0

        @field_serializer("note")
        def _loud(self, note: str | None) -> str | None:
            return note and note.upper()

    reminder = Reminder(due=datetime(2026, 1, 2, tzinfo=UTC), note="call")
    assert encode_entry(reminder).decode() == (
        '{"created_at":"0001-01-01T00:00:00Z","due":"2026-01-02T00:00:00Z","id":"",'
        '"kind":"reminder","note":"CALL","type":"custom","weight":2}'
    )
    quiet = Reminder(due=datetime(2026, 1, 2, tzinfo=UTC))
    assert decode_entry(encode_entry(quiet)) == quiet


def test_an_unregistered_kind_is_kept_whole_as_a_bare_custom_entry() -> None:
    """3.5: a kind that the reader does not know loses nothing when it is written on."""
    line = b'{"body":{"n":1e3,"m":[1.50]},"id":"a","kind":"note","score":7,"type":"custom"}'
    entry = decode_entry(line)
    assert (type(entry), entry.id, entry.kind) == (CustomEntry, "a", "note")  # type: ignore[attr-defined]
    assert entry.model_extra == {"body": {"n": 1000.0, "m": [1.5]}, "score": 7}
    assert encode_entry(entry) == line
    moved = entry.with_header(id="b", parent_id="p", created_at=at(1))
    assert encode_entry(moved).decode() == (
        '{"body":{"n":1e3,"m":[1.50]},"created_at":"2026-03-04T05:06:01.000000000Z","id":"b",'
        '"kind":"note","parent_id":"p","score":7,"type":"custom"}'
    )


def test_fields_that_do_not_fit_make_a_bare_custom_entry_and_no_error() -> None:
    class Artifact(CustomEntry, kind="artifact"):
        title: str

    line = b'{"id":"a","kind":"artifact","title":5,"type":"custom"}'
    entry = decode_entry(line)
    assert (type(entry), entry.model_extra) == (CustomEntry, {"title": 5})
    assert encode_entry(entry) == line
    assert isinstance(decode_entry(line.replace(b"5", b'"x"')), Artifact)


def test_no_fault_of_an_applications_class_makes_a_session_unreadable() -> None:
    class Touchy(CustomEntry, kind="touchy"):
        title: str

        @field_validator("title")
        @classmethod
        def _break(cls, title: str) -> str:
            raise KeyError(title)

    entry = decode_entry('{"type":"custom","kind":"touchy","title":"x"}')
    assert (type(entry), entry.model_extra) == (CustomEntry, {"title": "x"})


def test_what_a_registered_kind_does_not_know_is_kept() -> None:
    class Artifact(CustomEntry, kind="artifact"):
        title: str

    line = b'{"colour":null,"id":"a","kind":"artifact","title":"x","type":"custom"}'
    entry = decode_entry(line)
    assert (type(entry), entry.model_extra) == (Artifact, {"colour": None})
    copied = entry.model_copy(update={"title": "y"})
    assert encode_entry(copied).decode() == (
        '{"colour":null,"created_at":"0001-01-01T00:00:00Z","id":"a","kind":"artifact",'
        '"title":"y","type":"custom"}'
    )


def test_an_application_may_tell_null_from_nothing() -> None:
    class Choice(CustomEntry, kind="choice"):
        picked: int | None = 3

    entry = decode_entry('{"type":"custom","kind":"choice","picked":null}')
    assert isinstance(entry, Choice)
    assert (entry.picked, b'"picked":null' in encode_entry(Choice(picked=None))) == (None, True)


def test_a_kind_is_registered_once() -> None:
    """3.5: registering a kind twice is an error."""

    class Artifact(CustomEntry, kind="artifact"):
        title: str

    with pytest.raises(EntryKindError, match="'artifact' is registered"):

        class Another(CustomEntry, kind="artifact"):
            pass

    assert isinstance(decode_entry('{"type":"custom","kind":"artifact","title":""}'), Artifact)


def test_a_kind_is_not_empty() -> None:
    """3.5: registering an empty kind is an error."""
    with pytest.raises(EntryKindError, match="is empty"):

        class Nothing(CustomEntry, kind=""):
            pass


@pytest.mark.parametrize("name", ["type", "kind", "id", "parent_id", "created_at"])
def test_a_field_may_not_take_a_name_of_the_entrys_own(name: str) -> None:
    with pytest.raises(EntryKindError, match="takes a name of the entry's own"):
        type(
            "Shadow",
            (CustomEntry,),
            {"__annotations__": {name: int}, "__module__": __name__, name: 5},
            kind="shadow",
        )
    with pytest.raises(EntryKindError, match="takes a name of the entry's own"):

        class Alias(CustomEntry, kind="shadow"):
            title: str = Field(alias=name)  # type: ignore[literal-required]

    assert "shadow" not in custom_entry._kinds


def test_a_class_without_a_kind_is_a_base_for_others() -> None:
    class Titled(CustomEntry):
        title: str

    class Page(Titled, kind="page"):
        body: str = ""

    page = Page(title="x", body="y")
    assert decode_entry(encode_entry(page)) == page
    assert type(decode_entry(encode_entry(Titled(title="x")))) is CustomEntry


def test_the_kind_of_a_class_is_its_own() -> None:
    class Artifact(CustomEntry, kind="artifact"):
        title: str

    with pytest.raises(ValidationError, match="the kind of Artifact is 'artifact'"):
        Artifact(title="x", kind="note")


def test_a_custom_entry_whose_fields_do_not_fit_is_not_written() -> None:
    class Artifact(CustomEntry, kind="artifact"):
        title: str

    with pytest.raises(EntryEncodeError, match="would not be read as Artifact"):
        encode_entry(Artifact(title="x").model_copy(update={"title": 5}))
    with pytest.raises(EntryEncodeError, match="would not be read as Artifact"):
        encode_entry(Artifact(title="x").model_copy(update={"kind": "note"}))


def test_text_image_and_file_build_what_a_person_says() -> None:
    """3.6: the ordinary entries of a user."""
    encoded = base64.b64encode(b"abc").decode()
    assert text("hi") == MessageEntry(message=user("hi"))
    assert text("hi", meta=True) == MessageEntry(message=user("hi"), meta=True)
    picture = ImageBlock(data=encoded, mime_type="image/png")
    expected = MessageEntry(message=Message(role="user", content=[picture]))
    assert image(b"abc", "image/png") == image(encoded, "image/png") == expected
    paper = FileBlock(data=encoded, mime_type="text/plain", filename="a.txt")
    expected = MessageEntry(meta=True, message=Message(role="user", content=[paper]))
    assert (
        file(data=b"abc", mime_type="text/plain", filename="a.txt", meta=True)
        == file(data=encoded, mime_type="text/plain", filename="a.txt", meta=True)
        == expected
    )
    assert file(url="u").message.content == (FileBlock(url="u"),)
    assert file(file_id="f").message.content == (FileBlock(file_id="f"),)


@pytest.mark.parametrize("given", [{}, {"url": "u", "file_id": "f"}, {"data": b"a", "url": "u"}])
def test_a_file_is_given_in_exactly_one_way(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one of"):
        file(**given)


def test_ephemeral_marks_a_copy() -> None:
    """3.2, 3.4: the same message, for one run."""
    reminder = text("today is Friday")
    marked = ephemeral(reminder)
    assert (marked.ephemeral, reminder.ephemeral) == (True, False)
    assert marked.message == reminder.message
    assert ephemeral("today is Friday") == marked
    assert "ephemeral" not in marked.model_dump(mode="json")


def test_another_header_leaves_all_other_tokens_alone() -> None:
    line = (
        rb'{ "x" : [1e3, 1.50, "\u0041\/"], "type":"message","parent_id":"p","id":"a",'
        rb'"created_at":"2026-11-29T12:00:00,5+05:30", "message":{"role":"user","n":-0.0}}'
    )
    entry = decode_entry(line)
    moved = entry.with_header(id='b"<', created_at=at(1))
    assert (moved.id, moved.parent_id, moved.created_at) == ('b"<', "p", at(1))
    assert encode_entry(moved) == (
        rb'{"type":"message","id":"b\"\u003c","parent_id":"p",'
        rb'"created_at":"2026-03-04T05:06:01.000000000Z",'
        rb'"x" : [1e3, 1.50, "\u0041\/"],"message":{"role":"user","n":-0.0}}'
    )
    assert decode_entry(encode_entry(moved)) == moved
    root = moved.with_header(parent_id="")
    assert (root.parent_id, b"parent_id" in encode_entry(root)) == ("", False)
    assert root == decode_entry(encode_entry(root))


def test_another_header_leaves_what_is_nested_deeply_alone() -> None:
    line = '{"type":"message","id":"a","message":{},"x":' + "[" * 5_000 + "]" * 5_000 + ',"y":1e3}'
    assert (
        encode_entry(decode_entry(line).with_header(id="b"))
        == line.replace('"id":"a"', '"id":"b"').encode()
    )


def test_the_same_header_gives_the_same_entry() -> None:
    entry = decode_entry('{"type":"message","id":"a"}')
    assert entry.with_header() is entry
    assert entry.with_header(id="a", parent_id="") is entry


def test_a_header_can_be_set_before_and_after_the_entry_was_looked_at() -> None:
    line = '{"type":"message","id":"a","message":{"role":"user","content":[]},"x":1e3}'
    fresh, used = decode_entry(line), decode_entry(line)
    assert used.model_extra == {"x": 1000.0}
    assert fresh.with_header(id="b") == used.with_header(id="b")
    assert encode_entry(fresh.with_header(id="b")) == encode_entry(used.with_header(id="b"))
    assert text("hi").with_header(id="b") == text("hi").model_copy(update={"id": "b"})


def test_a_compaction_follows_its_first_kept_entry() -> None:
    line = b'{"type":"compaction","id":"a","summary":"s","first_kept_id":"k","x":1e3}'
    entry = decode_entry(line)
    assert isinstance(entry, CompactionEntry)
    moved = entry.with_first_kept("m")
    assert (moved.first_kept_id, moved.summary) == ("m", "s")
    assert encode_entry(moved) == (
        b'{"type":"compaction","id":"a","summary":"s","first_kept_id":"m","x":1e3}'
    )
    built = CompactionEntry(summary="s", first_kept_id="k")
    assert built.with_first_kept("m") == CompactionEntry(summary="s", first_kept_id="m")


def test_usages_add_up() -> None:
    one = Usage(input=1, output=2, cost=Cost(input=0.5))
    other = Usage(input=10, reasoning=3, cost=Cost(input=0.25, output=1.0))
    total = Usage(input=11, output=2, reasoning=3, cost=Cost(input=0.75, output=1.0))
    assert one + other == total
    assert total.cost.total == 1.75


def test_a_message_tells_its_text_and_the_calls_of_the_client() -> None:
    hosted = call("c1").model_copy(update={"server": True})
    message = Message(
        role=Role.ASSISTANT,
        content=[TextBlock(text="a"), hosted, call("c2"), TextBlock(text="b")],
        stop_reason=StopReason.TOOL_USE,
    )
    assert (message.text, message.tool_calls) == ("ab", (call("c2"),))
    assert message.model_dump(mode="json")["role"] == "assistant"


def test_constructors_refuse_what_does_not_fit() -> None:
    for bad in ({"role": 5}, {"content": [5]}, {"usage": {"input": 1.0}}, {"is_error": "no"}):
        with pytest.raises(ValidationError):
            Message(**bad)


def test_an_entry_of_no_known_form_is_refused() -> None:
    for bad in ({"type": ["message"]}, {"type": 5}, {"id": 5}, "message", None):
        with pytest.raises(ValidationError):
            Entry.model_validate(bad)


def test_models_are_frozen() -> None:
    entry = decode_entry('{"type":"message","id":"a"}')
    with pytest.raises(ValidationError, match="frozen"):
        entry.id = "b"


def test_an_entry_of_any_type_is_a_field_of_other_models() -> None:
    class Receipt(BaseModel):
        entries: list[Entry]

    class Note(CustomEntry, kind="note"):
        body: str

    receipt = Receipt(entries=[text("hi"), Note(body="x"), CompactionEntry(summary="s")])
    wire = receipt.model_dump(mode="json", by_alias=True)
    assert [entry["type"] for entry in wire["entries"]] == ["message", "custom", "compaction"]
    assert Receipt.model_validate(wire) == receipt
    assert Receipt.model_validate_json(receipt.model_dump_json(by_alias=True)) == receipt


def test_dumps_may_be_narrowed() -> None:
    entry = text("hi").with_header(
        id="a", parent_id="p", created_at=Timestamp.parse("2026-01-01T00:00:00Z")
    )
    assert entry.model_dump(mode="json", include={"id", "type"}) == {"type": "message", "id": "a"}
    assert entry.model_dump(exclude={"message", "created_at"}) == {
        "type": "message",
        "id": "a",
        "parent_id": "p",
    }
