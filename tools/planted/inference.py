"""Defects of regression tables: what one person moves, the noise, and the intervals that follow."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant, scaled

SCORED = ("mechanisms/test_scoring.py",)
SUMMED = ("statistics/regression/test_regression_rows.py",)
ESTIMATED = ("statistics/regression/test_estimates.py",)
PARSED = ("statistics/regression/test_regression_formula.py",)

_MECHANISM = "privlearn.mechanisms.statistics.scoring:NoisyScoring"
_ROWS = "privlearn.statistics.regression.rows:RegressionRows"
_ESTIMATES = "privlearn.statistics.regression.estimates"

# fmt: off
MUTANTS = [
    *scaled("scoring: noise", f"{_MECHANISM}.run_in_turn", "add_gaussian(exact, @scale, randomness)", SCORED),
    *scaled("scoring: scales", f"{_MECHANISM}.scales", "@self.noise_scale", SCORED),
    Mutant("scoring: a replaced vector moves once", f"{_MECHANISM}._sensitivity", "relation.gradients", "relation.counts", SCORED),
    Mutant("scoring: every sum has the whole budget", f"{_MECHANISM}.scales", "math.sqrt(share)", "1.0", SCORED),
    Mutant("scoring: pure privacy is sold", f"{_MECHANISM}.of_sums", "guarantee.delta == 0.0", "False", SCORED),
    Mutant("scoring: equal entries are counted once", "privlearn.mechanisms.statistics.scoring:pack_symmetric", "matrix[above] / _ROOT_HALF", "matrix[above]", SCORED),
    Mutant("regression: long rows keep their weight", f"{_ROWS}._at", "block.weights * _SHORTENED / np.maximum(lengths, 1.0)", "block.weights", SUMMED),
    Mutant("regression: residuals are not cut", f"{_ROWS}._sums_of_round", "np.clip(residuals / scale.residual_bound, -1.0, 1.0)", "residuals / scale.residual_bound", SUMMED),
    Mutant("regression: every row of a person counts", "privlearn.statistics.regression.rows:read_cells", "np.ones(len(cells)) if weights.counted is None else weights.counted", "np.ones(len(cells))", SUMMED),
    Mutant("regression: sums of floats", f"{_ROWS}._sums_of_round", "np.trunc(scores * UNIT)", "(scores * UNIT)", SUMMED),
    Mutant("regression: matrices of floats", "privlearn.statistics.regression.rows:_add_outer", "np.trunc(vectors * _FACTOR_UNIT)", "vectors * _FACTOR_UNIT", SUMMED),
    Mutant("regression: large counts keep their weight", "privlearn.statistics.regression.families:Poisson.information", "np.minimum(mean / scale.information_bound, 1.0)", "mean / scale.information_bound", SUMMED),
    Mutant("regression: rows with gaps count", f"{_ROWS}._blocks", "np.where(known & has_outcome, own, 0.0)", "own", SUMMED),
    Mutant("regression: every comparison of a record counts", f"{_ROWS}._blocks", "self._rows.weights[part] / self._copies", "self._rows.weights[part]", SUMMED),
    Mutant("regression: comparisons of a record are independent", f"{_ROWS}._sums_of_round", "scores.reshape(-1, self._copies, dimension).sum(axis=1)", "scores", ESTIMATED),
    Mutant("regression: rows of a person are independent", f"{_ROWS}._sums_of_round", "block.persons is None", "True", SUMMED),
    Mutant("estimates: the noise is forgotten", f"{_ESTIMATES}:Estimates._solution", "score_noise ** 2 * unit", "0.0 * unit", ESTIMATED),
    Mutant("estimates: eigenvalues stay apart", f"{_ESTIMATES}:without_repulsion", "values + shift", "values", ESTIMATED),
    Mutant("estimates: the last step counts with its noise", f"{_ESTIMATES}:expected_outer", "np.outer(mean, mean)", "np.outer(step, step)", ESTIMATED),
    Mutant("estimates: refused ones are charged", "privlearn.statistics.regression.measuring:estimate", "check_strength(layout, schema.count_noun, model.rate)", "", ESTIMATED),
    Mutant("design: atoms are always moved", "privlearn.statistics.regression.design:Standardised._moves", "np.where(self.design.movable, self.centres, 0.0)", "self.centres", PARSED),
]
