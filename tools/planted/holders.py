"""Defects of what a holder does beside training: say what a promise means, split a table, describe it."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

MEANING = ("accounting/test_meaning.py", "release/test_meaning.py")

MEANT = "accounting/meaning.py"

# fmt: off
MUTANTS = [
    Mutant("meaning: only one direction", MEANT, "return factor * false_positives + 1.0 - factor + factor * right", "return factor * false_positives + right", MEANING),
    Mutant("meaning: a mu for every promise", MEANT, "return None if curve.stated_delta else", "return", MEANING),
    Mutant("meaning: odds without the exception", MEANT, "epsilon - math.log1p(-share)", "epsilon", MEANING),
    Mutant("meaning: runs add up as roots", MEANT, "math.sqrt(times) * once", "once", MEANING),
    Mutant("meaning: a bought schema is free", "release/certified.py", "beside=sum(alike[1:], start=alike[0]) if alike else None", "beside=None", MEANING),
    Mutant("meaning: rounded downwards", "release/meaning.py", "rounding=ROUND_CEILING", 'rounding="ROUND_FLOOR"', MEANING),
]
