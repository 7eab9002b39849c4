"""The entries that activities make of messages can be told from what the log has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure import Message, MessageEntry
from perdure.activities.appending import is_message_after, message_after
from perdure.codec import decode_entry, encode_entry
from perdure.messages import TextBlock
from tests.core.strategies import any_text, messages


@given(messages, any_text.filter(bool))
def test_whatever_a_message_holds_its_author_knows_it_again(message: Message, author: str) -> None:
    entry = message_after("leaf", message.to_wire(), session_id="s", author=author)
    stored = decode_entry(encode_entry(entry))
    assert isinstance(stored, MessageEntry)
    assert stored.message.to_wire() == entry.to_wire()["message"]
    assert is_message_after("leaf", stored, session_id="s", author=author)


@given(st.sampled_from(["leaf", "session", "author"]))
def test_what_another_wrote_or_elsewhere_is_not_taken_for_it(differs: str) -> None:
    message = Message(role="assistant", content=(TextBlock(text="Hello."),))
    entry = message_after("leaf", message.to_wire(), session_id="session", author="author")
    place = {name: f"{name}{'!' * (name == differs)}" for name in ("leaf", "session", "author")}
    assert not is_message_after(
        place["leaf"], entry, session_id=place["session"], author=place["author"]
    )
