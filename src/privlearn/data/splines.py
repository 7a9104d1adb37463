"""A number in [0, 1] as a bounded vector of piecewise linear functions of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spline_basis(position: NDArray[np.float64], knots: int) -> NDArray[np.float64]:
    """Hat functions on equally spaced knots, centred.

    Parameters
    ----------
    position : array of shape (n,)
        Numbers in [0, 1].
    knots : int
        Number of knots, at least 2.

    Returns
    -------
    array of shape (n, width)
        Rows of Euclidean norm at most 1: the two hats beside a position sum to 1, and taking 1/knots from
        every coordinate leaves (1 - f)^2 + f^2 - 1/knots for the squared norm.
    """
    left = np.minimum((position * (knots - 1)).astype(np.intp), knots - 2)
    fraction = position * (knots - 1) - left
    basis = np.full((len(position), knots + 1), -1.0 / knots)
    rows = np.arange(len(position))
    basis[rows, left] += 1.0 - fraction
    basis[rows, left + 1] += fraction
    basis[:, knots] = 2.0 * position - 1.0
    return basis
