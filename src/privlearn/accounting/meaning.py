"""What a privacy curve means for an attacker: true and false positives, the equivalent Gaussian shift, the odds.

An attacker looks at the output and tells two neighbouring data sets apart. ``delta(epsilon)`` bounds, for every real
epsilon and every set of outputs, P(set) - e^epsilon Q(set) in both directions, and all the rest is duality
(docs/theory/meaning.md).
"""

from __future__ import annotations

import math

import numpy as np

from privlearn.accounting.curves import Curve, GaussianCurve, PureCurve
from privlearn.accounting.functions import least, normal_tail_point
from privlearn.accounting.release_curves import ComposedCurve, ComposedPureCurve, CurveBeside, StatedCurve

_STEPS = 2000
_PRECISION = 1e-6
_STEP = 1e-5
"""Of a search for the least, over the interval."""


def best_true_positives(curve: Curve, false_positives: float) -> float:
    """The largest share of right alarms of any attacker whose share of false alarms is this.

    The least of e^epsilon false_positives + delta(epsilon) over all epsilon; the value at any epsilon is a bound, so
    the search for the least costs no rigour.
    """

    def bound(epsilon: float) -> float:
        factor = math.exp(-abs(epsilon))
        right = float(curve.delta(abs(epsilon)))
        if epsilon >= 0:
            return false_positives / factor + right
        return factor * false_positives + 1.0 - factor + factor * right  # the same in the other direction

    reach = min(curve.reach(), _LARGEST_EXPONENT)
    return min(max(least(bound, -reach, reach, xtol=2.0 * _STEP * reach), false_positives), 1.0)


def gaussian_mu(curve: Curve) -> float | None:
    """The smallest mu of Gaussian privacy (Dong, Roth and Su 2022) that the curve gives; ``None`` if it gives none.

    Telling the two data sets apart is no easier than telling a draw of N(0, 1) from one of N(mu, 1). A mechanism that
    may give itself away with a positive probability has no mu. Where mechanisms
    follow one another mu adds up in squares.

    Other curves are compared with the Gaussian one on a grid that is finer near 0. Between two places the curve is at
    most what it is at the first and the Gaussian one at least what it is at the second, so what is found is large
    enough, by up to about half a percent; beyond the reach no more than about 1e-30 is left.
    """
    if isinstance(curve, GaussianCurve):
        return curve.ratio
    if isinstance(curve, PureCurve):
        return 2.0 * normal_tail_point(-float(np.logaddexp(0.0, curve.epsilon)))
    if isinstance(curve, StatedCurve):
        return None if curve.stated_delta else gaussian_mu(PureCurve(curve.epsilon))
    if isinstance(curve, CurveBeside):
        own, other = gaussian_mu(curve.curve), gaussian_mu(StatedCurve(curve.epsilon, curve.other_delta))
        return None if own is None or other is None else math.hypot(own, other)
    if isinstance(curve, ComposedPureCurve):
        return _of_runs(gaussian_mu(PureCurve(curve.epsilon)), curve.times)
    if isinstance(curve, ComposedCurve):
        return _of_runs(gaussian_mu(curve.each), curve.times)
    return _dominating(curve)


def _of_runs(once: float | None, times: int) -> float | None:
    return None if once is None else math.sqrt(times) * once


def _dominating(curve: Curve) -> float:
    places = curve.reach() * (np.arange(_STEPS + 1) / _STEPS) ** 2
    most = np.minimum(curve.log_delta(places[:-1]), math.log1p(-_PRECISION))

    def dominates(mu: float) -> bool:
        return bool(np.all(GaussianCurve(mu).log_delta(places[1:]) >= most))

    high = curve.reach() / _STEPS
    while not dominates(high):
        high *= 2.0
    low = high / 2.0
    while high > low * (1.0 + _PRECISION):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if dominates(middle) else (middle, high)
    return high


def largest_odds(curve: Curve, exception: float) -> float:
    """By how much the output multiplies an attacker's odds at most, but for a probability of ``exception`` at most.

    Where the loss exceeds t by more than -log(1 - q), outputs count at least q in delta(t): so they have a probability
    of at most delta(t) / q. Without an exception (0) it is e to the largest loss, infinite if there is none.
    """
    if not exception:
        largest = curve.reach() * (1.0 + _PRECISION)
        return math.inf if float(curve.delta(largest)) > 0 else _as_odds(largest)

    def loss(epsilon: float) -> float:
        share = float(curve.delta(epsilon)) / exception
        return epsilon - math.log1p(-share) if share < 1.0 else _LARGEST_EXPONENT + share

    return _as_odds(least(loss, 0.0, curve.reach(), xtol=_STEP * curve.reach()))


_LARGEST_EXPONENT = 700.0


def _as_odds(loss: float) -> float:
    """What no number of the machine bounds is infinite."""
    return math.exp(loss) if loss < _LARGEST_EXPONENT else math.inf
