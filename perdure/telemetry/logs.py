"""Log lines as OpenTelemetry has them: with the session and the run that they are about."""

from __future__ import annotations

import logging
from contextvars import ContextVar

from opentelemetry._logs import LoggerProvider, SeverityNumber

from perdure.errors import InvalidSessionIdError, TenantError
from perdure.session_id import session_id_of, tenant_of
from perdure.telemetry.conventions import CONVERSATION, RUN, Attributes

subject: ContextVar[tuple[str, str]] = ContextVar("subject", default=("", ""))
"""The session and the run that what is done now is about."""

_SEVERITIES = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
)


class LogBridge(logging.Handler):
    """Hands log records on. Of an exception only the type is told: its text and its stack may quote
    what is nobody's business.
    """

    def __init__(self, provider: LoggerProvider, version: str) -> None:
        super().__init__(logging.INFO)
        self._logger = provider.get_logger("perdure", version)

    def emit(self, record: logging.LogRecord) -> None:
        """See the standard library."""
        try:
            self._logger.emit(
                timestamp=int(record.created * 1e9),
                severity_text=record.levelname,
                severity_number=_severity(record.levelno),
                body=record.getMessage(),
                attributes=_attributes(record),
            )
        except Exception:  # noqa: BLE001 - a line that cannot be sent stops nobody
            self.handleError(record)


def session_named(workflow_id: str) -> str:
    """The session of a workflow, by its ID; empty for another workflow's."""
    try:
        return session_id_of(workflow_id, tenant=tenant_of(workflow_id))
    except (InvalidSessionIdError, TenantError):
        return ""


def _severity(level: int) -> SeverityNumber:
    for least, severity in _SEVERITIES:
        if level >= least:
            return severity
    return SeverityNumber.DEBUG


def _attributes(record: logging.LogRecord) -> Attributes:
    session_id, run_id = subject.get()
    workflow = getattr(record, "temporal_workflow", None)
    if not session_id and isinstance(workflow, dict):
        session_id = session_named(str(workflow.get("workflow_id", "")))
    exception = record.exc_info[0] if record.exc_info else None
    found = {
        "logger.name": record.name,
        CONVERSATION: session_id,
        RUN: run_id,
        "exception.type": exception.__name__ if exception is not None else "",
    }
    return {name: value for name, value in found.items() if value}
