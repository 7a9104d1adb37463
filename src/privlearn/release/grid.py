"""The grid on which noisy numbers lie: a stated noise scale that is too large shows in their last bits."""

from __future__ import annotations

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import VerificationError


def on_grid(values: Array, step: float) -> Array:
    """Return the nearest multiples of the step; a number of 2^53 steps or more is one already."""
    small = np.abs(values) < 2.0**53 * step
    return np.where(small, np.rint(np.where(small, values, 0.0) / step) * step, values)


def check_grid(values: Array, step: float, what: str) -> None:
    """Refuse values that are not multiples of the step, a power of two."""
    steps = np.asarray(values) / step
    if not np.array_equal(steps, np.rint(steps)):
        raise VerificationError(
            f"the {what} do not lie on the grid of the stated noise: the stated scale is wrong"
        )
