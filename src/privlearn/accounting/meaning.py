"""What a privacy curve means for an attacker: true and false positives, the equivalent Gaussian shift, the odds.

An attacker sees the output and tries to tell two neighbouring data sets apart. ``delta(epsilon)`` bounds, for every
real epsilon and every set of outputs, P(set) - e^epsilon Q(set) in both directions; the rest follows by duality
(docs/theory/meaning.md).
"""

from __future__ import annotations

import math

import numpy as np

from privlearn.accounting.curves import Curve, GaussianCurve, PureCurve
from privlearn.accounting.functions import minimum, normal_tail_point
from privlearn.accounting.release_curves import (
    ComposedCurve,
    ComposedPureCurve,
    EpsilonDeltaCurve,
    JointCurve,
)
from privlearn.arrays import Array

_CURVE_CELLS = 2000  # of the grid on which a curve is compared with a Gaussian one
_LINES, _AREA_CELLS = 100, 1000  # lines above the best tests, and rectangles below the lowest line
_PRECISION = 1e-6  # relative precision of mu and of the largest loss
_CANCELLED = 1e-12  # more than rounding takes from a difference of numbers up to 1
_SEARCH_PRECISION = 1e-5
"""Precision of a search for a minimum, relative to its interval."""


def best_true_positives(curve: Curve, false_positives: float) -> float:
    """Return the largest true positive rate of any attacker with this false positive rate.

    It is the minimum of e^epsilon false_positives + delta(epsilon) over all epsilon. The value at any epsilon is a
    bound, so an inexact search for the minimum is still rigorous.

    Examples
    --------
    At epsilon = 1 an attacker who accuses 1 % of the innocent identifies at most 1 % times e of the members.

    >>> round(best_true_positives(PureCurve(1.0), false_positives=0.01), 4)
    0.0272
    """

    def bound(epsilon: float) -> float:
        factor = math.exp(-abs(epsilon))
        right = float(curve.delta(abs(epsilon)))
        if epsilon >= 0:
            return false_positives / factor + right
        # The other direction bounds false positives by true ones; solved for the true positives.
        return factor * false_positives + 1.0 - factor + factor * right

    reach = min(curve.reach(), _MAX_EXPONENT)
    return min(max(minimum(bound, -reach, reach, xtol=2.0 * _SEARCH_PRECISION * reach), false_positives), 1.0)


def area_under_best_tests(curve: Curve) -> float:
    """Return a bound on the area under the curve (AUC) of any attacker, as `best_true_positives` bounds single tests.

    Each epsilon of a grid gives two lines above all tests, one for each direction: true positives are at most
    slope * false positives + height. The area below the lowest line is bounded by rectangles.
    """
    reach = min(curve.reach(), _MAX_EXPONENT)
    epsilons = reach * np.linspace(0.0, 1.0, _LINES) ** 2
    factors, deltas = np.exp(-epsilons), np.asarray(curve.delta(epsilons), dtype=np.float64)
    slopes = np.concatenate([1.0 / factors, factors])
    heights = np.concatenate([deltas, 1.0 - factors + factors * deltas])
    ends = np.arange(1, _AREA_CELLS + 1) / _AREA_CELLS
    best = (slopes[:, np.newaxis] * ends + heights[:, np.newaxis]).min(axis=0)
    return float(np.minimum(best, 1.0).mean())


def gaussian_mu(curve: Curve) -> float | None:
    """Return the smallest mu of Gaussian privacy (Dong, Roth and Su 2022) that the curve implies, or ``None``.

    Telling the two data sets apart is no easier than telling a draw of N(0, 1) from one of N(mu, 1). A mechanism that
    may fail completely with a positive probability has no mu. Under composition the squares of mu add up.

    Other curves are compared with the Gaussian one on a grid that is finer near 0. Both decrease, so comparing the left
    end of each cell of one with the right end of the other is safe; the result is too large by up to half a percent.
    Beyond the curve's reach, delta is at most about 1e-30.
    """
    if isinstance(curve, GaussianCurve):
        return curve.ratio
    if isinstance(curve, PureCurve):
        return 2.0 * normal_tail_point(-float(np.logaddexp(0.0, curve.epsilon)))
    if isinstance(curve, EpsilonDeltaCurve):
        return None if curve.failure_delta else gaussian_mu(PureCurve(curve.epsilon))
    if isinstance(curve, JointCurve):
        own, other = (
            gaussian_mu(curve.curve),
            gaussian_mu(EpsilonDeltaCurve(curve.epsilon, curve.other_delta)),
        )
        return None if own is None or other is None else math.hypot(own, other)
    if isinstance(curve, ComposedPureCurve):
        return _of_runs(gaussian_mu(PureCurve(curve.epsilon)), curve.times)
    if isinstance(curve, ComposedCurve):
        return _of_runs(gaussian_mu(curve.each), curve.times)
    return _dominating(curve)


