"""What is said to the demo's agent: the runs of the story, their IDs and their questions."""

from __future__ import annotations

from typing import Final

SESSION_ID: Final = "interrupted"
"""The ID in the log that the other program left behind."""

AGENT: Final = "reader"

INSTRUCTIONS: Final = (
    "You answer questions about a Python project. Use your tools, side by side where you can, and "
    "name the files that you cite. When the result of a tool is `tool execution interrupted`, find "
    "out what happened before you do it again. Answer in two or three sentences."
)

CRASHES: Final = "What happens to a tool call when its worker dies? Look at perdure/workflows."

REPORT: Final = (
    "Send the team a report of what you found (send_report), and count the lines of perdure "
    "(count_lines) at the same time."
)

SUMMARY: Final = "Sum this session up in one sentence, without tools."
