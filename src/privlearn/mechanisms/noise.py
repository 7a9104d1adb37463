"""Exact sampling of noise: the grid, the distributions, and real numbers drawn to as many bits as rounding needs.

values -> multiples of a power of two (`grid_step`) -> plus exact integer noise -> floats, rounded once
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, preview
from privlearn.guarantee import Guarantee
from privlearn.imports import flint
from privlearn.randomness import Integers, Randomness

Answer = TypeVar("Answer")

FIRST_BITS = 128
"""Bits of each real that are drawn at once: for a rounding to 2^-40 more are needed about once in 2^70 coordinates."""

_GUARD_BITS = 64  # of the arithmetic, beyond the drawn ones


def draw_exactly(
    count: int, randomness: Randomness, answer: Callable[[Sequence[flint.arb]], Answer | None]
) -> Answer:
    """Draw ``count`` independent reals, uniform between 0 and 1, and return the result of ``answer`` for them.

    ``answer`` is called with balls (intervals) that contain the reals. As long as it returns ``None``, more bits of the
    same reals are drawn, and it is called again with smaller balls.
    """
    known, bits = [0] * count, 0
    while True:
        more = bits or FIRST_BITS
        # The digits drawn so far stay: a real is one infinite string of bits, read only as far as the answer needs it.
        known = [digits << more | randomness.bits(more) for digits in known]
        bits += more
        # Another thread may change the precision: then balls are larger or smaller, but still contain the reals.
        with flint.ctx.workprec(bits + _GUARD_BITS):
            result = answer(_balls(known, bits))
        if result is not None:
            return result


def gamma(uniforms: Sequence[flint.arb]) -> flint.arb:
    """Return a Gamma variable of shape len(uniforms): a sum of exponentials, -log of a product of uniforms."""
    return -math.prod(uniforms, start=flint.arb(1)).log()


def normals(uniforms: Sequence[flint.arb]) -> list[flint.arb]:
    """Return an even number of independent standard normal variables (Box and Muller 1958)."""
    values = []
    for first, second in zip(uniforms[::2], uniforms[1::2], strict=True):
        radius = (-2 * first.log()).sqrt()
        sine, cosine = (2 * second).sin_cos_pi()
        values += [radius * cosine, radius * sine]
    return values


def norm(vector: Sequence[flint.arb]) -> flint.arb:
    """Return the Euclidean norm."""
    return sum((value * value for value in vector), flint.arb(0)).sqrt()


def round_to_integers(vector: Sequence[flint.arb]) -> list[int] | None:
    """Return the nearest integers; ``None`` if a ball does not determine one."""
    # A ball that straddles a boundary has no unique floor; more bits of the same reals then decide.
    whole = [(value + 0.5).floor().unique_fmpz() for value in vector]
    return None if None in whole else [int(value) for value in whole if value is not None]


def _balls(known: Sequence[int], bits: int) -> list[flint.arb]:
    """Return balls of all reals whose binary digits after the point begin with the known ones.

    An integer times a power of two, plus a ball of one digit's width: faster than building each ball from a pair.
    """
    unit, width = flint.arb((1, -bits)), flint.arb((1, -bits - 1), (1, -bits - 1))
    return [flint.arb(digits) * unit + width for digits in known]


GRID_BITS = 44
"""Gaussian and Laplace noise of a scale is drawn on multiples of a power of two, about 2^-44 of the scale."""
GAMMA_GRID_BITS = 40
"""Norm-Gamma noise is drawn as real numbers; its sum with the value is rounded to about 2^-40 of the scale."""

_HALF_RANGE = 2.0**62  # of 64-bit integers
_MAX_FAST_STEP = 2.0**900  # times any 64-bit integer, a double
_MIN_SCALE = 1e-300  # the step of its grid is still a floating-point number


def grid_step(scale: float, bits: int = GRID_BITS) -> float:
    """Return the largest power of two that is at most ``scale * 2**-bits``."""
    if not _MIN_SCALE <= scale < math.inf:
        raise InvalidParameter(
            f"a noise scale must be finite and at least {_MIN_SCALE:g}, not {preview(scale)}"
        )
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - bits)


def check_gaussian_numbers(numbers: int, guarantee: Guarantee) -> None:
    """Raise InvalidParameter for more numbers than the margin of the calibrations covers.

    The noise is discrete, while the theorems assume continuous noise.

    **Lemma** (docs/theory/noise.md). Replacing continuous noise on d numbers by discrete noise on its grid costs less
    than `MARGIN` of epsilon and of delta if d (epsilon + log(1 / delta) + log d + 60) <= 2^60 min(epsilon, 1).
    """
    if not numbers or not guarantee.is_private or guarantee.delta == 0.0:  # the calibrations refuse delta = 0
        return
    cut = guarantee.epsilon - math.log(guarantee.delta) + math.log(numbers) + 60.0
    if numbers * cut > 2.0**60 * min(guarantee.epsilon, 1.0):
        raise InvalidParameter(
            f"the guarantee of Gaussian noise on {numbers} numbers is not proven for such a small epsilon or delta. "
            "Use fewer columns, or a larger epsilon."
        )


def add_gaussian(values: Array, scale: float, randomness: Randomness) -> Array:
    """Return ``values`` plus independent N(0, scale^2) noise on each coordinate, exactly sampled on its grid.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> add_gaussian(np.zeros(3), 2.0, SeededRandomness(0)).round(2).tolist()
    [0.25, -0.26, 1.28]
    """
    step = grid_step(scale)
    return _add_integers(values, step, randomness.discrete_gaussian(scale / step, values.size))


def add_laplace(values: Array, scale: float, randomness: Randomness) -> Array:
    """Return ``values`` plus independent Laplace(scale) noise on each coordinate, exactly sampled on its grid.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> add_laplace(np.zeros(3), 2.0, SeededRandomness(0)).round(2).tolist()
    [0.64, -1.23, -5.0]
    """
    step = grid_step(scale)
    return _add_integers(values, step, randomness.discrete_laplace(scale / step, values.size))


def add_norm_gamma(values: Array, scale: float, randomness: Randomness) -> Array:
    """Return each row plus a vector b of density proportional to exp(-|b| / scale) (CMS11, eq. 7), rounded.

    **Theorem** (docs/theory/noise.md). b is drawn from the continuous distribution, to as many digits as rounding the
    exact sum to the grid needs. So the result is post-processing of the sum itself: two rows at distance D cost
    epsilon = D / scale, and neither the grid nor floating point adds anything.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> add_norm_gamma(np.zeros((1, 3)), 2.0, SeededRandomness(0)).round(2).tolist()
    [[-0.04, -3.5, 4.31]]
    """
    if not np.isfinite(values).all():
        raise InvalidParameter("noise can only be added to finite numbers")
    step = grid_step(scale, GAMMA_GRID_BITS)
    sums = [norm_gamma_steps(row.tolist(), scale, step, randomness) for row in np.atleast_2d(values)]
    return _from_grid(np.array([steps for row in sums for steps in row], object), step).reshape(values.shape)


def uniforms_of_norm_gamma(dimension: int) -> int:
    """Return how many uniform reals one vector needs: one per exponential, two per pair of normals."""
    return dimension + 2 * math.ceil(dimension / 2)


def norm_gamma_steps(row: list[float], scale: float, step: float, randomness: Randomness) -> list[int]:
    """Return (row + b) / step, rounded to the nearest integers; |b| is Gamma distributed, its direction uniform."""
    dimension = len(row)

    def in_steps(uniforms: Sequence[flint.arb]) -> list[int] | None:
        # A normal vector has a uniform direction; its length is replaced by one from the other reals.
        direction = normals(uniforms[dimension:])[:dimension]
        stretch = scale * gamma(uniforms[:dimension]) / norm(direction)
        return round_to_integers(
            [(value + stretch * part) / step for value, part in zip(row, direction, strict=True)]
        )

    return draw_exactly(uniforms_of_norm_gamma(dimension), randomness, in_steps)


def _add_integers(values: Array, step: float, draws: Integers) -> Array:
    """Return values / step, rounded to integers, plus ``draws``; exact except for one rounding at the end.

    Dividing by a power of two is exact, and two integers below 2^62 have a sum that 64 bits hold. Others are added as
    Python integers.
    """
    if not np.isfinite(values).all():
        raise InvalidParameter("noise can only be added to finite numbers")
    # Values and noise lie on one grid, so their sum has no low bits that could reveal the value (Mironov 2012).
    with np.errstate(over="ignore"):
        whole = np.rint(values.ravel() / step)
    if draws.dtype == np.int64 and _below(whole, _HALF_RANGE) and _below(draws, _HALF_RANGE):
        sums = whole.astype(np.int64) + draws
    else:
        exact = (round(Fraction(value) / Fraction(step)) for value in values.ravel().tolist())
        sums = np.array([steps + drawn for steps, drawn in zip(exact, draws.tolist(), strict=True)], object)
    return _from_grid(sums, step).reshape(values.shape)


def _from_grid(sums: Integers, step: float) -> Array:
    """Return exact sums, in steps, as floating-point numbers: rounded once, a function of the sum alone.

    A double times a power of two is exact, since a product that is a multiple of ``step`` needs no more digits.
    """
    if sums.dtype == np.int64 and step < _MAX_FAST_STEP:
        return sums.astype(np.float64) * step
    numerator, denominator = step.as_integer_ratio()  # a power of two
    return np.array([steps * numerator / denominator for steps in sums.tolist()], dtype=np.float64)


def _below(numbers: NDArray[Any], bound: float) -> bool:
    return bool(np.all((-bound < numbers) & (numbers < bound)))


def coordinate_deviation(noise: str, scale: float, dimension: int) -> float:
    """Return the standard deviation of one coordinate of a noise vector, and of its component along any unit vector."""
    return (
        scale * {"gaussian": 1.0, "laplace": math.sqrt(2.0), "norm_gamma": math.sqrt(dimension + 1.0)}[noise]
    )


def step_of(noise: str, scale: float) -> float | None:
    """Return the step of the grid that noisy values lie on; ``None`` if there is no noise."""
    return grid_step(scale, GAMMA_GRID_BITS if noise == "norm_gamma" else GRID_BITS) if scale else None


ADD_NOISE = {"gaussian": add_gaussian, "laplace": add_laplace, "norm_gamma": add_norm_gamma}

FLOATING_POINT = {
    "gaussian": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "laplace": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "norm_gamma": "noise drawn exactly from its continuous distribution; the sum is rounded last, to a grid of 2^-40 "
    "of the noise scale, which costs nothing",
}
"""Statements of certificates on each sampler."""
