"""Where a compaction cuts, and what the model is asked to summarize."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perdure.codec import dumps_json
from perdure.entries import Entry, MessageEntry
from perdure.messages import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ToolCallBlock,
)
from perdure.views import kept_part, model_view

DEFAULT_PROMPT = (
    "Summarize the conversation up to here so that it can go on from the summary alone. "
    "Keep what the user wants (the latest request word for word), what was decided and why, "
    "what was done and found (names, numbers, paths, IDs), what is under way, and what comes next. "
    "Write the summary only, without a word about it."
)

_PART = """\
The conversation is too long to be read at once, so it comes in parts. {before}\
This is the next part:

<part>
{part}
</part>

{prompt}"""

_BEFORE = """\
What came before this part was, in short:

<summary>
{summary}
</summary>

Carry it over into what you write now. """


@dataclass(frozen=True, slots=True)
class Cut:
    """A path in two: what is to be summarized, as a model is sent it, and where what is kept
    begins.
    """

    messages: list[Message]
    first_kept_id: str
    tokens_before: int


def find_cut(path: Sequence[Entry], keep_turns: int) -> Cut | None:
    """Cut a path before its last `keep_turns` turns; None when nothing new lies before them.

    A turn starts at a user message that is not meta, so the cut never parts a tool call from its
    result. What is to be summarized begins with the summary of the compaction before, if there was
    one, and does not go back behind it.
    """
    end = _start_of_last_turns(path, keep_turns)
    start, latest = kept_part(path)
    if not any(isinstance(entry, MessageEntry) for entry in path[start:end]):
        return None
    before = path[:end]
    if latest is not None and latest not in before:
        before = [*before, latest]
    return Cut(
        messages=model_view(before),
        first_kept_id=path[end].id if end < len(path) else "",
        tokens_before=_tokens(path[start:]),
    )


def part_prompt(summary: str, part: str, prompt: str) -> str:
    """What a model is asked about one part of a conversation, after the summary of those before."""
    before = _BEFORE.format(summary=summary) if summary else ""
    return _PART.format(before=before, part=part, prompt=prompt)


def as_text(messages: Iterable[Message]) -> str:
    """A conversation as plain text, which can be cut anywhere. Thoughts are left out, images and
    files are named.
    """
    return "\n\n".join(
        f"{message.role}: {text}" for message in messages if (text := _text_of(message))
    )


def _text_of(message: Message) -> str:
    return "\n".join(filter(None, map(_text_of_block, message.content)))


def _text_of_block(block: ContentBlock) -> str:
    match block:
        case TextBlock():
            return block.text
        case ToolCallBlock():
            arguments = dumps_json(block.arguments).decode("utf-8", "replace")
            output = f" gave {block.output.content}" if block.output is not None else ""
            return f"[called {block.name}({arguments}){output}]"
        case ImageBlock():
            return "[an image]"
        case FileBlock():
            return f"[the file {block.filename or block.url or block.file_id}]".replace(" ]", "]")
        case _:
            return ""


def _start_of_last_turns(path: Sequence[Entry], turns: int) -> int:
    if turns == 0:
        return len(path)
    for place in range(len(path) - 1, -1, -1):
        entry = path[place]
        if isinstance(entry, MessageEntry) and not entry.meta and entry.message.role == Role.USER:
            turns -= 1
            if turns == 0:
                return place
    return 0


def _tokens(path: Sequence[Entry]) -> int:
    """The size of the conversation as its last model call was charged for it; 0 when none says."""
    for entry in reversed(path):
        usage = entry.message.usage if isinstance(entry, MessageEntry) else None
        if usage is not None:
            return usage.input + usage.cache_read + usage.cache_write + usage.output
    return 0
