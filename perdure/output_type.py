"""What an answer has to be: a type of the application, or a JSON schema; and reading it as such."""

from __future__ import annotations

import dataclasses
import re
import sys
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

import typing_extensions
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from perdure.codec import loads_json
from perdure.errors import OutputError

T = TypeVar("T")

_FENCED: Final = re.compile(r"```[a-zA-Z]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_MOST_FAULTS: Final = 10
_LONGEST_VALUE: Final = 60
_LONGEST_LINE: Final = 300


class OutputType(Generic[T]):
    """A pydantic model, a dataclass or a TypedDict, as what an answer has to be.

    Raises OutputError when it is something else, or pydantic cannot make a schema of it.
    """

    def __init__(self, kind: type[T]) -> None:
        if not _is_object_type(kind):
            raise OutputError(
                f"{kind!r} cannot be an output: give a pydantic model, a dataclass, a TypedDict or "
                "a JSON schema; wrap a list or a number in one of these"
            )
        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(kind)
            self.json_schema: dict[str, Any] = self._adapter.json_schema()
        except PydanticUserError as error:
            raise OutputError(f"{kind!r} cannot be an output: {error.message}") from error
        self.path = f"{kind.__module__}:{kind.__qualname__}"

    def read(self, text: str) -> T:
        """The answer as an object. Raises OutputError that names the faults."""
        try:
            return self._adapter.validate_json(json_text(text))
        except ValidationError as error:
            raise OutputError(
                listed(
                    (
                        ".".join(map(str, fault["loc"])),
                        f"{fault['msg']} (got {_shortened(repr(fault['input']), _LONGEST_VALUE)})",
                    )
                    for fault in error.errors(include_url=False, include_context=False)
                )
            ) from None


class AnyJson:
    """An answer that a JSON schema describes. Only that it is JSON is checked where it is read: the
    worker has checked the rest.
    """

    path = ""

    def __init__(self, json_schema: Mapping[str, Any]) -> None:
        self.json_schema = dict(json_schema)

    def read(self, text: str) -> Any:
        """The answer as plain values. Raises OutputError when it is not JSON."""
        return read_json(text)


def output_of(asked: type[T] | Mapping[str, Any]) -> OutputType[T] | AnyJson:
    """What a run was asked for: a type, or a JSON schema."""
    return AnyJson(asked) if isinstance(asked, Mapping) else OutputType(asked)


def output_type_loaded_here(path: str, json_schema: Mapping[str, Any]) -> OutputType[Any] | None:
    """The type of that name (`module:qualname`), where this process has it already, with the same
    schema. Nothing is imported, and no code of the module runs.
    """
    module_name, _, qualname = path.partition(":")
    found: Any = sys.modules.get(module_name)
    for name in qualname.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    if not _is_object_type(found):
        return None
    try:
        output = OutputType(found)
    except OutputError:
        return None
    return output if output.json_schema == json_schema else None


def json_text(text: str) -> str:
    """The JSON in an answer: all of it, or what it has fenced off as code."""
    fenced = _FENCED.search(text) if not text.lstrip().startswith(("{", "[")) else None
    return fenced.group(1) if fenced is not None else text.strip()


def read_json(text: str) -> Any:
    """The answer as plain values. Raises OutputError when it is not JSON."""
    try:
        return loads_json(json_text(text).encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise OutputError(f"- it is not JSON: {error}") from None


def listed(faults: Iterable[tuple[str, str]]) -> str:
    """Faults (where, what) as lines for a model to read."""
    lines = []
    for number, (place, message) in enumerate(faults):
        if number == _MOST_FAULTS:
            lines.append("- and more")
            break
        lines.append(
            _shortened(f"- {place}: {message}" if place else f"- {message}", _LONGEST_LINE)
        )
    return "\n".join(lines)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _is_object_type(kind: object) -> typing.TypeGuard[type[Any]]:
    if not isinstance(kind, type):
        return False
    is_typed_dict = typing.is_typeddict(kind) or typing_extensions.is_typeddict(kind)
    return issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind) or is_typed_dict
