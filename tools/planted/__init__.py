"""Planted defects: `tools/mutants.py` puts one at a time into a copy of the source, and a test must fail."""

from tools.planted import (
    approving,
    charging,
    cluster,
    console,
    evaluation,
    exporting,
    holders,
    inference,
    intervals,
    joint,
    learning,
    mechanisms,
    parties,
    private_count,
    reading,
    serving,
    storing,
)
from tools.planted.mutant import Mutant, TextMutant

MUTANTS: list[Mutant | TextMutant] = [
    *mechanisms.MUTANTS,
    *learning.MUTANTS,
    *reading.MUTANTS,
    *storing.MUTANTS,
    *parties.MUTANTS,
    *private_count.MUTANTS,
    *joint.MUTANTS,
    *holders.MUTANTS,
    *evaluation.MUTANTS,
    *intervals.MUTANTS,
    *inference.MUTANTS,
    *exporting.MUTANTS,
    *cluster.MUTANTS,
    *serving.MUTANTS,
    *approving.MUTANTS,
    *console.MUTANTS,
    *charging.MUTANTS,
]
