"""What a function's signature tells a model, and the check of what the model sends back.

The JSON schema and the validation are pydantic's; this module only decides which parameters they
cover (all but the `ToolContext`), and how a refusal reads to a model.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ArgsKwargs, ErrorDetails

from perdure.errors import AgentError, ToolArgumentsError
from perdure.tool_context import ToolContext

INVALID_JSON: Final = "INVALID_JSON"
"""The only argument of a call whose arguments were not a JSON object; its value is the text that
the model wrote.
"""

MAX_FAULTS: Final = 20
MAX_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a tool that the model fills, and how they reach the function."""

    tool_name: str
    schema: dict[str, Any]
    context_name: str | None
    positional: tuple[str, ...]
    adapter: TypeAdapter[dict[str, Any]]

    def bind(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[list[Any], dict[str, Any]]:
        """The positional and keyword arguments to call the function with.

        Raises `ToolArgumentsError` naming every argument that does not fit.
        """
        values = dict(self.validated(arguments))
        if self.context_name is not None:
            values[self.context_name] = context
        return [values.pop(name) for name in self.positional], values

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the annotations say, with the defaults of those that are not given.
        Raises as `bind` does.
        """
        refuse_invalid_json(self.tool_name, arguments)
        try:
            return self.adapter.validate_python(ArgsKwargs((), dict(arguments)))
        except ValidationError as error:
            raise ToolArgumentsError(self._refusal(error)) from None

    def _refusal(self, error: ValidationError) -> str:
        faults = error.errors(include_url=False, include_context=False)
        lines = [self._fault(fault) for fault in faults[:MAX_FAULTS]]
        if len(faults) > MAX_FAULTS:
            lines.append(f"- and {len(faults) - MAX_FAULTS} more")
        return "\n".join([f"the arguments do not fit {self.tool_name}:", *lines])

    def _fault(self, fault: ErrorDetails) -> str:
        place = ".".join(str(step) for step in fault["loc"])
        properties: dict[str, dict[str, Any]] = self.schema["properties"]
        if fault["type"] == "missing_keyword_only_argument":
            kind = properties.get(place, {}).get("type")
            return f"- {place}: missing" + (f", expected {kind}" if isinstance(kind, str) else "")
        if fault["type"] == "unexpected_keyword_argument":
            known = ", ".join(properties) or "no arguments"
            return f"- {place}: there is no such argument; {self.tool_name} takes {known}"
        return f"- {place}: {fault['msg']} (got {_shortened(repr(fault['input']))})"


def refuse_invalid_json(tool_name: str, arguments: Mapping[str, Any]) -> None:
    """Raise `ToolArgumentsError` for arguments that were not a JSON object."""
    if set(arguments) == {INVALID_JSON}:
        raise ToolArgumentsError(
            f"the arguments for {tool_name} are not a JSON object; "
            "send them again as one. They were: "
            f"{_shortened(str(arguments[INVALID_JSON]))}"
        )


def parameters_of(function: Callable[..., Any], tool_name: str) -> Parameters:
    """Read the parameters of a function. Raises `AgentError` for a signature that no model could
    fill.
    """
    signature = _signature(function, tool_name)
    hints = _hints(function, tool_name)
    filled = _unbound(function)[1]
    context_name: str | None = None
    fields: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in filled:
            continue
        hint = hints.get(parameter.name, parameter.annotation)
        if _is_context(hint):
            if context_name is not None:
                raise AgentError(f"tool {tool_name!r} takes the ToolContext twice; once is enough")
            context_name = parameter.name
            continue
        _check_parameter(parameter, hint, tool_name)
        fields.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint))
    adapter = _adapter(fields, tool_name)
    positional = tuple(
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    )
    return Parameters(tool_name, _schema(adapter, tool_name), context_name, positional, adapter)


def _signature(function: Callable[..., Any], tool_name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise AgentError(f"the parameters of tool {tool_name!r} cannot be read: {error}") from error


def _hints(function: Callable[..., Any], tool_name: str) -> dict[str, Any]:
    target: Any = inspect.unwrap(_unbound(function)[0])
    if not inspect.isroutine(target):
        target = type(target).__call__
    # Without the result's annotation: a model never sees it, and it may name what only type
    # checkers import.
    annotations = dict(getattr(target, "__annotations__", {}))
    annotations.pop("return", None)
    try:
        return typing.get_type_hints(
            SimpleNamespace(__annotations__=annotations),
            globalns=getattr(target, "__globals__", {}),
            include_extras=True,
        )
    except Exception as error:
        raise AgentError(
            f"an annotation of tool {tool_name!r} cannot be resolved: {error}; "
            "annotations must name types that the tool's module defines or imports"
        ) from error


def _unbound(function: Any) -> tuple[Any, frozenset[str]]:
    """The function inside partials, and the names of the keyword arguments that the partials
    fill.
    """
    filled: set[str] = set()
    while isinstance(function, functools.partial):
        filled.update(function.keywords)
        function = function.func
    return function, frozenset(filled)


def _is_context(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType, Annotated):
        return any(_is_context(part) for part in get_args(hint))
    return hint is ToolContext


def _check_parameter(parameter: inspect.Parameter, hint: Any, tool_name: str) -> None:
    name = parameter.name
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise AgentError(
            f"tool {tool_name!r} takes {stars}{name}, which a model cannot fill; "
            "name each parameter"
        )
    if hint is inspect.Parameter.empty:
        advice = (
            f"make the tool from the bound method instead: tool(instance.{tool_name})"
            if name in ("self", "cls")
            else f"annotate it with its type, or with Any: {name}: str"
        )
        raise AgentError(f"parameter {name!r} of tool {tool_name!r} has no annotation; {advice}")


def _adapter(fields: list[inspect.Parameter], tool_name: str) -> TypeAdapter[dict[str, Any]]:
    # Pydantic validates calls of functions. This one has the tool's parameters without the context,
    # and hands the validated arguments back.
    def arguments(**values: Any) -> dict[str, Any]:
        return values

    arguments.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        # Keyword-only parameters may come in any order, so one without a default may follow one
        # with.
        fields
    )
    arguments.__annotations__ = {field.name: field.annotation for field in fields}
    accepted: Any = arguments
    try:
        return TypeAdapter(accepted)
    except PydanticUserError as error:
        raise _bad_annotation(tool_name, error) from error


class _ToolJsonSchema(GenerateJsonSchema):
    """Without the titles that pydantic makes from names: they tell a model nothing and cost
    tokens.
    """

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema(adapter: TypeAdapter[dict[str, Any]], tool_name: str) -> dict[str, Any]:
    try:
        schema = adapter.json_schema(schema_generator=_ToolJsonSchema)
    except PydanticUserError as error:
        raise _bad_annotation(tool_name, error) from error
    return {"type": "object", "properties": {}, **schema}


def _bad_annotation(tool_name: str, error: PydanticUserError) -> AgentError:
    reason = error.message.split("\n", 1)[0]
    return AgentError(
        f"a parameter of tool {tool_name!r} has a type that JSON cannot carry: {reason}"
    )


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
