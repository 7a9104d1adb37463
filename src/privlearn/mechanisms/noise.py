"""The only place that adds noise.

Laplace and Gaussian noise is drawn exactly, on a grid of width 2**-44 of its scale (a power of two): the protected
vector is rounded to the grid, an exact integer draw is added, and what leaves is a function of that sum alone, so no
gap between floating-point numbers depends on the data. The rounding raises the sensitivity by at most one grid step a
coordinate; the calibrations in `output` and `objective` pay for it.

The norm-Gamma vector of CMS11 is drawn exactly too, as real numbers (`exact_reals`): what leaves is the sum of the
protected vector and the real noise, rounded to a grid of 2**-40 of its scale. Rounding comes last, so it costs
nothing. See docs/theory/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter, shown
from privlearn.mechanisms.exact_reals import exactly, gamma, norm, normals, rounded
from privlearn.randomness import Randomness

Array = NDArray[np.float64]

GRID_BITS = 44
GAMMA_GRID_BITS = 40

_LEAST_SCALE = 1e-300  # its grid's step is a floating-point number still


def grid_step(scale: float, bits: int = GRID_BITS) -> float:
    """The power of two at most ``scale * 2**-bits``."""
    if not _LEAST_SCALE <= scale < math.inf:
        raise InvalidParameter(
            f"a noise scale must be finite and at least {_LEAST_SCALE:g}, not {shown(scale)}"
        )
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
    """Each row of ``values`` plus a vector b of density proportional to exp(-|b| / scale) (CMS11, eq. 7), rounded.

    **Theorem** (docs/theory/noise.md). b is a draw from the continuous law, known to as many digits as it takes to
    round the exact sum to the grid. So the release is post-processing of the sum itself: two rows at distance D cost
    epsilon = D / scale, and neither the grid nor floating point adds anything.
    """
    if not np.isfinite(values).all():
        raise InvalidParameter("noise can only be added to finite numbers")
    step = grid_step(scale, GAMMA_GRID_BITS)
    sums = [_rounded_sum(row.tolist(), scale, step, randomness) for row in np.atleast_2d(values)]
    return _from_grid((steps for row in sums for steps in row), step).reshape(values.shape)


def uniforms_of_norm_gamma(dimension: int) -> int:
    """How many uniform reals one vector is made of: one for each exponential, two for each two normals."""
    return dimension + 2 * math.ceil(dimension / 2)


def _rounded_sum(row: list[float], scale: float, step: float, randomness: Randomness) -> list[int]:
    """(row + b) / step, to the nearest integers. |b| is Gamma distributed, its direction a normal vector's."""
    dimension = len(row)

    def in_steps(uniforms: Sequence[arb]) -> list[int] | None:
        direction = normals(uniforms[dimension:])[:dimension]
        stretch = scale * gamma(uniforms[:dimension]) / norm(direction)
        return rounded([(value + stretch * part) / step for value, part in zip(row, direction, strict=True)])

    return exactly(uniforms_of_norm_gamma(dimension), randomness, in_steps)


def _add_integers(values: Array, step: float, draws: NDArray[np.int64]) -> Array:
    whole = np.rint(values / step).ravel().tolist()
    sums = (int(steps) + drawn for steps, drawn in zip(whole, draws.tolist(), strict=True))
    return _from_grid(sums, step).reshape(values.shape)


def _from_grid(sums: Iterable[int], step: float) -> Array:
    """Exact sums, in steps, as floating-point numbers: rounded once, a function of the sum alone."""
    numerator, denominator = step.as_integer_ratio()  # a power of two
    return np.array([steps * numerator / denominator for steps in sums])


def coordinate_deviation(noise: str, scale: float, dimension: int) -> float:
    """Standard deviation of one coordinate of a noise vector, and of its component along any unit vector."""
    return (
        scale * {"gaussian": 1.0, "laplace": math.sqrt(2.0), "norm_gamma": math.sqrt(dimension + 1.0)}[noise]
    )


ADD_NOISE = {"gaussian": add_gaussian, "laplace": add_laplace, "norm_gamma": add_norm_gamma}

FLOATING_POINT = {
    "gaussian": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "laplace": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "norm_gamma": "noise drawn exactly from its continuous law; the sum is rounded last, to a grid of 2^-40 of the "
    "noise scale, which costs nothing",
}
"""What certificates say of each sampler."""
