"""Cost of noise in the objective: CMS11 Lemmas 4 to 6 and Theorem 9, RA12 Theorem 5.1.

The objective is J(w) = (1/n) sum of losses + (Lambda/2) |w|^2 over rows of norm at most 1, and loss'' <= c. The
printed bounds are for |loss'| <= 1 and neighbours that replace one record, so that one record moves the sum of
gradients by at most 2; the sharp bounds take that number as ``gradient``. Each bound holds on every data set, except
with probability ``failure`` over the noise. The derivations are in docs/theory/bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats

from privlearn.accounting import ra12_noise_scale
from privlearn.errors import check_positive
from privlearn.papers.bounds.finite import check_counts, check_failure, sensitivity


@dataclass(frozen=True)
class Bound:
    """A bound as a paper prints it, and the sharp one.

    ``printed``: as the paper prints it. ``sharp``: the paper's argument with exact quantiles; proved and tested.
    """

    printed: float
    sharp: float


def gamma_length(shape: int, scale: float, failure: float) -> Bound:
    """Return the length of norm-Gamma noise, except with probability ``failure`` (CMS11 Lemma 5).

    **Lemma.** X with the Gamma(k, theta) distribution, k whole, is below ``k theta log(k / failure)``. True, by k
    exponential variables; the quantile itself is of order ``theta (k + sqrt(k))``.
    """
    check_counts(shape=shape)
    check_positive(scale=scale)
    check_failure(failure)
    return Bound(shape * scale * math.log(shape / failure), scale * float(stats.gamma.isf(failure, shape)))


def output_excess(
    epsilon: float,
    rows: int,
    regularization: float,
    dimension: int,
    smoothness: float,
    failure: float,
    *,
    gradient: float = 2.0,
) -> Bound:
    """Return the increase of J by output perturbation (CMS11 Lemma 4, Algorithm 1).

    **Lemma.** ``J(w + b) - J(w) <= (c + Lambda) |b|^2 / 2``, with ``|b|`` Gamma(d, 2 / (n Lambda epsilon)): print
    ``2 d^2 (c + Lambda) log^2(d / failure) / (n Lambda epsilon)^2``. (Its proof, by the mean value theorem, gives twice
    that, and equation 52 quotes four times; Taylor's formula gives the print.)
    """
    check_positive(epsilon=epsilon, smoothness=smoothness)
    length = gamma_length(dimension, sensitivity(rows, regularization) / epsilon, failure)
    steepest = (smoothness + regularization) / 2.0
    return Bound(steepest * length.printed**2, steepest * (gradient / 2.0 * length.sharp) ** 2)


def objective_excess(
    epsilon: float,
    rows: int,
    regularization: float,
    dimension: int,
    smoothness: float,
    failure: float,
    *,
    gradient: float = 2.0,
) -> Bound | None:
    """Return the increase of J by objective perturbation (CMS11 Lemma 6, Algorithm 2); ``None`` if it raises Lambda.

    **Lemma.** ``J(w_b) - J(w) <= |b|^2 / (2 n^2 Lambda)``, since the gradient of J at w_b is ``-b / n``, with ``|b|``
    Gamma(d, 2 / epsilon'), ``epsilon' = epsilon - 2 log(1 + c / (n Lambda))``. Print: ``4 d^2 log^2(d / failure) /
    (n^2 Lambda epsilon^2)``, **false where epsilon' is below epsilon / sqrt(2)**: the noise is drawn with epsilon'.
    """
    check_positive(epsilon=epsilon)
    left = _after_slack(epsilon, rows, regularization, smoothness)
    if left <= 0:
        return None
    flattest = 1.0 / (2.0 * rows**2 * regularization)
    printed = gamma_length(dimension, 2.0 / epsilon, failure).printed
    length = gamma_length(dimension, gradient / left, failure).sharp
    return Bound(2.0 * flattest * printed**2, flattest * length**2)


def gaussian_excess(
    noise_scale: float, rows: int, regularization: float, dimension: int, smoothness: float, failure: float
) -> Bound:
    """Return the increase of J by Gaussian noise in the objective that leaves Lambda unchanged (RA12 Theorem 5.1).

    **Theorem.** ``J(w_b) - J(w) <= (c + Lambda) T / (2 n^2 Lambda^2)``, T the upper ``failure`` quantile of ``|b|^2``,
    which is ``noise_scale^2`` times chi-squared with d degrees of freedom. The argument of `objective_excess` puts
    Lambda in place of ``c + Lambda``. (The print adds "over the draw of D"; it holds for each D.)
    """
    check_positive(noise_scale=noise_scale, smoothness=smoothness, regularization=regularization)
    check_counts(rows=rows, dimension=dimension)
    check_failure(failure)
    squared = noise_scale**2 * float(stats.chi2.isf(failure, dimension))
    sharp = squared / (2.0 * rows**2 * regularization)
    return Bound(sharp * (smoothness + regularization) / regularization, sharp)


def ra12_noise(
    epsilon: float,
    delta: float,
    rows: int,
    regularization: float,
    dimension: int,
    smoothness: float,
    *,
    gradient: float = 2.0,
) -> float | None:
    """Return sigma* of RA12 Algorithm 4; ``None`` if it raises Lambda, where Theorem 5.1 does not apply."""
    left = _after_slack(epsilon, rows, regularization, smoothness)
    return ra12_noise_scale(left, delta, gradient, dimension) if left > 0 else None


def tuning_excess(epsilon: float, candidates: int, failure: float) -> Bound:
    """Return how many more mistakes Algorithm 4's choice makes than the best candidate (CMS11 Theorem 9).

    **Theorem.** With weights ``exp(-epsilon z_i / 2)`` the choice is at most ``2 log(m / failure) / epsilon`` mistakes
    above the best. The worst case has one best candidate and m - 1 equal others, and ``2 log((m - 1)(1 - failure) /
    failure) / epsilon`` mistakes, which is reached.
    """
    check_positive(epsilon=epsilon)
    check_counts(candidates=candidates)
    check_failure(failure)
    odds = (candidates - 1) * (1.0 - failure) / failure
    return Bound(2.0 * math.log(candidates / failure) / epsilon, 2.0 * math.log(max(odds, 1.0)) / epsilon)


def _after_slack(epsilon: float, rows: int, regularization: float, smoothness: float) -> float:
    """Return what remains of epsilon after the papers' slack for the Jacobian."""
    check_positive(epsilon=epsilon, regularization=regularization, smoothness=smoothness)
    check_counts(rows=rows)
    return epsilon - 2.0 * math.log1p(smoothness / (rows * regularization))
