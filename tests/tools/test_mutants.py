"""The list of planted defects follows the source: each finds its text exactly once (`make mutants` runs them all)."""

from __future__ import annotations

from pathlib import Path

from tools.planted import MUTANTS

ROOT = Path(__file__).parents[2]


def test_every_mutant_finds_its_place() -> None:
    lost = [
        mutant.name
        for mutant in MUTANTS
        if (ROOT / "src" / "privlearn" / mutant.file).read_text().count(mutant.old) != 1
    ]
    assert lost == []


def test_every_mutant_has_tests_that_exist_and_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    tests = {path for mutant in MUTANTS for path in mutant.tests}
    assert [path for path in sorted(tests) if not (ROOT / "tests" / path).exists()] == []
