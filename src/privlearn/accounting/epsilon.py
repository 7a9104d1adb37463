"""From noise to the epsilon it keeps, the other way round than `calibrate`."""

from __future__ import annotations

from scipy.optimize import brentq

from privlearn.accounting.curves import GaussianCurve


def gaussian_epsilon(ratio: float, delta: float) -> float:
    """Smallest epsilon, to nine digits, at which Gaussian noise of this sensitivity / scale has at most ``delta``."""
    curve = GaussianCurve(ratio)
    if curve.delta(0.0) <= delta:
        return 0.0
    return float(brentq(lambda epsilon: float(curve.delta(epsilon)) - delta, 0.0, curve.reach(), rtol=1e-9))
