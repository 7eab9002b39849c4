"""What a tool's docstring tells a model."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

_SECTION = re.compile(r"^[ \t]*(:\w+|[A-Z][\w ]*:[ \t]*$|-{3,}[ \t]*$)", re.MULTILINE)
_STYLES = ("google", "numpy", "sphinx")


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A function's description, and the description of each of its parameters.

    Google, numpy and Sphinx style are understood. The description is the docstring's text, its
    notes and what it says about the result; all other sections are left out.
    """
    docstring = (inspect.getdoc(function) or "").strip()
    if not _SECTION.search(docstring):
        return docstring, {}

    import griffe  # a tenth of a second, which plain docstrings need not pay

    quiet: Any = {style: {"warnings": False} for style in _STYLES}
    sections = griffe.parse_auto(
        griffe.Docstring(docstring), default="google", per_style_options=quiet
    )
    texts: list[str] = []
    parameters: dict[str, str] = {}
    for section in sections:
        if isinstance(section, griffe.DocstringSectionText):
            texts.append(section.value.strip())
        elif isinstance(section, griffe.DocstringSectionParameters):
            for parameter in section.value:
                parameters.setdefault(parameter.name.lstrip("*"), _one_line(parameter.description))
        elif isinstance(section, griffe.DocstringSectionAdmonition):
            texts.append(f"{section.title}: {_one_line(section.value.description)}")
        elif isinstance(section, griffe.DocstringSectionReturns):
            texts.append(
                "Returns: " + " ".join(_one_line(part.description) for part in section.value)
            )
    return "\n\n".join(texts), parameters


def with_descriptions(schema: dict[str, Any], descriptions: Mapping[str, str]) -> dict[str, Any]:
    """The schema with its parameters described; a description that a field states itself wins."""
    properties = {
        name: {"description": descriptions[name], **field} if name in descriptions else field
        for name, field in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _one_line(text: str) -> str:
    return " ".join(text.split())
