"""Statistical tests of every sampler: p-values of properties of its distribution, judged together.

Each test takes a source of randomness, draws, and returns p-values. A sampler passes if none of them is below its share
of the family-wise level, so a correct library fails with at most that probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad

from privlearn.arrays import Array
from privlearn.audit.empirical import AuditReport, Finding, judge
from privlearn.mechanisms.noise import add_gaussian, add_laplace, add_norm_gamma
from privlearn.mechanisms.search.selection import choose_in_ball, choose_row, exponential_weights
from privlearn.mechanisms.session.function_release import (
    FACTOR_JITTER,
    PATH_BITS,
    VALUE_JITTER,
    GaussianPaths,
)
from privlearn.randomness import Randomness, SecureRandomness

PValues = dict[str, float]

LEVEL = 1e-5
"""Probability that a correct library fails any of these tests."""

SCALE = 0.37  # not a power of two, so that the grid is finer than the bare minimum


def audit_samplers(
    randomness: Randomness | None = None,
    *,
    draws: int = 4000,
    level: float = LEVEL,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Test every sampler, one finding each.

    Parameters
    ----------
    randomness : Randomness, optional
        The secure source by default.
    draws : int, default=4000
        Approximate number of draws for each test.
    level : float, default=1e-5
        Probability that a correct library fails any of the tests.
    progress : callable, optional
        Called with the name of the next sampler.
    """
    source = SecureRandomness() if randomness is None else randomness
    tests = {name: test for name, test in SAMPLERS.items() if source.secure or name not in _SECURE_ONLY}
    findings = []
    for name, test in tests.items():
        if progress is not None:
            progress(name)
        findings.append(judge_p_values("sampler", name, test(source, draws), level / len(tests)))
    return AuditReport.of(f"samplers: {source.description}", findings)


def judge_p_values(check: str, what: str, p_values: PValues, level: float) -> Finding:
    """Return a finding that fails if the smallest p-value, times their number (Bonferroni), is too small."""
    worst = min(p_values, key=p_values.__getitem__)
    adjusted = min(1.0, p_values[worst] * len(p_values))
    return judge(
        check,
        f"{what}, {len(p_values)} tests of its distribution",
        adjusted > level,
        f"does not follow its distribution: {worst}",
        {"least p-value (adjusted)": adjusted, "level": level},
    )


def noise_p_values(noise: str, sample: Array, scale: float) -> PValues:
    """Return p-values of vectors, one per row, that should be noise of this kind and scale."""
    if noise == "gaussian":
        p_values = {"values": _follows(sample.ravel(), stats.norm(scale=scale))}
        p_values["scale"] = _two_sided(float(np.sum((sample / scale) ** 2)), stats.chi2(sample.size))
        return p_values | {"mean": _normal(float(np.sum(sample)) / (scale * math.sqrt(sample.size)))}
    if noise == "laplace":
        p_values = {"values": _follows(sample.ravel(), stats.laplace(scale=scale))}
        p_values["scale"] = _two_sided(float(np.sum(np.abs(sample))) / scale, stats.gamma(sample.size))
        return p_values | {"signs": _normal(float(np.sum(np.sign(sample))) / math.sqrt(sample.size))}
    norms = np.linalg.norm(sample, axis=1)
    p_values = {"norms": _follows(norms, stats.gamma(sample.shape[1], scale=scale))}
    p_values["scale"] = _two_sided(float(np.sum(norms)) / scale, stats.gamma(sample.size))
    return p_values | _direction_p_values(sample / norms[:, np.newaxis], norms)


def _direction_p_values(directions: Array, norms: Array) -> PValues:
    """Return p-values of unit vectors that should be uniform on the sphere and independent of the norms."""
    rows, dimension = directions.shape
    resultant = rows * dimension * float(np.sum(np.mean(directions, axis=0) ** 2))
    p_values = {"resultant direction": float(stats.chi2(dimension).sf(resultant))}
    if dimension < 3:
        return p_values
    half = (dimension - 1) / 2.0
    for axis, coordinate in enumerate(directions.T):
        p_values[f"coordinate {axis}"] = _follows(coordinate, stats.beta(half, half, -1.0, 2.0))
        p_values[f"norm against coordinate {axis}"] = float(stats.spearmanr(norms, coordinate).pvalue)
        product = directions[:, axis] * directions[:, axis - 1]  # its variance is 1 / (d (d + 2))
        p_values[f"product {axis}"] = _normal(
            float(np.mean(product)) * math.sqrt(rows * dimension * (dimension + 2))
        )
    return p_values


