"""Noisy Fisher scoring: the sums over records from which a generalised linear model and its intervals follow.

The argument, and what follows from the sums: docs/theory/inference.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from privlearn.accounting import MARGIN, gaussian_ratio
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.noise import GRID_BITS, add_gaussian
from privlearn.mechanisms.statistics.counts import NoisyCounts, check_remaining
from privlearn.randomness import Randomness

COUNTS, VECTOR, MATRIX = "counts", "vector", "matrix"

KIND_OF_SUM = {
    "counts": COUNTS,
    "residuals": COUNTS,
    "score": VECTOR,
    "information": MATRIX,
    "moments": MATRIX,
}
"""Kind of each sum that a file of estimates names."""

_ROOT_HALF = math.sqrt(0.5)


class RegressionSums(Protocol):
    """Computes the exact sums. Each sum may depend on the sums released before it."""

    @abstractmethod
    def sums(self, released: Sequence[Array]) -> Array:
        """PRIVATE: return the sum number ``len(released)``, flat; exact in any order of the records.

        The kind of the sum limits the contribution of one person. Counts: cells whose weights add up to at most 1.
        A vector: norm at most 1. A matrix: positive semidefinite, trace at most 1, packed by `pack_symmetric`.
        """


@register_mechanism
@dataclass(frozen=True)
class NoisyScoring(NoisyCounts):
    """Histograms, vectors and matrices, one after the other, each with Gaussian noise.

    **Theorem** (docs/theory/inference.md). One person moves a histogram by at most S = 1, a vector by at most S = 1 and
    a matrix by at most S = 1 in Frobenius norm; if a record is replaced, by sqrt(2), 2 and sqrt(2). Sum t has c_t
    numbers and the share w_t of the budget. With independent noise of deviation

        scale_t = S_t noise_scale / sqrt(w_t)

    in each number, all sums together are dominated by one Gaussian mechanism, even if each sum is chosen after the
    earlier ones are released. Its ratio is

        ratio^2 = sum_t (sqrt(w_t) / noise_scale + sqrt(c_t) 2^-44)^2,

    where 2^-44 covers rounding to the noise's grid.

    Parameters
    ----------
    kinds : tuple of {"counts", "vector", "matrix"}
        The kind of each sum. ``cells`` has the number of values of each sum, and ``shares`` its share of the squared
        ratio.

    Examples
    --------
    >>> mechanism = NoisyScoring.of_sums(Guarantee(1.0, 1e-6), 1_000, [("counts", 2, 1.0), ("vector", 3, 3.0)])
    >>> [round(scale, 2) for scale in mechanism.scales]
    [11.95, 9.76]
    """

    kinds: tuple[str, ...] = ()

    name = "scoring"
    title = "noisy Fisher scoring"
    page = "inference"
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"tight": ("gaussian",)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.kinds) != len(self.cells) or not set(self.kinds) <= {COUNTS, VECTOR, MATRIX}:
            raise InvalidParameter("kinds must state counts, vector or matrix for each sum")
        if self.rows_per_person != 1:
            raise InvalidParameter("rows_per_person must be 1. Name the column of persons in the schema")

    @classmethod
    def of_sums(cls, guarantee: Guarantee, records: int, sums: Sequence[tuple[str, int, float]]) -> Self:
        """Return the mechanism with the least noise for sums of (kind, numbers, share of the budget)."""
        kinds, cells, shares = zip(*sums, strict=True)
        common: dict[str, Any] = {
            "guarantee": guarantee,
            "records": records,
            "rows_per_person": 1,
            "cells": cells,
            "shares": tuple(share / math.fsum(shares) for share in shares),
            "kinds": kinds,
            "noise": "gaussian",
        }
        if not guarantee.is_private:
            return cls(**common, noise_scale=0.0)
        if guarantee.delta == 0.0:
            raise InvalidParameter(
                "estimates get Gaussian noise, which needs delta > 0. Pass delta=1e-6 (well below 1/n)."
            )
        ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
        rounding = math.sqrt(sum(cells)) * 2.0**-GRID_BITS
        return cls(**common, noise_scale=1.0 / check_remaining(ratio - rounding))

    @property
    def scales(self) -> tuple[float, ...]:
        """Standard deviation of the noise in each number of each sum."""
        pairs = zip(self.kinds, self.shares, strict=True)
        return tuple(self.noise_scale * self._sensitivity(kind) / math.sqrt(share) for kind, share in pairs)

    def run_in_turn(self, oracle: RegressionSums, randomness: Randomness) -> list[Array]:
        """Touch the data: return all sums with noise; they may be released."""
        released: list[Array] = []
        for cells, scale in zip(self.cells, self.scales, strict=True):
            exact = oracle.sums(released)
            if exact.shape != (cells,):
                raise InvalidParameter("a sum must have the size that the noise was calibrated for")
            released.append(add_gaussian(exact, scale, randomness) if scale else exact)
        return released

    def constants(self) -> dict[str, Any]:
        return super().constants() | {"kinds": list(self.kinds)}

    @property
    def _loss(self) -> float:
        if not self.guarantee.is_private:
            return math.inf
        sums = zip(self.kinds, self.cells, self.scales, strict=True)
        rounding = 2.0**-GRID_BITS
        return math.hypot(
            *(self._sensitivity(kind) / scale + math.sqrt(cells) * rounding for kind, cells, scale in sums)
        )

    def _sensitivity(self, kind: str) -> float:
        relation = self.guarantee.relation
        return float({COUNTS: relation.counts, VECTOR: relation.gradients, MATRIX: relation.moments}[kind])


def pack_symmetric(matrix: Array) -> Array:
    """Return the diagonal, then sqrt(2) times the entries above it: a vector of the matrix's Frobenius norm.

    >>> pack_symmetric(np.array([[1.0, 2.0], [2.0, 3.0]])).round(4).tolist()
    [1.0, 3.0, 2.8284]
    """
    above = np.triu_indices(len(matrix), 1)
    return np.concatenate([np.diag(matrix), matrix[above] / _ROOT_HALF])


def unpack_symmetric(packed: Array) -> Array:
    """Return the symmetric matrix: the inverse of `pack_symmetric`.

    >>> unpack_symmetric(np.array([1.0, 3.0, 0.0])).tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    size = (math.isqrt(8 * len(packed) + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = packed[size:] * _ROOT_HALF
    return np.asarray(matrix + matrix.T + np.diag(packed[:size]))
