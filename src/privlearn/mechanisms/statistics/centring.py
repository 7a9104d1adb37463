"""Private centring: a noisy mean of the rows and a noisy radius around it, bought before a model is learnt.

Rows share a large common part, of which a model learns nothing but which takes up their norm; what varies is the
signal. The argument, and when it pays: docs/theory/centring.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import check_positive, whole_number
from privlearn.mechanisms.noise import GRID_BITS, add_gaussian
from privlearn.randomness import Randomness
from privlearn.relation import Relation

UNIT = 2.0**20
"""Sums are made of whole multiples of 1 / UNIT, so that they are exact in any order, for fewer than 2^33 rows."""

_COUNTS = 6
_RADII = tuple(2.0 ** (1.0 - step / 8.0) for step in range(2**_COUNTS))
"""From 2, which holds all rows whatever the mean, down to 0.0085; each question halves what is left of them.

A radius larger than it need be takes back what the mean gained, so they lie close: each is 8 % below the last."""


@dataclass(frozen=True, eq=False)
class Centre:
    """Public, once it is released: rows are moved by the mean and measured by the radius."""

    mean: Array
    radius: float


class Centres(Protocol):
    """What can be asked for a centre."""

    @abstractmethod
    def sum_of_rows(self) -> Array:
        """PRIVATE: the sum of all rows, the constant feature left out, each rounded to multiples of 1 / UNIT."""

    @abstractmethod
    def rows_within(self, centre: Centre) -> int:
        """PRIVATE: how many rows are no farther from the mean than the radius."""


@dataclass(frozen=True)
class Centring:
    """A mean and a radius, with Gaussian noise.

    **Theorem** (docs/theory/centring.md). Rows have d features and norm at most B. One person moves the sum of the
    rows, each rounded to multiples of 2^-20, by at most S = 2 (B + sqrt(d) 2^-21), or half of that if none is replaced,
    and each of the 6 counts, whatever was asked before, by at most 1. So together they are dominated by one Gaussian
    mechanism of

        ratio^2 = (S / mean_noise_scale + sqrt(d) 2^-44)^2 + 6 / count_noise_scale^2,

    where the 2^-44 pays for rounding to the noise's grid; counts lie on theirs. What follows on the centred rows
    composes with it: ratios add up in squares.

    Parameters
    ----------
    features : int
        d, the constant feature left out.
    bound : float
        B.
    mean_noise_scale, count_noise_scale : float
        Standard deviations of the noise in each coordinate of the sum, and in each count.
    """

    features: int
    bound: float
    mean_noise_scale: float
    count_noise_scale: float

    def __post_init__(self) -> None:
        check_positive(
            features=self.features,
            bound=self.bound,
            mean_noise_scale=self.mean_noise_scale,
            count_noise_scale=self.count_noise_scale,
        )

    @classmethod
    def with_ratios(
        cls, features: int, bound: float, relation: Relation, *, mean: float, counts: float
    ) -> Centring:
        """The one whose mean, and whose counts together, cost Gaussian mechanisms of these ratios."""
        return cls(
            features,
            bound,
            row_sum_sensitivity(relation, features, bound) / mean,
            math.sqrt(_COUNTS) / counts,
        )

    @property
    def radii(self) -> tuple[float, ...]:
        """Among which one is released, from the largest down."""
        return tuple(radius * self.bound for radius in _RADII)

    def ratio(self, relation: Relation) -> float:
        """What it costs: the ratio of the Gaussian mechanism that dominates it."""
        mean = row_sum_sensitivity(relation, self.features, self.bound) / self.mean_noise_scale
        mean += math.sqrt(self.features) * 2.0**-GRID_BITS
        return math.hypot(mean, math.sqrt(_COUNTS) / self.count_noise_scale)

    def run(self, oracle: Centres, total: int, randomness: Randomness) -> Centre:
        """Touch the data: the mean, then the radius of about half of the rows. What is returned may leave."""
        noisy = add_gaussian(oracle.sum_of_rows(), self.mean_noise_scale, randomness)
        mean = noisy / total
        low, high = 0, len(_RADII)  # the last radius that holds half of the rows is among low to high - 1
        for _ in range(_COUNTS):
            middle = (low + high) // 2
            count = oracle.rows_within(Centre(mean, self.radii[middle]))
            found = add_gaussian(np.array([float(count)]), self.count_noise_scale, randomness)[0]
            low, high = (middle, high) if found >= total / 2.0 else (low, middle)
        return Centre(mean, self.radii[low])

    def to_dict(self) -> dict[str, Any]:
        """For a certificate."""
        return {
            "features": self.features,
            "bound": self.bound,
            "mean_noise_scale": self.mean_noise_scale,
            "counts": _COUNTS,
            "count_noise_scale": self.count_noise_scale,
        }


def centring_from_dict(record: Mapping[str, Any]) -> Centring:
    """Inverse of `Centring.to_dict`."""
    scales = {name: float(record[name]) for name in ("bound", "mean_noise_scale", "count_noise_scale")}
    return Centring(whole_number(record["features"], "features"), **scales)


def row_sum_sensitivity(relation: Relation, features: int, bound: float) -> float:
    """S: how far one person moves the sum of the rows."""
    return relation.gradients * (bound + math.sqrt(features) / (2.0 * UNIT))
