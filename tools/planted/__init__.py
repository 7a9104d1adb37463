"""Planted defects: `tools/mutants.py` puts one at a time into a copy of the source, and a test must fail."""

from tools.planted import learning, mechanisms, parties, storing
from tools.planted.mutant import Mutant

MUTANTS: list[Mutant] = [
    *mechanisms.MUTANTS,
    *learning.MUTANTS,
    *storing.MUTANTS,
    *parties.MUTANTS,
]
