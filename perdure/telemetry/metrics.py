"""The metrics of a process."""

from __future__ import annotations

from opentelemetry.metrics import Histogram, MeterProvider

from perdure.telemetry.conventions import (
    AGENT,
    COMMAND,
    COUNT_BUCKETS,
    DURATION_BUCKETS,
    ERROR,
    INBOX_DEPTH,
    INBOX_SECONDS,
    LONG_BUCKETS,
    MODEL_SECONDS,
    OPERATION,
    RUN_SECONDS,
    RUN_STATUS,
    STORE_BUCKETS,
    STORE_OPERATION,
    STORE_SECONDS,
    TOKEN_BUCKETS,
    TOKEN_TYPE,
    TOKENS,
    TOOL,
    TOOL_ERRORS,
    TOOL_SECONDS,
    TURN_SECONDS,
    Attributes,
    input_tokens,
)
from perdure.usage import Usage


class Metrics:
    """What is measured. No session's ID is among the attributes: there are too many of them."""

    def __init__(self, provider: MeterProvider, version: str) -> None:
        meter = provider.get_meter("perdure", version)

        def histogram(name: str, unit: str, told: str, buckets: list[float]) -> Histogram:
            return meter.create_histogram(
                name, unit, told, explicit_bucket_boundaries_advisory=buckets
            )

        def seconds(name: str, told: str, buckets: list[float]) -> Histogram:
            return histogram(name, "s", told, buckets)

        self._operation = seconds(MODEL_SECONDS, "GenAI operation duration.", DURATION_BUCKETS)
        self._tokens = histogram(
            TOKENS,
            "{token}",
            "Number of input and output tokens used.",
            TOKEN_BUCKETS,
        )
        self._agent = seconds(
            RUN_SECONDS,
            "Runs of agents, from accepted to over.",
            LONG_BUCKETS,
        )
        self._tool = seconds(TOOL_SECONDS, "Tool calls.", DURATION_BUCKETS)
        self._tool_errors = meter.create_counter(
            TOOL_ERRORS, "{call}", "Tool calls that gave an error."
        )
        self._turn = seconds(
            TURN_SECONDS, "Turns: a call of the model, and its tools.", LONG_BUCKETS
        )
        self._store = seconds(STORE_SECONDS, "Calls of the store.", STORE_BUCKETS)
        self._waiting = histogram(
            INBOX_DEPTH,
            "{command}",
            "Commands that wait in a session when one more came.",
            COUNT_BUCKETS,
        )
        self._waited = seconds(
            INBOX_SECONDS,
            "From when a traced command was accepted until its turn came.",
            LONG_BUCKETS,
        )

    def model_called(self, seconds: float, attributes: Attributes, usage: Usage | None) -> None:
        """A model answered, or failed; the attributes are those of the conventions."""
        self._operation.record(seconds, attributes)
        if usage is not None:
            for kind, count in (("input", input_tokens(usage)), ("output", int(usage.output))):
                if count:
                    self._tokens.record(count, attributes | {TOKEN_TYPE: kind})

    def tool_called(self, seconds: float, tool: str, error: str) -> None:
        """A tool gave a result, or an error."""
        attributes = {OPERATION: "execute_tool", TOOL: tool} | _error(error)
        self._tool.record(seconds, attributes)
        if error:
            self._tool_errors.add(1, {TOOL: tool, ERROR: error})

    def run_ended(self, seconds: float, agent: str, status: str, error: str) -> None:
        """A run is over."""
        attributes = {OPERATION: "invoke_agent", AGENT: agent, RUN_STATUS: status}
        self._agent.record(seconds, attributes | _error(error))

    def turn_ended(self, seconds: float, agent: str) -> None:
        """A turn is over."""
        self._turn.record(seconds, {AGENT: agent})

    def store_called(self, seconds: float, operation: str, error: str) -> None:
        """The store answered."""
        self._store.record(seconds, {STORE_OPERATION: operation} | _error(error))

    def command_queued(self, verb: str, waiting: int) -> None:
        """A command came."""
        self._waiting.record(waiting, {COMMAND: verb})

    def command_begun(self, verb: str, waited: float) -> None:
        """A command's turn came."""
        self._waited.record(waited, {COMMAND: verb})


def _error(error: str) -> Attributes:
    return {ERROR: error} if error else {}
