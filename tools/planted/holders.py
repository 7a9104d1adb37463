"""Defects of what a holder does beside training: say what a promise means, split a table, describe it."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

MEANING = ("accounting/test_meaning.py", "release/test_meaning.py")
PARTS = ("data/test_parts.py",)
DESCRIBED = ("statistics/description",)
PARTED = ("budget/test_parts.py",)


# fmt: off
MUTANTS = [
    Mutant("meaning: only one direction", "privlearn.accounting.meaning:best_true_positives.bound", "factor * false_positives + 1.0 - factor + factor * right", "factor * false_positives + right", MEANING),
    Mutant("meaning: a mu for every promise", "privlearn.accounting.meaning:gaussian_mu", "None if curve.failure_delta else gaussian_mu(PureCurve(curve.epsilon))", "gaussian_mu(PureCurve(curve.epsilon))", MEANING),
    Mutant("meaning: odds without the exception", "privlearn.accounting.meaning:max_odds.loss", "epsilon - math.log1p(-share)", "epsilon", MEANING),
    Mutant("meaning: runs add up as roots", "privlearn.accounting.meaning:_of_runs", "math.sqrt(times) * once", "once", MEANING),
    Mutant("meaning: a bought schema is free", "privlearn.release.base_certificate:BaseCertificate.meaning", "private_bounds_cost(self.private_bounds)", "None", MEANING),
    Mutant("meaning: rounded downwards", "privlearn.release.meaning:_UP", "rounding=ROUND_CEILING", "rounding='ROUND_FLOOR'", MEANING),
    Mutant("split: one seed is one split, whatever the order", "privlearn.data.parts:split", "_random_name() if fields['by'] == 'position' else ''", "''", PARTS),
    Mutant("split: labels of other people next to a part", "privlearn.data.parts:without_part", "y is not None", "False", PARTS),
    Mutant("split: a part passes as public", "privlearn.data.parts:require_public", "part_of(part) is not None", "False", PARTS),
    Mutant("job kinds: several numbers for one row", "privlearn.server.job_kinds.person_rows:PersonRows.count.read", "indices.shape != (table.num_rows,) or sizes.shape != (table.num_rows,)", "False", ("extension/test_job_kind_guest.py",)),
    Mutant("split: by the identifier under replace_one", "privlearn.data.parts:explain_refusal", "by == 'person' and relation.replaces", "False", PARTS),
    Mutant("split: by position where n is private", "privlearn.data.parts:explain_refusal", "by == 'position' and (not relation.count_is_public)", "False", PARTS),
    Mutant("split: a person's rows by themselves", "privlearn.data.parts:split", "schema.rows_per_person > 1", "False", PARTS),
    Mutant("split: a private number of records in the note", "privlearn.data.parts:split", """
        if relation.count_is_public:
            ...
    """, """
        if True:
            ...
    """, PARTS),
    Mutant("split: a part passes for the other", "privlearn.data.parts:Part.of_table", "part.name != name", "False", PARTS),
    Mutant("split: two splits of one data set", "privlearn.budget.reservation:record_split", "digest != split.digest", "False", PARTED),
    Mutant("split: the whole is free for parts", "privlearn.budget.totals:totals_for_part", "totals.get(WHOLE, nothing)", "nothing", PARTED),
    Mutant("split: the whole forgets parts", "privlearn.budget.totals:totals_for_part", "[part] if part else sorted((name for name in totals if name)) or [WHOLE]", "[part]", PARTED),
    Mutant("split: of any data set", "privlearn.budget.ledger:Ledger.of_part", "part.split.dataset != self.dataset", "False", PARTED),
    Mutant("split: any neighbours", "privlearn.budget.ledger:Ledger.of_part", "part.split.neighbours != self.rule().total.neighbours", "False", PARTED),
    Mutant("describe: products beyond 1", "privlearn.statistics.description.measuring:_products", "np.abs(products) if weights is None else np.abs(products) * weights", "2.0 * np.abs(products) if weights is None else np.abs(products) * weights", DESCRIBED),
    Mutant("describe: a person of many rows weighs many", "privlearn.statistics.description.measuring:_products", "np.abs(products) * weights", "np.abs(products)", DESCRIBED),
    Mutant("describe: a row counts twice", "privlearn.statistics.description.measuring:_products", "count((products < 0).astype(np.int64), 2, sizes)", "count((products < 0).astype(np.int64), 2, sizes) + count((products > 0).astype(np.int64), 2, sizes)", DESCRIBED),
    Mutant("describe: missing cells are forgotten", "privlearn.statistics.description.measuring:_cell_indices", "np.isnan(cells), bins + 1", "np.isnan(cells), -1", DESCRIBED),
    Mutant("describe: half of the price", "privlearn.statistics.description.measuring:describe", "request.guarantee, layout.mechanism.renyi", "Guarantee(epsilon / 2, delta, neighbours)", DESCRIBED),
    Mutant("describe: a cross table counts every row of a person", "privlearn.statistics.description.measuring:_cross", "count(np.where(has_both, row * columns + column, -1), rows * columns, weights)", "count(np.where(has_both, row * columns + column, -1), rows * columns)", DESCRIBED),
    Mutant("describe: a cross table counts rows twice", "privlearn.statistics.description.measuring:_cross", "count(np.where(has_both, row * columns + column, -1), rows * columns, weights)", "2.0 * count(np.where(has_both, row * columns + column, -1), rows * columns, weights)", DESCRIBED),
    Mutant("describe: a chi-square test without the noise", "privlearn.statistics.description.hypotheses:independence_test", "drawn + noise.draw(source, drawn.shape)", "drawn + 0.0 * noise.draw(source, drawn.shape)", DESCRIBED),
    Mutant("describe: a difference without the noise", "privlearn.statistics.description.hypotheses:tail_and_reach", "math.hypot(sampling, math.sqrt(noise.variance) * float(np.linalg.norm(coefficients)))", "sampling", DESCRIBED),
    Mutant("describe: tests of rows that cannot be joined", "privlearn.statistics.description.description:Description.tests", "self.certificate.mechanism.rows_per_person > 1", "False", DESCRIBED),
    Mutant("describe: an invalid correlation matrix", "privlearn.statistics.description.description:_nearest_valid", "np.maximum(values, 0.0)", "values", DESCRIBED),
    Mutant("describe: intervals of half the noise", "privlearn.statistics.description.description:Description._half_width", "self.unit * quantile * mechanism.scales[index]", "self.unit * quantile * mechanism.scales[index] / 2.0", DESCRIBED),
]  # fmt: skip
