"""How a person in front of a chat answers a tool call that waits for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from perdure.cli.console import Console
from perdure.cli.entry_lines import plain_json
from perdure.cli.screen import Screen, one_line, safe
from perdure.protocol import PendingApproval

MOST_LINES = 30
"""Lines of an argument that are shown; the log has the rest."""

_CHOICE = "y/n/e? "
_LEGEND = "y: run it · n: no, and why · e: edit it"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said; with other `arguments` the call runs with these."""

    approved: bool
    reason: str | None = None
    arguments: dict[str, Any] | None = None


def show_question(screen: Screen, approval: PendingApproval, arguments: dict[str, Any]) -> None:
    """Print what is to run, with all of its arguments: nobody agrees to what they cannot see."""
    name = screen.fit(f"{one_line(approval.tool_name)} waits for you:")
    screen.line(screen.styled(name, "bold", "yellow"))
    for key, value in arguments.items():
        shown = value if isinstance(value, str) else plain_json(value)
        first, *others = safe(shown).split("\n")
        screen.line(f"  {screen.styled(one_line(key), 'yellow')} = {first}")
        for line in others[:MOST_LINES]:
            screen.line(f"    {line}")
        if len(others) > MOST_LINES:
            screen.line(screen.styled(f"    ⋮ {len(others) - MOST_LINES:,} lines more", "dim"))
    for part in _LEGEND.split(" · ") if (screen.columns or 80) < len(_LEGEND) else [_LEGEND]:
        screen.line(screen.styled(screen.fit(part), "dim"))
    screen.flush()


def ask(console: Console, screen: Screen, arguments: dict[str, Any]) -> Answer:
    """The person's answer. Raises EOFError and KeyboardInterrupt, as the console does."""
    while True:
        choice, _, rest = console.ask(_CHOICE).strip().partition(" ")
        match choice.lower():
            case "y" | "yes":
                return Answer(True)
            case "n" | "no":
                reason = rest.strip() or console.ask("why? ").strip()
                return Answer(False, reason=reason or None)
            case "e" | "edit":
                edited = _edited(console, screen, arguments)
                if edited is not None:
                    return Answer(True, arguments=edited)
            case "":
                continue
            case _:
                screen.line(screen.fit("y, n or e"))


def _edited(console: Console, screen: Screen, arguments: dict[str, Any]) -> dict[str, Any] | None:
    given = console.ask("arguments: ", prefill=plain_json(arguments)).strip()
    try:
        value = json.loads(given)
    except ValueError as error:
        screen.line(screen.styled(screen.fit(f"✗ this is not JSON: {error}"), "red"))
        return None
    if not isinstance(value, dict):
        screen.line(screen.styled(screen.fit("✗ the arguments are one JSON object"), "red"))
        return None
    return value
