"""The only place that adds noise.

Laplace and Gaussian noise is drawn exactly, on a grid of width 2**-44 of its scale (a power of two): the protected
vector is rounded to the grid, an exact integer draw is added, and what leaves is a function of that sum alone, so no
gap between floating-point numbers depends on the data. The rounding raises the sensitivity by at most one grid step a
coordinate; the calibrations in `output` and `objective` pay for it. See docs/theory/noise.md.

The norm-Gamma vector of CMS11 has no exact sampler. It is combined from exact draws in floating point, and its sum
with the protected vector is rounded to a public grid of 2**-40 of its scale; certificates say so.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter
from privlearn.randomness import Randomness

Array = NDArray[np.float64]

GRID_BITS = 44
GAMMA_GRID_BITS = 40


def grid_step(scale: float, bits: int = GRID_BITS) -> float:
    """The power of two at most ``scale * 2**-bits``."""
    if not 0 < scale < math.inf:
        raise InvalidParameter(f"a noise scale must be finite and above 0, not {scale!r}")
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - bits)


def add_gaussian(values: Array, scale: float, randomness: Randomness) -> Array:
    """``values`` plus independent N(0, scale^2) noise on each coordinate, exactly sampled on its grid."""
    step = grid_step(scale)
    return _add_integers(values, step, randomness.discrete_gaussian(scale / step, values.size))


def add_laplace(values: Array, scale: float, randomness: Randomness) -> Array:
    """``values`` plus independent Laplace(scale) noise on each coordinate, exactly sampled on its grid."""
    step = grid_step(scale)
    return _add_integers(values, step, randomness.discrete_laplace(scale / step, values.size))


def add_norm_gamma(values: Array, scale: float, randomness: Randomness) -> Array:
    """Each row of ``values`` plus a vector b of density proportional to exp(-|b| / scale) (CMS11, eq. 7).

    |b| is Gamma distributed with the dimension as shape, a sum of exponentials; its direction is uniform, that of a
    Gaussian vector.
    """
    step = grid_step(scale, GAMMA_GRID_BITS)
    noisy = np.array([row + _norm_gamma(row.size, scale, randomness) for row in np.atleast_2d(values)])
    return (np.rint(noisy / step) * step).reshape(values.shape)


def _add_integers(values: Array, step: float, draws: NDArray[np.int64]) -> Array:
    # Both terms are exact multiples of the step; IEEE addition rounds their exact sum, which is post-processing.
    return np.rint(values / step) * step + draws.reshape(values.shape) * step


def _norm_gamma(dimension: int, scale: float, randomness: Randomness) -> Array:
    unit = math.ldexp(1.0, GRID_BITS)
    direction = randomness.discrete_gaussian(unit, dimension) / unit
    exponentials = np.abs(randomness.discrete_laplace(unit, dimension)) / unit
    return np.asarray(direction / np.linalg.norm(direction) * math.fsum(exponentials) * scale)


def coordinate_deviation(noise: str, scale: float, dimension: int) -> float:
    """Standard deviation of one coordinate of a noise vector, and of its component along any unit vector."""
    return (
        scale * {"gaussian": 1.0, "laplace": math.sqrt(2.0), "norm_gamma": math.sqrt(dimension + 1.0)}[noise]
    )


ADD_NOISE = {"gaussian": add_gaussian, "laplace": add_laplace, "norm_gamma": add_norm_gamma}
