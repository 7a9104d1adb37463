"""Noise, sampled exactly: the grid, the laws, and real numbers read to as many bits as rounding needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, shown
from privlearn.heavy import flint
from privlearn.randomness import Randomness

Answer = TypeVar("Answer")

FIRST_BITS = 128
"""Bits of each real that are drawn at once: for a rounding to 2^-40 more are needed about once in 2^70 coordinates."""

_GUARD_BITS = 64  # of the arithmetic, beyond those that are known


def exactly(
    count: int, randomness: Randomness, answer: Callable[[Sequence[flint.arb]], Answer | None]
) -> Answer:
    """What ``answer`` says of ``count`` independent reals, uniform between 0 and 1.

    It is asked with balls that contain them, and asked again with smaller ones as long as it says ``None``.
    """
    known, bits = [0] * count, 0
    while True:
        more = bits or FIRST_BITS
        known = [digits << more | randomness.bits(more) for digits in known]
        bits += more
        # Another thread may set the precision meanwhile: balls are larger then, or smaller, but true.
        with flint.ctx.workprec(bits + _GUARD_BITS):
            found = answer([_ball(digits, bits) for digits in known])
        if found is not None:
            return found


def gamma(uniforms: Sequence[flint.arb]) -> flint.arb:
    """A Gamma variable whose shape is their number: a sum of exponentials, -log of a product of uniforms."""
    return -math.prod(uniforms, start=flint.arb(1)).log()


def normals(uniforms: Sequence[flint.arb]) -> list[flint.arb]:
    """As many independent standard normal variables, an even number (Box and Muller 1958)."""
    found = []
    for first, second in zip(uniforms[::2], uniforms[1::2], strict=True):
        radius = (-2 * first.log()).sqrt()
        sine, cosine = (2 * second).sin_cos_pi()
        found += [radius * cosine, radius * sine]
    return found


def norm(vector: Sequence[flint.arb]) -> flint.arb:
    """Euclidean length."""
    return sum((value * value for value in vector), flint.arb(0)).sqrt()


def rounded(vector: Sequence[flint.arb]) -> list[int] | None:
    """The nearest integers; ``None`` if a ball does not tell which one is nearest."""
    whole = [(value + 0.5).floor().unique_fmpz() for value in vector]
    return None if None in whole else [int(value) for value in whole if value is not None]


def _ball(digits: int, bits: int) -> flint.arb:
    """All reals whose binary digits after the point begin with these."""
    return flint.arb((2 * digits + 1, -bits - 1), (1, -bits - 1))


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

    def in_steps(uniforms: Sequence[flint.arb]) -> list[int] | None:
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
