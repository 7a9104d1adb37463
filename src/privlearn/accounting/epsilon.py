"""From noise to the epsilon it keeps, the other way round than `calibrate`."""

from __future__ import annotations

from scipy.optimize import brentq

from privlearn.accounting.curves import GaussianCurve


def gaussian_epsilon(ratio: float, delta: float) -> float:
    """Smallest epsilon at which Gaussian noise of this sensitivity / scale has at most ``delta``, rounded upwards."""
    curve = GaussianCurve(ratio)
    if curve.delta(0.0) <= delta:
        return 0.0
    reach = curve.reach()
    precision = 2.0**-40 * reach
    found = brentq(
        lambda epsilon: float(curve.delta(epsilon)) - delta, 0.0, reach, xtol=precision, rtol=2.0**-40
    )
    return float(found) + 4.0 * precision
