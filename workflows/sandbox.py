"""Whether workflow code runs in the SDK's sandbox."""

from __future__ import annotations

import os

SANDBOXED = os.environ.get("PERDURE_WORKFLOW_SANDBOX") == "1"
"""The sandbox finds mistakes and costs time (a turn takes a quarter more CPU), so tests turn it
on and workers leave it off."""
