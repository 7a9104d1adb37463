"""The exponential mechanism: choose a public point z with probability proportional to exp(score(z)).

Over the rows of a finite net the draw is exact: the computed weights are dyadic rationals, and integers decide between
them, so only the weights' own rounding has to be paid for (`SELECTION_ROUNDING`). Over the unit ball the law is
continuous; a real point is drawn from it exactly (`exact_reals`) and then rounded to a public grid of 2**-40, which is
post-processing. See docs/theory/tdil.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privlearn.arrays import Array, shorten
from privlearn.heavy import flint
from privlearn.mechanisms.noise import exactly, gamma, norm, normals, rounded
from privlearn.randomness import Randomness

SELECTION_ROUNDING = 2.0**-38
"""What rounding adds to the range of log-ratios of two neighbours' probabilities: each log-weight is computed to
within 2**-40 (700 roundings of 2**-52 at most, and numpy's exp), twice two of them meet in a ratio of ratios."""

_DEEPEST = -700.0  # exp of it is a normal number still; scores cut there move no faster than uncut ones
_MANTISSA_BITS = 53
POINT_GRID_BITS = 40


def choose_row(scores: Array, randomness: Randomness) -> int:
    """An index, with probability exactly proportional to the computed exp(score - largest score).

    A weight is mantissa * 2**exponent, mantissa in [1/2, 1). Choose the exponent by the number of rows that have it,
    a row among these, and accept it with probability mantissa: two trials on average at most, integers throughout.
    """
    weights = np.exp(np.maximum(scores - np.max(scores), _DEEPEST))
    mantissas, exponents = np.frexp(weights)
    kinds, counts = np.unique(exponents, return_counts=True)
    shares = [int(count) << int(kind - kinds[0]) for kind, count in zip(kinds, counts, strict=True)]
    while True:
        rows = np.flatnonzero(exponents == kinds[_choose_share(shares, randomness)])
        row = int(rows[draw_below(len(rows), randomness)])
        if randomness.bits(_MANTISSA_BITS) < int(math.ldexp(mantissas[row], _MANTISSA_BITS)):
            return row


def choose_in_ball(vector: Array, rate: float, randomness: Randomness) -> Array:
    """A point z of the unit ball with density proportional to exp(rate |<z, vector>|), rounded to the grid.

    The ball of R^d is the shadow of the sphere of R^(d+2): Archimedes' theorem. There t = <z, vector / |vector|> has
    density (1 - t^2)^((d-1)/2) exp(rate |vector| |t|), on each half that of a von Mises-Fisher point's height, for
    which Wood (1994) has a rejection sampler; given t the rest is uniform on a sphere.
    """
    place, wanted = vector.tolist(), vector.size + 2

    def on_grid(uniforms: Sequence[flint.arb]) -> list[int] | None:
        point = propose_in_ball(place, rate, normals(uniforms[1:])[:wanted], gamma(uniforms[:1]))
        return None if point is None else rounded([value * 2**POINT_GRID_BITS for value in point])

    while True:
        steps = exactly(1 + 2 * math.ceil(wanted / 2), randomness, on_grid)
        if steps:
            point = np.ldexp(np.array([steps], dtype=float), -POINT_GRID_BITS)
            shorten(point)
            return np.asarray(point[0] if randomness.bits(1) else -point[0])


def propose_in_ball(
    vector: Sequence[float], rate: float, normal: Sequence[flint.arb], exponential: flint.arb
) -> list[flint.arb] | None:
    """The point of the half <z, vector> > 0 that a normal vector of d + 2 coordinates and an exponential draw lead to.

    Empty if it is refused; ``None`` if the balls do not tell.
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
    """A uniform draw from 0 to bound - 1, exactly."""
    while True:
        drawn = randomness.bits((bound - 1).bit_length())
        if drawn < bound:
            return drawn
