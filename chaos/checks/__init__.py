"""What has to hold after a run: one function a property, which answers with what breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.checks.forks import a_fork_is_one_complete_child
from chaos.checks.logs import (
    every_parent_resolves,
    nothing_is_there_that_nobody_produced,
    nothing_is_twice_on_a_path,
    times_are_the_servers,
)
from chaos.checks.receipts import (
    acknowledged_input_is_on_the_path_of_its_run,
    receipts_are_in_the_store_once,
    receipts_have_the_order_of_the_path,
)
from chaos.checks.requests import model_requests_are_valid
from chaos.checks.sessions import (
    clients_get_perdures_errors_only,
    no_session_is_stuck,
    runs_fail_for_a_reason,
    what_one_worker_did_the_next_can_replay,
)
from chaos.checks.tools import (
    a_result_is_what_the_tool_said,
    idempotent_tools_ran_at_least_once,
    other_tools_ran_at_most_once,
)
from chaos.evidence import Evidence

Check = Callable[[Evidence], tuple[int, list[str]]]
"""How many things were looked at, and what is wrong with which."""

CHECKS: tuple[Check, ...] = (
    receipts_are_in_the_store_once,
    receipts_have_the_order_of_the_path,
    acknowledged_input_is_on_the_path_of_its_run,
    nothing_is_there_that_nobody_produced,
    nothing_is_twice_on_a_path,
    every_parent_resolves,
    times_are_the_servers,
    a_fork_is_one_complete_child,
    other_tools_ran_at_most_once,
    idempotent_tools_ran_at_least_once,
    a_result_is_what_the_tool_said,
    model_requests_are_valid,
    no_session_is_stuck,
    runs_fail_for_a_reason,
    clients_get_perdures_errors_only,
    what_one_worker_did_the_next_can_replay,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check."""

    property: str
    checked: int
    violations: list[str]


def check_all(evidence: Evidence) -> list[Finding]:
    """All checks."""
    findings: list[Finding] = []
    for check in CHECKS:
        checked, violations = check(evidence)
        name = check.__name__.replace("_", " ")
        findings.append(Finding(name, checked, violations))
    return findings
