"""The exponential mechanism: choose a public point z with probability proportional to exp(score(z)).

Over the rows of a finite net the draw is exact: the computed weights are dyadic rationals, and integers decide between
them, so only the weights' own rounding has to be paid for (`SELECTION_ROUNDING`). Over the unit ball the law is
continuous; it is combined from exact draws in floating point and rounded to a public grid of 2**-40, as the
norm-Gamma noise is, and the guarantee holds for the ideal law. See docs/theory/tdil.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privlearn.features.feature_map import shorten
from privlearn.mechanisms.noise import GAMMA_GRID_BITS, GRID_BITS
from privlearn.randomness import Randomness

Array = NDArray[np.float64]

SELECTION_ROUNDING = 2.0**-38
"""What rounding adds to the range of log-ratios of two neighbours' probabilities: each log-weight is computed to
within 2**-40 (700 roundings of 2**-52 at most, and numpy's exp), twice two of them meet in a ratio of ratios."""

_DEEPEST = -700.0  # exp of it is a normal number still; scores cut there move no faster than uncut ones
_MANTISSA_BITS = 53
_UNIT = math.ldexp(1.0, GRID_BITS)


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
    """A point z of the unit ball with density proportional to exp(rate |<z, vector>|).

    The ball of R^d is the shadow of the sphere of R^(d+2): Archimedes' theorem. There t = <z, vector / |vector|> has
    density (1 - t^2)^((d-1)/2) exp(rate |vector| |t|), on each half that of a von Mises-Fisher point's height, for
    which Wood (1994) has a rejection sampler; given t the rest is uniform on a sphere.
    """
    dimension, length = vector.size, float(np.linalg.norm(vector))
    axis = np.append(vector / length if length else np.eye(dimension)[0], (0.0, 0.0))
    concentration = rate * length
    centre = 2.0 * concentration / (dimension + 1 + math.hypot(dimension + 1, 2.0 * concentration))
    while True:
        normals = randomness.discrete_gaussian(_UNIT, dimension + 2) / _UNIT
        along = float(normals @ axis)
        proposed = along / float(np.linalg.norm(normals))
        tilt = 1.0 + centre * proposed
        height = (proposed + centre) / tilt
        excess = (dimension + 1) * (math.log(tilt) - (tilt - 1.0) / tilt)
        if height > 0.0 and _exponential(randomness) >= excess:
            break
    across = normals - along * axis
    point = height * axis + math.sqrt(1.0 - height**2) / float(np.linalg.norm(across)) * across
    return _on_grid(point[:dimension] if randomness.bits(1) else -point[:dimension])


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


def _exponential(randomness: Randomness) -> float:
    return float(abs(randomness.discrete_laplace(_UNIT, 1)[0]) / _UNIT)


def _on_grid(point: Array) -> Array:
    step = math.ldexp(1.0, -GAMMA_GRID_BITS)
    rounded = np.rint(point[np.newaxis] / step) * step
    shorten(rounded)
    return np.asarray(rounded[0])