def _of_runs(once: float | None, times: int) -> float | None:
    """Return the mu of several runs of a mechanism from that of one: squares add up."""
    return None if once is None else math.sqrt(times) * once


def _dominating(curve: Curve) -> float:
    """Return the smallest mu, on a grid, whose Gaussian curve is nowhere below this one."""
    points = curve.reach() * (np.arange(_CURVE_CELLS + 1) / _CURVE_CELLS) ** 2
    upper = np.minimum(sharpened_log_delta(curve, points)[:-1], math.log1p(-_PRECISION))

    def dominates(mu: float) -> bool:
        return bool(np.all(GaussianCurve(mu).log_delta(points[1:]) >= upper))

    high = curve.reach() / _CURVE_CELLS
    while not dominates(high):
        high *= 2.0
    low = high / 2.0
    while high > low * (1.0 + _PRECISION):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if dominates(middle) else (middle, high)
    return high


def sharpened_log_delta(curve: Curve, epsilons: Array) -> Array:
    """Return bounds on log delta at ascending epsilons of at least 0, each the best that the curve implies there.

    A sum of deltas may exceed 1 near epsilon 0. But ``delta(s)`` bounds, in both directions, all tests, so for t <= s
    also ``delta(t) <= 1 - (1 - delta(s)) (1 + e^t) / (1 + e^s)`` (docs/theory/meaning.md).

    >>> pure = PureCurve(1.0)  # its own curve is this bound
    >>> bool(np.allclose(np.exp(sharpened_log_delta(pure, np.array([0.0, 1.0]))), pure.delta(np.array([0.0, 1.0]))))
    True
    """
    own = np.asarray(curve.log_delta(epsilons), dtype=np.float64)
    with np.errstate(divide="ignore"):
        shares = np.log1p(-np.exp(np.minimum(own, 0.0))) - np.logaddexp(0.0, epsilons)
    best = np.maximum.accumulate(shares[::-1])[::-1] + np.logaddexp(0.0, epsilons)
    sharpened: Array = np.minimum(own, np.log(-np.expm1(np.minimum(best, 0.0)) + _CANCELLED))
    return sharpened


def best_advantage(curve: Curve) -> float:
    """Return a bound on the true positive rate less the false positive rate of every attacker."""
    epsilons = min(curve.reach(), _MAX_EXPONENT) * np.linspace(0.0, 1.0, _CURVE_CELLS) ** 2
    return min(float(np.exp(sharpened_log_delta(curve, epsilons)[0])), 1.0)


def max_odds(curve: Curve, exception: float) -> float:
    """Return the largest factor on an attacker's odds, except with a probability of at most ``exception``.

    Outputs whose loss exceeds t by more than -log(1 - q) contribute at least q of their probability to delta(t), so
    their probability is at most delta(t) / q. Without an exception (0) it is e to the largest loss, or infinite.
    """
    if not exception:
        max_loss = curve.reach() * (1.0 + _PRECISION)
        return math.inf if float(curve.delta(max_loss)) > 0 else _as_odds(max_loss)

    def loss(epsilon: float) -> float:
        share = float(curve.delta(epsilon)) / exception
        return epsilon - math.log1p(-share) if share < 1.0 else _MAX_EXPONENT + share

    return _as_odds(minimum(loss, 0.0, curve.reach(), xtol=_SEARCH_PRECISION * curve.reach()))


_MAX_EXPONENT = 700.0  # exp of more overflows


def _as_odds(loss: float) -> float:
    """Return exp(loss), or infinity where that overflows."""
    return math.exp(loss) if loss < _MAX_EXPONENT else math.inf
