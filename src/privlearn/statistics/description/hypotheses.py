"""Tests of association between two columns, from released counts alone. Post-processing: no row is read.

P-values and intervals account for sampling and for the noise (docs/theory/describe.md, "Tests").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privlearn.arrays import Array
from privlearn.imports import special
from privlearn.statistics.evaluation.metrics import binned_variance
from privlearn.statistics.intervals import LEVEL, TOO_NOISY, Estimate, NoisyTable, nearest_counts

REPLICATES = 4000
_DRAWS = 20_000
_SEED = 20260118
"""Public and fixed, so that every reader of the counts computes the same p-values."""
_NORMAL = 1.959964
_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class HypothesisTest:
    """A test of the hypothesis that two columns are not associated.

    Parameters
    ----------
    method : str
    columns : tuple of str
    p_value : float
        NaN where the noise leaves nothing to test.
    statistic : str, optional
        Name of what ``estimate`` is: a difference or a correlation. Empty for a chi-square test.
    estimate : Estimate
        With an interval that accounts for sampling and noise; unknown for a chi-square test.
    """

    method: str
    columns: tuple[str, str]
    p_value: float
    statistic: str = ""
    estimate: Estimate = _UNKNOWN

    @property
    def is_known(self) -> bool:
        """Return False where the noise leaves nothing to test."""
        return math.isfinite(self.p_value)

    @property
    def p_text(self) -> str:
        """Return the p-value as journals print it."""
        value = self.p_value
        if not self.is_known:
            return "too noisy"
        return "p < 0.001" if value < 0.001 else f"p = {value:.3f}" if value < 0.1 else f"p = {value:.2f}"

    def __str__(self) -> str:
        name = f"{self.method}, {' and '.join(self.columns)}"
        if not (self.is_known and self.statistic):
            return f"{name}: {self.p_text}"
        ends = (f"{number:.3g}" for number in (self.estimate.value, self.estimate.lower, self.estimate.upper))
        value, lower, upper = ends
        return f"{name}: {self.statistic} {value} ({lower} to {upper}), {self.p_text}"


@dataclass(frozen=True, eq=False)
class CountNoise:
    """The noise in every cell of a table of counts."""

    distribution: str
    scale: float

    @property
    def variance(self) -> float:
        return self.scale**2 * (2.0 if self.distribution == "laplace" else 1.0)

    def draw(self, source: np.random.Generator, shape: tuple[int, ...]) -> Array:
        sample = source.laplace if self.distribution == "laplace" else source.normal
        return np.asarray(sample(0.0, self.scale, shape))

    def drowns(self, counts: Array) -> bool:
        """Return whether a total may be noise alone."""
        return not float(np.sum(counts)) > TOO_NOISY * math.sqrt(counts.size * self.variance)


def independence_test(columns: tuple[str, str], counts: Array, noise: CountNoise) -> HypothesisTest:
    """Return the chi-square test of a table of noisy counts, of shape (rows, columns).

    The statistic is the quadratic form of the residuals from independence in the inverse of their covariance, noise
    included. Its distribution is simulated: tables with the estimated margins, and noise of the known distribution.
    """
    test = HypothesisTest("chi-square test", columns, math.nan)
    if min(counts.shape) < 2 or noise.drowns(counts):
        return test
    total = float(counts.sum())
    first, second = (nearest_counts(counts.sum(axis=axis), total) / total for axis in (1, 0))
    expected = np.outer(first, second)
    project = np.kron(
        np.eye(len(first)) - np.outer(first, np.ones_like(first)),
        np.eye(len(second)) - np.outer(second, np.ones_like(second)),
    )
    covariance = (project * (total * expected.ravel() + noise.variance)) @ project.T
    inverse = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
    source = np.random.default_rng(_SEED)
    drawn = source.multinomial(max(round(total), 1), expected.ravel() / expected.sum(), size=REPLICATES)
    tables = drawn + noise.draw(source, drawn.shape)
    null = _distance_from_independence(tables.reshape(-1, *counts.shape), inverse)
    own = float(_distance_from_independence(counts[np.newaxis], inverse)[0])
    p_value = (1.0 + float(np.sum(null >= own))) / (1.0 + REPLICATES)
    return HypothesisTest(test.method, columns, p_value)


def _distance_from_independence(tables: Array, inverse: Array) -> Array:
    totals = np.maximum(tables.sum(axis=(1, 2)), 1.0)
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    residuals = (
        tables - rows[:, :, np.newaxis] * columns[:, np.newaxis, :] / totals[:, np.newaxis, np.newaxis]
    )
    flat = residuals.reshape(len(tables), -1)
    return np.asarray(np.einsum("bi,bi->b", flat @ inverse, flat))


def difference_test(
    columns: tuple[str, str], counts: Array, values: Array, noise: CountNoise, statistic: str
) -> HypothesisTest:
    """Return the test of equal means in two groups: ``counts`` has two rows, one for each group.

    Variances of the groups are not assumed to be equal (Welch 1947).

    ``values``: the number that each column of the table stands for. ``statistic``: name of the difference.
    """
    test = HypothesisTest("difference of two groups", columns, math.nan)
    if noise.drowns(counts[0]) or noise.drowns(counts[1]):
        return test
    totals = counts.sum(axis=1)
    means = counts @ values / totals
    moved = NoisyTable(counts[0], noise.distribution, noise.scale).cell_noise
    variances = np.maximum([float(binned_variance(row, values, moved)) for row in counts], 0.0)
    coefficients = np.concatenate(
        [sign * (values - mean) / total for sign, mean, total in zip((-1.0, 1.0), means, totals, strict=True)]
    )
    value = float(means[1] - means[0])
    sampling = math.sqrt(float(np.sum(variances / totals)))
    p_value, half = tail_and_reach(value, sampling, coefficients, noise)
    interval = Estimate(value, value - half, value + half)
    return HypothesisTest(test.method, columns, p_value, statistic, interval)


def tail_and_reach(
    value: float, sampling: float, coefficients: Array, noise: CountNoise
) -> tuple[float, float]:
    """Return the probability of an error beyond ``value`` in size, and the size that it exceeds with 5 %.

    The error is normal with the deviation ``sampling``, plus a linear function of the noise in cells.
    """
    if noise.distribution == "gaussian" or not noise.scale:
        deviation = math.hypot(sampling, math.sqrt(noise.variance) * float(np.linalg.norm(coefficients)))
        p_value = 2.0 * float(special.ndtr(-abs(value) / deviation)) if deviation else float(value == 0.0)
        return p_value, _NORMAL * deviation
    source = np.random.default_rng(_SEED)
    drawn = sum((factor * noise.draw(source, (_DRAWS,)) for factor in coefficients), start=np.zeros(_DRAWS))
    spread = max(sampling, 1e-12 * float(np.std(drawn)))
    tails = special.ndtr((drawn - abs(value)) / spread) + special.ndtr((-drawn - abs(value)) / spread)
    errors = np.abs(drawn + spread * source.standard_normal(_DRAWS))
    return float(np.mean(tails)), float(np.quantile(errors, LEVEL))
