"""An answer that has to be JSON: by the provider's own means where it has them, by an instruction
otherwise.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.profiles import ModelProfile

from perdure.models.protocol import ModelRequest, output_instruction

_LONGEST_NAME: Final = 64


def instructed(
    request: ModelRequest, profile: ModelProfile, api: str, *, has_tools: bool
) -> ModelRequest:
    """The request as this model takes it: with the schema where the provider holds the model to
    one, with an instruction in its place where it does not.
    """
    schema = request.output_schema
    if schema is None or _holds_to_schemas(profile, api, has_tools):
        return request
    parts = filter(None, (request.instructions, output_instruction(schema)))
    return replace(request, instructions="\n\n".join(parts), output_schema=None)


def with_output(
    parameters: ModelRequestParameters, schema: dict[str, Any] | None
) -> ModelRequestParameters:
    """The parameters, with the schema that the answer has to fit."""
    if schema is None:
        return parameters
    # Providers take a name, of few kinds of characters.
    name = re.sub(r"[^a-zA-Z0-9]+", "_", str(schema.get("title", ""))).strip("_")[:_LONGEST_NAME]
    output = OutputObjectDefinition(json_schema=dict(schema), name=name or None)
    return replace(parameters, output_mode="native", output_object=output)


def _holds_to_schemas(profile: ModelProfile, api: str, has_tools: bool) -> bool:
    if not profile.get("supports_json_schema_output", False):
        return False
    # Before Gemini 3 it is either tools or a schema.
    is_either = api == "google-generative-ai" and not profile.get(
        "google_supports_tool_combination"
    )
    return not (is_either and has_tools)
