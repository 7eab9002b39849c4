"""A command's own session, and whether it still fits the conversation.

A command remembers the conversation in a session of its own. Each message that it produced is
marked with that session's ID, so the mark goes wherever the message goes: along a path, into a
fork. Since a session that is resumed goes on in a copy, it never grows after its run. So it fits a
conversation that ends with the last message of that run, and no other.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Final

from perdure.entries import CompactionEntry, MessageEntry
from perdure.loops.protocol import LoopContext, LoopOutput
from perdure.loops.retelling import retold
from perdure.messages import ContentBlock, Message, Role, TextBlock

CONTINUE: Final = "Continue."
"""What a command is told when a run goes on without new input."""

_SO_FAR: Final = (
    "This is the conversation so far, as a record. Go on from where it ends.\n\n"
    "<conversation>\n{}\n</conversation>"
)
_MARK: Final = "provider_data"
_COMMAND_SESSION: Final = "cli_session"
_IS_END: Final = "is_end"
_WITHIN: Final = "session_id"


def marked(output: LoopOutput, session_id: str) -> LoopOutput:
    """The output with a note of the session that it is stored in."""
    if not isinstance(output, Message) or not (mark := _mark_of(output)):
        return output
    return output.model_copy(update={_MARK: {**mark, _WITHIN: session_id}})


def is_complete(context: LoopContext) -> bool:
    """Whether an earlier attempt at the run has stored all that there was."""
    last = context.stored[-1] if context.stored else None
    return isinstance(last, MessageEntry) and _IS_END in _mark_of(last.message)


def session_to_resume(context: LoopContext) -> str:
    """The ID of the command's session that ends where the conversation does; empty: there is none.

    What people have said since is what it will be told.
    """
    for entry in reversed(context.path):
        if isinstance(entry, CompactionEntry):
            return ""
        if not isinstance(entry, MessageEntry) or entry.message.role == Role.USER:
            continue
        mark = _mark_of(entry.message)
        session_id = str(mark.get(_COMMAND_SESSION) or "")
        fits = _IS_END in mark or (
            mark.get(_WITHIN) == context.session_id and _is_last(entry, session_id, context)
        )
        return session_id if fits else ""
    return ""


def prompt_of(context: LoopContext, *, is_resumed: bool) -> list[ContentBlock]:
    """What the command is told: what people have said last, and before it all the rest, unless
    it knows that.
    """
    messages = context.messages
    said = list(takewhile(lambda message: message.role == Role.USER, reversed(messages)))[::-1]
    content: list[ContentBlock] = [block for message in said for block in message.content]
    content = content or [TextBlock(text=CONTINUE)]
    before = messages[: len(messages) - len(said)]
    if before and not is_resumed:
        content.insert(0, TextBlock(text=_SO_FAR.format(retold(before))))
    return content


def _is_last(entry: MessageEntry, session_id: str, context: LoopContext) -> bool:
    """Whether the log has nothing more of the command's session than this."""
    for other in reversed(context.transcript.entries):
        if other.id == entry.id:
            return True
        if not isinstance(other, MessageEntry):
            continue
        if _mark_of(other.message).get(_COMMAND_SESSION) == session_id:
            return False
    return False


def _mark_of(message: Message) -> dict[str, Any]:
    mark = (message.model_extra or {}).get(_MARK)
    return mark if isinstance(mark, dict) else {}
