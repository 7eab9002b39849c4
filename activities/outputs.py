"""Whether a model's answer is what the run has asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from perdure.errors import OutputError
from perdure.output_type import listed, output_type_loaded_here, read_json
from perdure.protocol import OutputSpec


def check_spec(spec: OutputSpec) -> None:
    """Raise OutputError when answers could not be checked here, which says what to do."""
    if output_type_loaded_here(spec.type, spec.json_schema) is None:
        _validator(spec)


def faults_of(spec: OutputSpec, text: str) -> str:
    """What is wrong with an answer, for the model to read; nothing when it fits. Raises OutputError
    as `check_spec` does.
    """
    loaded = output_type_loaded_here(spec.type, spec.json_schema)
    validator = None if loaded is not None else _validator(spec)
    try:
        if loaded is not None:
            loaded.read(text)
            return ""
        value = read_json(text)
    except OutputError as faults:
        return str(faults)
    return _faults(validator, value)


def faults_against(schema: dict[str, Any], value: Any) -> str:
    """What is wrong with a value by a JSON schema of somebody else's; nothing when it fits, or when
    that cannot be said here.
    """
    try:
        return _faults(_validator(OutputSpec(json_schema=schema)), value)
    except OutputError:
        return ""


def _faults(validator: Any, value: Any) -> str:
    try:
        return listed(
            (error.json_path.removeprefix("$").lstrip("."), error.message)
            for error in validator.iter_errors(value)
        )
    except RecursionError:
        raise OutputError("the JSON schema of the output goes round in circles; mend it") from None
    except importlib.import_module("referencing.exceptions").Unresolvable as error:
        raise OutputError(
            f"the JSON schema of the output names {error.ref!r}, which is not in it"
        ) from None


def _validator(spec: OutputSpec) -> Any:
    """A checker for the schema. It fetches nothing: what a schema refers to has to be in it."""
    try:
        jsonschema: Any = importlib.import_module("jsonschema")
        known: Any = importlib.import_module("jsonschema_specifications").REGISTRY
    except ImportError:
        raise OutputError(
            f"this worker cannot check an output of {spec.type or 'a JSON schema'}: load the "
            "module of its class in the worker, or: pip install 'perdure[output]'"
        ) from None
    default = jsonschema.Draft202012Validator
    kind = jsonschema.validators.validator_for(spec.json_schema, default=default)
    try:
        kind.check_schema(spec.json_schema)
    except jsonschema.SchemaError as error:
        raise OutputError(f"not a JSON schema: {error.json_path}: {error.message}") from None
    outside = next((ref for ref in _refs(spec.json_schema) if not ref.startswith("#")), None)
    if outside is not None:
        raise OutputError(f"the JSON schema of the output refers to {outside!r}; put that into it")
    return kind(spec.json_schema, registry=known, format_checker=kind.FORMAT_CHECKER)


def _refs(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        ref = schema.get("$ref")
        if isinstance(ref, str):
            yield ref
        for value in schema.values():
            yield from _refs(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _refs(value)
