"""The exponential mechanism: choose a public point z with probability proportional to exp(rate * quality(z)).

Over the rows of a finite net the draw is exact: the computed weights are dyadic rationals, and integers decide between
them, so only the weights' own rounding is charged (`SELECTION_ROUNDING`). Over the unit ball the distribution is
continuous; `noise.draw_exactly` draws a real point, which is then rounded to a public grid of 2**-40. The rounding
is post-processing. See docs/theory/tdil.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, shorten
from privlearn.imports import flint
from privlearn.mechanisms.noise import draw_exactly, gamma, norm, normals, round_to_integers
from privlearn.randomness import Randomness

SELECTION_ROUNDING = 2.0**-38
"""Rounding error in the range of log-ratios of two neighbours' probabilities: `exponential_weights` computes the
logarithm of each weight to within 2**-40, and four of them meet in a ratio of ratios."""

_DEEPEST = -700.0  # exp of it is still a normal number; clipping does not increase the sensitivity of scores
_MANTISSA_BITS = 53  # of a double
POINT_GRID_BITS = 40  # points of the ball are rounded to multiples of 2^-40


def exponential_weights(qualities: NDArray[Any], rate: float, log_priors: Array | float = 0.0) -> Array:
    """Return exp(log_prior + rate * quality) for each quality, up to a common factor, the largest being 1.

    **Theorem.** Let the log-priors be public, within [-1400, 0], and u = 2**-53. Each weight above exp(-700) has a
    logarithm that is right to within 2**-40, for qualities of any size; the others are exp(-700).

    *Proof.* The largest quality is subtracted before anything else, with a relative error of u; so is the product with
    the rate. Where the sum matters, the product is at most 2100 in absolute value: an error of at most 4200 u. Adding
    the prior and subtracting the largest sum add 2100 u and 700 u, the exponential less than 4 u.
    """
    scores = log_priors + rate * (qualities - np.max(qualities))
    return np.asarray(np.exp(np.maximum(scores - np.max(scores), _DEEPEST)))


def choose_row(weights: Array, randomness: Randomness) -> int:
    """Return an index with probability exactly proportional to its weight, as `exponential_weights` computes them.

    A weight is mantissa * 2**exponent, mantissa in [1/2, 1). Choose the exponent by the number of rows that have it,
    a row among these, and accept it with probability mantissa: two trials on average at most, integers throughout.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> weights = exponential_weights(np.array([0.0, 1.0, 10.0]), rate=1.0)
    >>> [choose_row(weights, SeededRandomness(seed)) for seed in range(5)]
    [2, 2, 2, 2, 2]
    """
    mantissas, exponents = np.frexp(weights)
    kinds, counts = np.unique(exponents, return_counts=True)
    # Python's integers have no limit, so the shares are exact for any range of exponents.
    shares = [int(count) << int(kind - kinds[0]) for kind, count in zip(kinds, counts, strict=True)]
    while True:
        rows = np.flatnonzero(exponents == kinds[_choose_share(shares, randomness)])
        row = int(rows[draw_below(len(rows), randomness)])
        # The weight is this integer over 2^53, so the comparison is exact.
        if randomness.bits(_MANTISSA_BITS) < int(math.ldexp(mantissas[row], _MANTISSA_BITS)):
            return row


def choose_in_ball(vector: Array, rate: float, randomness: Randomness) -> Array:
    """Return a point z of the unit ball with density proportional to exp(rate |<z, vector>|), rounded to the grid.

    The ball of R^d is the projection of the sphere of R^(d+2) (Archimedes' theorem). On that sphere, the coordinate
    t = <z, vector / |vector|> has density (1 - t^2)^((d-1)/2) exp(rate |vector| |t|). On each half this is the height
    of a von Mises-Fisher point, for which Wood (1994) has a rejection sampler. Given t, the rest is uniform
    on a sphere.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> point = choose_in_ball(np.array([3.0, 4.0]), rate=2.0, randomness=SeededRandomness(0))
    >>> point.shape, bool(np.linalg.norm(point) <= 1.0)
    ((2,), True)
    """
    axis, normals_needed = vector.tolist(), vector.size + 2

    def on_grid(uniforms: Sequence[flint.arb]) -> list[int] | None:
        point = propose_in_ball(axis, rate, normals(uniforms[1:])[:normals_needed], gamma(uniforms[:1]))
        return None if point is None else round_to_integers([value * 2**POINT_GRID_BITS for value in point])

    while True:
        steps = draw_exactly(1 + 2 * math.ceil(normals_needed / 2), randomness, on_grid)
        # An empty list is a rejected proposal.
        if steps:
            point = np.ldexp(np.array([steps], dtype=float), -POINT_GRID_BITS)
            shorten(point)
            return np.asarray(point[0] if randomness.bits(1) else -point[0])


def propose_in_ball(
    vector: Sequence[float], rate: float, normal: Sequence[flint.arb], exponential: flint.arb
) -> list[flint.arb] | None:
    """Return the proposal of a normal vector of d + 2 coordinates and an exponential draw, with <z, vector> > 0.

    The list is empty if the proposal is rejected; ``None`` if the balls are too large to decide.
    """
    length, power = norm([flint.arb(value) for value in vector]), len(vector) + 1
    axis = (
        [value / length for value in vector] if any(vector) else [flint.arb(1)] + [flint.arb(0)] * (power - 2)
    )
    concentration = rate * length
    centre = 2 * concentration / (power + (power**2 + 4 * concentration**2).sqrt())
    along = sum((part * unit for part, unit in zip(normal, axis, strict=False)), flint.arb(0))
    tilt = 1 + centre * along / norm(normal)
    height = (along / norm(normal) + centre) / tilt
    excess = power * (tilt.log() - (tilt - 1) / tilt)
    if height <= 0 or exponential < excess:
        return []
    if not (height > 0 and exponential >= excess):
        return None
    across = [
        part - along * unit for part, unit in zip(normal, [*axis, flint.arb(0), flint.arb(0)], strict=True)
    ]
    stretch = (1 - height**2).sqrt() / norm(across)
    return [height * unit + stretch * part for unit, part in zip(axis, across, strict=False)]


def _choose_share(shares: list[int], randomness: Randomness) -> int:
    drawn = draw_below(sum(shares), randomness)
    for index, share in enumerate(shares):
        if drawn < share:
            return index
        drawn -= share
    raise AssertionError("a draw below the sum falls into one of the shares")


def draw_below(bound: int, randomness: Randomness) -> int:
    """Return an exact uniform draw from 0 to bound - 1."""
    while True:
        # Rejection, not a remainder: a remainder would favour small numbers.
        drawn = randomness.bits((bound - 1).bit_length())
        if drawn < bound:
            return drawn
