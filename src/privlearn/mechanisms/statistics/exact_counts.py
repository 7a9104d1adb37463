"""Exact counts of rows in cells: sums of whole units, which do not depend on the order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array

UNIT = 2.0**20
"""Sums are made of whole multiples of 1 / UNIT, so that they are exact in any order, for fewer than 2^33 rows."""

_NO_CELL = -1


def count(cell: NDArray[np.int64], cells: int, weights: Array | None = None) -> Array:
    """PRIVATE: return the exact number of rows in each cell; rows in the cell -1 are not counted.

    Weights, which add up to at most 1 per person, are rounded down to multiples of 1 / UNIT.

    Examples
    --------
    >>> count(np.array([0, 2, 2, -1]), cells=3).tolist()
    [1.0, 0.0, 2.0]
    """
    # Down, never to the nearest: a person's weights must still add up to at most 1.
    units = np.full(len(cell), UNIT) if weights is None else np.floor(weights * UNIT)
    inside = cell > _NO_CELL
    return np.asarray(np.bincount(cell[inside], weights=units[inside], minlength=cells) / UNIT)
