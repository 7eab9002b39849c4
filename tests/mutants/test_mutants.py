"""Every safeguard that the catalogue breaks is still there, and so is the test that notices."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.catalogue import MUTANTS, QUICKEST
from tests.mutants.trial import ROOT, Mutant, tried


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_is_broken_is_there_and_so_are_those_who_notice(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()
    ast.parse(mutant.applied(text))
    for test in mutant.noticed_by:
        place, _, name = test.partition("::")
        functions = {
            node.name
            for node in ast.walk(ast.parse((ROOT / place).read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name.partition("[")[0] in functions


def test_mutants_have_names_of_their_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    assert set(names) >= QUICKEST


@pytest.mark.parametrize("name", sorted(QUICKEST))
def test_a_broken_safeguard_is_noticed(name: str) -> None:
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    first = Mutant(mutant.name, mutant.file, mutant.changes, mutant.noticed_by[:1])
    [verdict] = tried(first)
    assert verdict.is_noticed, verdict.said
