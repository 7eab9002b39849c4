"""The workflow that keeps a session, and its parts. Deterministic code only: no I/O, no clock,
no providers.
"""

from perdure.workflows.session import SessionWorkflow

__all__ = ["SessionWorkflow"]
