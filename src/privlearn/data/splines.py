"""A number in [0, 1] as a bounded vector of piecewise linear functions of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spline_basis(position: NDArray[np.float64], knots: int) -> NDArray[np.float64]:
    """Hat functions on equally spaced knots, centred, and the position itself in [-1, 1].

    The hats can follow any shape; the straight column carries a trend at the price of one coefficient, which is what
    survives when the noise is large.

    Parameters
    ----------
    position : array of shape (n,)
        Numbers in [0, 1].
    knots : int
        Number of knots, at least 2.

    Returns
    -------
    array of shape (n, knots + 1)
    """
    left = np.minimum((position * (knots - 1)).astype(np.intp), knots - 2)
    fraction = position * (knots - 1) - left
    basis = np.full((len(position), knots + 1), -1.0 / knots)
    rows = np.arange(len(position))
    basis[rows, left] += 1.0 - fraction
    basis[rows, left + 1] += fraction
    basis[:, knots] = 2.0 * position - 1.0
    return basis
