"""What the answer of a run has to be."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from perdure.codec import dumps_json
from perdure.wire import Wire

MAX_OUTPUT_SCHEMA_BYTES = 50_000
"""The largest schema of an output, in bytes of JSON. It goes with each call of the model."""

OUTPUT_RETRIES = 2
"""How often an answer that does not fit is given back to the model, unless the run says."""

_MOST_RETRIES = 100


class OutputSpec(Wire):
    """The answer has to be JSON that fits the schema.

    `type` is the class that the schema was made of, `module:qualname`: a worker that has it loaded
    checks the answer with it. An answer that does not fit goes back to the model `retries` times.
    Whoever types one by hand may give the bare schema.
    """

    json_schema: dict[str, Any]
    type: str = ""
    retries: int = Field(default=OUTPUT_RETRIES, ge=0, le=_MOST_RETRIES)

    @model_validator(mode="before")
    @classmethod
    def _from_bare(cls, value: object) -> object:
        if isinstance(value, dict) and "json_schema" not in value:
            return {"json_schema": value}
        return value

    @field_validator("json_schema")
    @classmethod
    def _check_size(cls, value: dict[str, Any]) -> dict[str, Any]:
        size = len(dumps_json(value))
        if size > MAX_OUTPUT_SCHEMA_BYTES:
            raise ValueError(
                f"the schema is {size:,} bytes; it goes with each call of the model, so it has no "
                f"more than {MAX_OUTPUT_SCHEMA_BYTES:,}"
            )
        return value
