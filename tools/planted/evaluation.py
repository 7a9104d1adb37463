"""Defects of noisy counts, and of what is measured by them."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import COUNTED, DECIDED, EVALUATE_JOBS, MEASURED, SIMULATED, Mutant, scaled

COUNTS = "mechanisms/statistics/counts.py"
MEASURING = "evaluation/measuring.py"
METRICS = "evaluation/metrics.py"
INTERVALS = "evaluation/intervals.py"
ARTIFACT = "release/artifact.py"
COUNTS_FILE = "release/counts_file.py"
SERVICE = "service/service.py"

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
    Mutant("evaluate: counted before the charge", MEASURING, "charge.pay_for(lambda: run_plan(plan, schema, counted, weights, randomness))", "run_plan(plan, schema, counted, weights, randomness)", MEASURED),
    Mutant("evaluate: exact counts leave", MEASURING, "noisy = plan.mechanism.run(exact, randomness)", "noisy = exact", MEASURED),
    Mutant("evaluate: weak promises accepted", MEASURING, "        accept_weak_privacy=accept_weak_privacy,\n", "        accept_weak_privacy=True,\n", MEASURED),
    Mutant("evaluate: all rows of a person counted", "evaluation/counted_rows.py", "total += count(cell, size, each)", "total += count(cell, size)", MEASURED),
    Mutant("evaluate: n in place of the expected number", MEASURING, "guarantee.relation.total(persons, expected_records)", "persons", MEASURED),
    Mutant("evaluate: rows beyond a person's share", MEASURING, "weights_of_persons(joined(owner).column(0), schema.person)", "(None, len(counted))", MEASURED),
    Mutant("evaluate: scores that are not finite", "evaluation/subject.py", "if not np.isfinite(values).all():", "if False:", MEASURED),
    Mutant("intervals: sampling left out", INTERVALS, "drawn = source.multinomial(round(self._total), chances, size=replicates)", "drawn = np.tile(self.plausible.ravel(), (replicates, 1))", SIMULATED),
    Mutant("intervals: noise left out", INTERVALS, "drawn + sample(0.0, self.scale, drawn.shape)", "drawn + 0.0", SIMULATED),
    Mutant("area: ties not put back", METRICS, "(4.0 * fine - coarse) / 3.0", "fine", SIMULATED),
    Mutant("quotient: the divisor is taken for exact", INTERVALS, "square, middle = whole**2 - other**2,", "square, middle = whole**2,", SIMULATED),
    Mutant("residuals: bins not extrapolated", METRICS, "_extrapolated(one, np.repeat(other, 2)) for", "one for", SIMULATED),
    Mutant("threshold: counts of another model", ARTIFACT, 'release.evaluation.about.get("release_sha256") != release.undecided.digest', "False", DECIDED),
    Mutant("threshold: without its counts", ARTIFACT, "if decision is None or release.evaluation is None:", "if False:", DECIDED),
    Mutant("counts file: certificate of other tables", COUNTS_FILE, 'certificate.subject.get("about_sha256") != digest_of(members["about.json"])', "False", DECIDED),
    Mutant("counts file: certificate of other counts", COUNTS_FILE, "if cells != certificate.mechanism.cells or not whole", "if not whole", DECIDED),
    Mutant("evaluate job: another analyst's release", SERVICE, "self.result(caller, result_id, result_kind)", "results.find(self.store, None, result_id, result_kind)", EVALUATE_JOBS),
    Mutant("evaluate job: a release that the key is not for", SERVICE, "self.result(caller, result_id, result_kind)", "results.find(self.store, caller.name, result_id, result_kind)", EVALUATE_JOBS),
]
# fmt: on
