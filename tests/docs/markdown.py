"""The project's pages in Markdown: their blocks of code, their links, the names that they set in
code type.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.packaging.source import ROOT


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, what else its first line says, and its text.

    `line` is that of its first line of text, `options` the words after the language, those without
    a value as empty text.
    """

    page: str
    line: int
    language: str
    options: dict[str, str]
    text: str

    @property
    def place(self) -> str:
        """Where it is, as an editor takes it."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A page by its path from the root of the checkout."""

    name: str

    @cached_property
    def blocks(self) -> list[Block]:
        """The fenced blocks, in order."""
        return [
            Block(self.name, token.map[0] + 2, *_info(token.info), token.content)
            for token in self._tokens
            if token.type == "fence" and token.map
        ]

    @cached_property
    def links(self) -> list[str]:
        """Where its links lead, as they are written."""
        inline = [token for token in self._inline if token.type in ("link_open", "image")]
        return [str(token.attrs.get("href", token.attrs.get("src"))) for token in inline]

    @cached_property
    def names(self) -> list[str]:
        """What the text sets in code type, blocks not included."""
        return [token.content for token in self._inline if token.type == "code_inline"]

    @cached_property
    def anchors(self) -> set[str]:
        """The names of its headings, as links to them are written."""
        headings = [
            following.content
            for token, following in zip(self._tokens, self._tokens[1:], strict=False)
            if token.type == "heading_open"
        ]
        return {_anchor(heading) for heading in headings}

    @property
    def path(self) -> Path:
        """The file."""
        return ROOT / self.name

    @cached_property
    def _tokens(self) -> list[Token]:
        return MarkdownIt("commonmark").enable("table").parse(self.path.read_text("utf-8"))

    @property
    def _inline(self) -> Iterator[Token]:
        for token in self._tokens:
            yield from token.children or []


PAGES = [
    Page(path.relative_to(ROOT).as_posix())
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md")))
]


def _info(info: str) -> tuple[str, dict[str, str]]:
    language, *rest = shlex.split(info) or [""]
    options = dict(word.partition("=")[::2] for word in rest)
    return language, options


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
