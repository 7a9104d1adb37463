"""The planted defects follow the source: each pattern matches exactly once (`make mutants` runs them all)."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tools.planted import MUTANTS
from tools.planted import rename as renaming
from tools.planted.mutant import Mutant, TextMutant
from tools.planted.pattern import find_addresses

ROOT = Path(__file__).parents[2]
SOURCE = '''
LIMIT = 1

class Box:
    """Holds a value."""

    def put(self, value, *, size=1):
        with self.lock:
            self.check(value)  # first
            self.value = value
        return f"{value} of {LIMIT}" if value and size else None
'''


@cache
def _module(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _count(mutant: Mutant | TextMutant) -> int:
    path = mutant.file(ROOT)
    if not path.exists():
        return 0
    return (
        len(mutant.matches(_module(path)))
        if isinstance(mutant, Mutant)
        else path.read_text().count(mutant.old)
    )


def _changes_something(mutant: Mutant | TextMutant) -> bool:
    if isinstance(mutant, TextMutant):
        return mutant.old != mutant.new
    [site] = mutant.matches(_module(mutant.file(ROOT)))
    return list(map(ast.unparse, site.nodes)) != list(map(ast.unparse, site.replacement))


def test_every_mutant_matches_once() -> None:
    assert [mutant.name for mutant in MUTANTS if _count(mutant) != 1] == []


def test_every_mutant_changes_something() -> None:
    assert [mutant.name for mutant in MUTANTS if not _changes_something(mutant)] == []


def test_every_mutant_has_tests_that_exist_and_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    tests = {path for mutant in MUTANTS for path in mutant.tests}
    assert [path for path in sorted(tests) if not (ROOT / "tests" / path).exists()] == []


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("LIMIT", "1", "2", "LIMIT = 2"),
        ("Box.put", "self.check( value )", "", "        with self.lock:\n            self.value = value"),
        (
            "Box.put",
            "with self.lock:\n    ...",
            "...",
            "        self.check(value)\n        self.value = value\n",
        ),
        ("Box.put", "value and size", "size", "if size else None"),
        ("Box.put", "size", "0.5 * size", "if value and 0.5 * size else None"),
        ("Box", "'Holds a value.'", "", "class Box:\n\n    def put"),
        ("Box.put", "return f'{value} of {LIMIT}' if value and size else None", "", "self.value = value"),
    ],
)
def test_a_pattern_is_compared_as_syntax(name: str, old: str, new: str, expected: str) -> None:
    assert expected in Mutant("", f"module:{name}", old, new, ()).planted(SOURCE)


@pytest.mark.parametrize(("old", "count"), [("value", 3), ("absent", 0)])
def test_a_pattern_must_match_once(old: str, count: int) -> None:
    with pytest.raises(LookupError, match=r"matches \d times"):
        Mutant("", "module:Box.put", old, "0", ()).planted(SOURCE)


def test_an_address_is_the_innermost_definition() -> None:
    assert list(find_addresses(ast.parse(SOURCE), "self.check(value)")) == [("Box.put", 9)]
    assert list(find_addresses(ast.parse(SOURCE), "LIMIT = 1")) == [("", 2)]
    assert next(find_addresses(ast.parse(SOURCE), "1")) == ("LIMIT", 2)


def test_identifiers_are_renamed_outside_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "some.py"
    planted.write_text(
        'Mutant("told: a", "privlearn.told:Told.told", "told == \'told\'", "f\'{told} told\'", TOLD)\n'
        'Mutant("told: b", "privlearn.other:told", "told(told=1)", "x.told", TOLD)\n'
    )
    monkeypatch.setattr(renaming, "PLANTED", tmp_path)
    renaming.rename(["privlearn.told:told=report", "privlearn.other=privlearn.new.other"])
    assert planted.read_text() == (
        'Mutant("told: a", "privlearn.told:Told.report", "report == \'told\'", "f\'{report} told\'", TOLD)\n'
        'Mutant("told: b", "privlearn.new.other:told", "told(told=1)", "x.told", TOLD)\n'
    )
