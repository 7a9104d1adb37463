"""Private centring: a noisy mean of the rows and a noisy radius around it, released before a model is learnt.

Rows share a large common part that takes up their norm without informing a model; the signal is what varies. The
argument, and when centring helps: docs/theory/centring.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import check_positive, whole_number
from privlearn.guarantee import Relation
from privlearn.mechanisms.noise import GRID_BITS, add_gaussian
from privlearn.mechanisms.statistics.statistic import UNIT, Statistic
from privlearn.randomness import Randomness

_COUNTS = 6  # steps of the search for the radius, each with one noisy count
_RADII = tuple(2.0 ** (1.0 - step / 8.0) for step in range(2**_COUNTS))
"""From 2, which contains all rows for any mean, down to 0.0085; each count halves the remaining ones.

A radius that is too large loses what the mean gained, so the radii lie close: each is 8 % below the previous one."""


@dataclass(frozen=True, eq=False)
class Centre:
    """A released centre: rows are moved by the mean and scaled by the radius."""

    mean: Array
    radius: float


class Centres(Protocol):
    """Computes what a centring needs from the rows."""

    @abstractmethod
    def sum_of_rows(self) -> Array:
        """PRIVATE: return the weighted sum of the rows without the constant feature, exactly.

        Each term is cut towards 0 to multiples of 1 / UNIT, so that the terms of one person, whose weights add up to at
        most 1, are together no longer than one row.
        """

    @abstractmethod
    def rows_within(self, centre: Centre) -> float:
        """PRIVATE: return the weight of the rows within the radius of the mean, a multiple of 1 / UNIT, exactly."""


@dataclass(frozen=True)
class Centring(Statistic):
    """A mean and a radius, with Gaussian noise.

    **Theorem** (docs/theory/centring.md). Rows have d features and norm at most B. One person, with one row or with
    several that are averaged, moves the sum of the rows, cut to multiples of 2^-20, by at most
    S = 2 (B + sqrt(d) 2^-21), or half of that if none is replaced, and each of the 6 counts, for any earlier counts,
    by at most 1. So together they are dominated by one Gaussian mechanism of

        ratio^2 = (S / mean_noise_scale + sqrt(d) 2^-44)^2 + 6 / count_noise_scale^2,

    where 2^-44 covers rounding to the noise's grid; counts lie on theirs. Later mechanisms on the centred rows compose
    with it: the squares of ratios add up.

    Parameters
    ----------
    features : int
        d, without the constant feature.
    bound : float
        B.
    mean_noise_scale, count_noise_scale : float
        Standard deviations of the noise in each coordinate of the sum, and in each count; 0 without a guarantee.

    Examples
    --------
    >>> from privlearn.guarantee import get_relation
    >>> relation = get_relation("replace_one")
    >>> centring = Centring.with_ratios(10, 1.0, relation, mean=0.1, counts=0.05)
    >>> round(centring.mean_noise_scale, 3), round(centring.ratio(relation), 4)
    (20.0, 0.1118)
    """

    features: int
    bound: float
    mean_noise_scale: float
    count_noise_scale: float

    released: ClassVar[str] = "the mean and the radius of the rows"

    def __post_init__(self) -> None:
        check_positive(features=self.features, bound=self.bound)
        if self.mean_noise_scale or self.count_noise_scale:  # both are 0 without a guarantee
            check_positive(mean_noise_scale=self.mean_noise_scale, count_noise_scale=self.count_noise_scale)

    @classmethod
    def with_ratios(
        cls, features: int, bound: float, relation: Relation, *, mean: float, counts: float
    ) -> Centring:
        """Return the centring whose mean, and whose counts together, cost Gaussian mechanisms of these ratios."""
        return cls(
            features,
            bound,
            row_sum_sensitivity(relation, features, bound) / mean,
            math.sqrt(_COUNTS) / counts,
        )

    @property
    def numbers(self) -> int:
        return self.features + _COUNTS

    @property
    def radii(self) -> tuple[float, ...]:
        """Radii of which one is released, in decreasing order."""
        return tuple(radius * self.bound for radius in _RADII)

    def ratio(self, relation: Relation) -> float:
        mean = row_sum_sensitivity(relation, self.features, self.bound) / self.mean_noise_scale
        mean += math.sqrt(self.features) * 2.0**-GRID_BITS
        return math.hypot(mean, math.sqrt(_COUNTS) / self.count_noise_scale)

    def run(self, oracle: Centres, total: int, randomness: Randomness) -> Centre:
        """Touch the data: return the mean and the radius of about half of the rows, which may be released."""
        # The public N divides, not the number of rows: the latter may be private.
        noisy = _add_noise(oracle.sum_of_rows(), self.mean_noise_scale, randomness)
        mean = noisy / total
        # The smallest radius that contains half of the rows is among low to high - 1.
        low, high = 0, len(_RADII)
        for _ in range(_COUNTS):
            middle = (low + high) // 2
            # Rounded down, a weight that moves by at most 1 is a whole number that does.
            count = math.floor(oracle.rows_within(Centre(mean, self.radii[middle])))
            noisy_count = _add_noise(np.array([float(count)]), self.count_noise_scale, randomness)[0]
            low, high = (middle, high) if noisy_count >= total / 2.0 else (low, middle)
        return Centre(mean, self.radii[low])

    def to_dict(self) -> dict[str, Any]:
        return {
            "features": self.features,
            "bound": self.bound,
            "mean_noise_scale": self.mean_noise_scale,
            "counts": _COUNTS,
            "count_noise_scale": self.count_noise_scale,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Centring:
        scales = {name: float(record[name]) for name in ("bound", "mean_noise_scale", "count_noise_scale")}
        return cls(whole_number(record["features"], "features"), **scales)


def _add_noise(values: Array, scale: float, randomness: Randomness) -> Array:
    return add_gaussian(values, scale, randomness) if scale else values


def row_sum_sensitivity(relation: Relation, features: int, bound: float) -> float:
    """Return S: how far one person moves the sum of the rows."""
    return relation.gradients * (bound + math.sqrt(features) / (2.0 * UNIT))
