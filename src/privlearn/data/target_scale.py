"""Numbers to predict, between public bounds, and the units of [-1, 1] that a model learns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bounds = tuple[float, float]


def to_unit(values: Array, bounds: Bounds) -> Array:
    """Clamp to the bounds and scale to [-1, 1]."""
    lower, upper = bounds
    place = (np.clip(values, lower, upper) - lower) / (upper - lower)
    return np.clip(2.0 * place - 1.0, -1.0, 1.0)


def from_unit(units: Array, bounds: Bounds) -> Array:
    """Inverse of `to_unit`; units outside [-1, 1] become the bounds."""
    lower, upper = bounds
    place = (np.clip(units, -1.0, 1.0) + 1.0) / 2.0
    return np.clip(lower + (upper - lower) * place, lower, upper)
