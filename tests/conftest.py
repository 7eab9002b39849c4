"""What all tests share."""

from __future__ import annotations

import os

# Before anything imports the workflow: in the tests it runs in the SDK's sandbox, which finds what
# is not deterministic.
os.environ.setdefault("PERDURE_WORKFLOW_SANDBOX", "1")
