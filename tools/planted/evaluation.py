"""Defects of noisy counts, and of what is measured by them."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import COUNTED, Mutant, scaled

COUNTS = "mechanisms/statistics/counts.py"

# fmt: off
MUTANTS = [
    *scaled("counts: noise", COUNTS, "[add(table, @scale@, randomness)", COUNTED),
    Mutant("counts: one row for a person of many, L1", COUNTS, "guarantee.relation.gradients * rows)", "guarantee.relation.gradients)", COUNTED),
    Mutant("counts: one row for a person of many, L2", COUNTS, "return guarantee.relation.counts * rows", "return guarantee.relation.counts", COUNTED),
    Mutant("counts: Gaussian shares as Laplace's", COUNTS, '{"gaussian": 0.5,', '{"gaussian": 0.0,', COUNTED),
    Mutant("counts: every table has the whole budget", COUNTS, "self.noise_scale / share**power", "self.noise_scale", COUNTED),
    Mutant("counts: only the first table costs", COUNTS, "tables = list(zip(self.cells, self.scales, strict=True))", "tables = list(zip(self.cells, self.scales, strict=True))[:1]", COUNTED),
    Mutant("counts: weights of a person rounded up", COUNTS, "np.floor(weights * UNIT)", "np.ceil(weights * UNIT)", COUNTED),
    Mutant("counts: rows without a cell are in the last", COUNTS, "np.bincount(cell[inside], weights=units[inside]", "np.bincount(cell % cells, weights=units", COUNTED),
]
# fmt: on
