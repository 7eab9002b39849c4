"""The texts of results, where they are longer than a model should be sent."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.messages import ContentBlock, TextBlock


def cut_texts(content: Sequence[ContentBlock], limit: int | None) -> tuple[ContentBlock, ...]:
    """The content with at most so many characters of text: the first and the last of them, and a
    note between that says how many are missing. Images and files stay, each in its place.
    """
    length = sum(len(block.text) for block in content if isinstance(block, TextBlock))
    if limit is None or length <= limit:
        return tuple(content)
    head = limit - limit // 3  # the beginning says more than the end
    tail_from = length - limit // 3
    note = (
        f"\n[… {tail_from - head:,} of {length:,} characters are left out here: "
        f"a result of this tool is cut to {limit:,} …]\n"
    )
    kept: list[ContentBlock] = []
    begin = 0
    for block in content:
        if not isinstance(block, TextBlock):
            kept.append(block)
            continue
        end = begin + len(block.text)
        text = block.text[: max(head - begin, 0)]
        if begin <= head < end:
            text += note
        text += block.text[max(tail_from, begin) - begin :]
        if text:
            kept.append(block.model_copy(update={"text": text}))
        begin = end
    return tuple(kept)