def _gaussian(randomness: Randomness, draws: int) -> PValues:
    return noise_p_values("gaussian", add_gaussian(np.zeros((draws, 1)), SCALE, randomness), SCALE)


def _laplace(randomness: Randomness, draws: int) -> PValues:
    return noise_p_values("laplace", add_laplace(np.zeros((draws, 1)), SCALE, randomness), SCALE)


def _norm_gamma(dimension: int) -> Callable[[Randomness, int], PValues]:
    def test(randomness: Randomness, draws: int) -> PValues:
        sample = add_norm_gamma(np.zeros((draws // dimension, dimension)), SCALE, randomness)
        return noise_p_values("norm_gamma", sample, SCALE)

    return test


def _discrete(distribution: str) -> Callable[[Randomness, int], PValues]:
    """Return a test at scales so small that it would notice rounded continuous draws."""

    def test(randomness: Randomness, draws: int) -> PValues:
        p_values = {}
        for scale in (1.0, 3.7):
            sample = getattr(randomness, f"discrete_{distribution}")(scale, draws)
            support = np.arange(-60, 61)
            exponents = (
                support**2 / (2.0 * scale**2) if distribution == "gaussian" else np.abs(support) / scale
            )
            weights = np.exp(-exponents)
            counts = np.array([np.count_nonzero(sample == k) for k in support])
            p_values[f"counts at scale {scale:g}"] = _counts(counts, draws * weights / weights.sum())
        return p_values

    return test


def _bits(randomness: Randomness, draws: int) -> PValues:
    chunks = np.bincount([randomness.bits(6) for _ in range(draws)], minlength=64)
    mantissas = np.array([randomness.bits(53) for _ in range(draws)])
    ones = [int(np.count_nonzero(mantissas >> position & 1)) for position in range(53)]
    fair = {f"bit {bit}": float(stats.binomtest(count, draws).pvalue) for bit, count in enumerate(ones)}
    return {"chunks of 6": float(stats.chisquare(chunks).pvalue)} | fair


def _choose_row(randomness: Randomness, draws: int) -> PValues:
    p_values = {}
    for scores in ([1.0, 0.0, -1.0, 0.5], [0.0, -3.0, 2.0, 2.0, -1.0, 1.99]):
        values = np.array(scores)
        weights = exponential_weights(values, 1.0)
        drawn = np.bincount(
            [choose_row(weights, randomness) for _ in range(draws // 2)], minlength=len(values)
        )
        p_values[f"{len(values)} rows"] = float(
            stats.chisquare(drawn, drawn.sum() * weights / weights.sum()).pvalue
        )
    return p_values


class HeightDistribution:
    """Distribution of |<z, u>| for z in the d-ball with density exp(k |<z, u>|).

    The slice at height t is a (d-1)-ball of radius sqrt(1 - t^2).
    """

    def __init__(self, dimension: int, concentration: float, knots: Array | None = None) -> None:
        self.dimension, self.concentration = dimension, concentration
        self.knots = np.linspace(0.0, 1.0, 401) if knots is None else knots
        pieces = [quad(self._height, a, b)[0] for a, b in zip(self.knots, self.knots[1:], strict=False)]
        self._sums = np.append(0.0, np.cumsum(pieces))

    def _height(self, t: float) -> float:
        # relative to t = 1: the largest exponent, so that nothing overflows
        return float((1.0 - t * t) ** ((self.dimension - 1) / 2) * math.exp(self.concentration * (t - 1.0)))

    def cdf(self, t: Array) -> Array:
        """Return the cumulative distribution function."""
        return np.asarray(np.interp(t, self.knots, self._sums / self._sums[-1]))


def _choose_in_ball(dimension: int) -> Callable[[Randomness, int], PValues]:
    def test(randomness: Randomness, draws: int) -> PValues:
        concentration, vector = 6.0, np.linspace(1.0, 3.0, dimension)  # neither an axis nor of length 1
        length = float(np.linalg.norm(vector))
        points = np.array(
            [choose_in_ball(vector, concentration / length, randomness) for _ in range(draws // 4)]
        )
        along = points @ (vector / length)
        across = np.linalg.norm(points - along[:, np.newaxis] * (vector / length), axis=1)
        # uniform in a (d-1)-ball: the radius to the power d - 1 is uniform, and independent of the height
        radii = (across / np.sqrt(1.0 - along**2)) ** (dimension - 1)
        return {
            "height": _follows(np.abs(along), HeightDistribution(dimension, concentration)),
            "side": _normal(float(np.sum(np.sign(along))) / math.sqrt(len(along))),
            "radius in the slice": _follows(radii, stats.uniform()),
            "radius against height": float(stats.spearmanr(radii, np.abs(along)).pvalue),
        }

    return test


def _gaussian_paths(randomness: Randomness, draws: int) -> PValues:
    """Test independent paths at near and distant points, drawn in two batches."""
    positions = np.array([0.0, 0.01, 0.5, 2.0])
    kernel = np.exp(-(np.subtract.outer(positions, positions) ** 2))
    paths = GaussianPaths(draws // 16)
    first = paths.draw(np.zeros((2, 0)), kernel[:2, :2], randomness)
    for step in first:
        paths.remember(step.row, step.draws)
    steps = [*first, *paths.draw(kernel[2:, :2], kernel[2:, 2:], randomness)]
    noises = np.ldexp(np.array([step.noises for step in steps], dtype=float), -PATH_BITS)
    covariance = kernel + (FACTOR_JITTER + VALUE_JITTER) * np.eye(len(positions))
    white = np.linalg.solve(np.linalg.cholesky(covariance), noises)
    pairs = [(i, j) for i in range(len(positions)) for j in range(i)]
    correlations = {f"points {i} and {j}": float(stats.pearsonr(white[i], white[j]).pvalue) for i, j in pairs}
    return noise_p_values("gaussian", white.T, 1.0) | correlations


SAMPLERS: dict[str, Callable[[Randomness, int], PValues]] = {
    "gaussian noise": _gaussian,
    "laplace noise": _laplace,
    "norm-Gamma noise, 1 dimension": _norm_gamma(1),
    "norm-Gamma noise, 3 dimensions": _norm_gamma(3),
    "discrete gaussian": _discrete("gaussian"),
    "discrete laplace": _discrete("laplace"),
    "uniform bits": _bits,
    "exponential mechanism over a net": _choose_row,
    "exponential mechanism over the ball, 2 dimensions": _choose_in_ball(2),
    "exponential mechanism over the ball, 5 dimensions": _choose_in_ball(5),
    "gaussian process, path by path": _gaussian_paths,
}
"""Every sampler of noise or choices."""

_SECURE_ONLY = ("discrete gaussian", "discrete laplace")
"""The seeded source rounds continuous draws; at these small scales that is another distribution."""


def _follows(sample: Array, distribution: Any) -> float:
    return float(stats.kstest(sample, distribution.cdf).pvalue)


def _two_sided(value: float, distribution: Any) -> float:
    return float(min(1.0, 2.0 * min(distribution.cdf(value), distribution.sf(value))))


def _normal(value: float) -> float:
    return _two_sided(value, stats.norm)


def _counts(counts: NDArray[np.int64], expected: Array) -> float:
    """Return the p-value of a chi-square test, with rare cells merged."""
    full = expected >= 10.0
    observed = np.append(counts[full], counts.sum() - counts[full].sum())
    merged = np.append(expected[full], counts.sum() - expected[full].sum())
    keep = merged > 1.0
    return float(
        stats.chisquare(observed[keep], merged[keep] * observed[keep].sum() / merged[keep].sum()).pvalue
    )
