"""Histograms of one set of records with noise in every cell, for evaluations and descriptions.

The argument is in docs/theory/counts.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, GaussianCurve, PureCurve, gaussian_delta, gaussian_ratio
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, check_positive, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import Mechanism, register_mechanism
from privlearn.mechanisms.noise import ADD_NOISE, FLOATING_POINT, GRID_BITS, coordinate_deviation
from privlearn.randomness import Randomness

_GRID = 2.0**-GRID_BITS  # step of the noise's grid relative to its scale


@register_mechanism
@dataclass(frozen=True)
class NoisyCounts(Mechanism):
    """Several histograms ("tables") of the same records; their cells are public, a record is in one cell of each.

    **Theorem** (docs/theory/counts.md). A person owns at most m rows of weight 1, or any number of rows whose weights
    are at most 1 together. One person moves each table by at most S1 = 2 m in L1 and S2 = sqrt(2) m in L2 under
    ``replace_one``, and by m in both if no record is replaced. Table t has c_t cells and the share w_t of the budget,
    shares adding up to 1. Independent noise in every cell is, for all tables together,

    - Gaussian, of deviation scale / sqrt(w_t): one Gaussian mechanism, whose delta is exact (Balle and Wang 2018), of

          ratio^2 = sum_t (S2 sqrt(w_t) / scale + sqrt(c_t) 2^-44)^2;

    - Laplace, of scale scale / w_t: private at epsilon = sum_t (S1 w_t / scale + c_t 2^-44), delta = 0.

    2^-44 covers rounding weights to the noise's grid. Where delta > 0 allows both, the smaller noise is used.

    Parameters
    ----------
    guarantee : Guarantee
        For all tables together; an infinite epsilon adds no noise.
    records : int
        Public number of records, or of persons; the expected one where it is private.
    rows_per_person : int
        m.
    cells : tuple of int
        Number of cells of each table.
    shares : tuple of float
        Share of the budget of each table.
    noise : {"gaussian", "laplace"}
    noise_scale : float
        Noise scale of a table with the whole budget.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> mechanism = NoisyCounts.calibrate(Guarantee(1.0, 1e-6), records=1_000, rows_per_person=1, cells=[2, 3])
    >>> mechanism.noise, [round(deviation, 2) for deviation in mechanism.deviations]
    ('laplace', [5.66, 5.66])
    >>> noisy = mechanism.run([np.array([400.0, 600.0]), np.array([500.0, 300.0, 200.0])], SeededRandomness(0))
    >>> [table.round().tolist() for table in noisy]
    [[401.0, 598.0], [490.0, 286.0, 204.0]]
    """

    guarantee: Guarantee
    records: int
    rows_per_person: int
    cells: tuple[int, ...]
    shares: tuple[float, ...]
    noise: str
    noise_scale: float

    name = "counts"
    title = "noisy counts"
    page = "counts"
    calibrated_constants = ("noise_scale",)
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"tight": ("gaussian", "laplace")}
    uses_solver = False

    def __post_init__(self) -> None:
        self.check_combination(self.noise, "tight")
        for name, value in (("records", self.records), ("rows_per_person", self.rows_per_person)):
            whole_number(value, name)
        if not self.cells or len(self.cells) != len(self.shares):
            raise InvalidParameter(
                "cells and shares must have one number for each table, and there must be a table"
            )
        for cells, share in zip(self.cells, self.shares, strict=True):
            whole_number(cells, "cells")
            check_positive(share=share)
        if not math.isclose(math.fsum(self.shares), 1.0, rel_tol=2.0**-40):
            raise InvalidParameter("the shares of the tables must add up to 1")
        if self.guarantee.is_private:
            check_positive(noise_scale=self.noise_scale)
        elif self.noise_scale:
            raise InvalidParameter("noise_scale must be 0 where epsilon is infinite")
        super().__post_init__()

    @property
    def gaussian_numbers(self) -> int:
        return sum(self.cells) if self.noise == "gaussian" else 0

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee,
        *,
        records: int,
        rows_per_person: int,
        cells: Sequence[int],
        weights: Sequence[float] | None = None,
    ) -> NoisyCounts:
        """Return the mechanism with the least noise for a guarantee, from public parameters only.

        Parameters
        ----------
        weights : sequence of float, optional
            How the budget is divided among the tables, in any unit; by default evenly.
        """
        weights = [1.0] * len(cells) if weights is None else list(weights)
        check_positive(**{f"weight {index}": weight for index, weight in enumerate(weights)})
        whole = math.fsum(weights)
        shares = tuple(weight / whole for weight in weights)
        common: dict[str, Any] = {
            "guarantee": guarantee,
            "records": records,
            "rows_per_person": rows_per_person,
            "cells": tuple(cells),
            "shares": shares,
        }
        if not guarantee.is_private:
            return cls(**common, noise="laplace", noise_scale=0.0)
        scales = {"laplace": _laplace_scale(guarantee, rows_per_person, sum(cells))}
        if guarantee.delta > 0:
            scales["gaussian"] = _gaussian_scale(guarantee, rows_per_person, sum(cells))
        options = [cls(**common, noise=noise, noise_scale=scale) for noise, scale in scales.items()]
        # Both follow from public numbers, so the choice costs nothing.
        return min(options, key=lambda option: max(option.deviations))

    @property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation of the noise in one cell of each table."""
        return tuple(coordinate_deviation(self.noise, scale, 1) for scale in self.scales)

    @property
    def scales(self) -> tuple[float, ...]:
        """Scale of the noise in one cell of each table."""
        power = {"gaussian": 0.5, "laplace": 1.0}[self.noise]
        return tuple(self.noise_scale / share**power for share in self.shares)

    @property
    def covers(self) -> str:
        relation = self.guarantee.relation
        counted = "" if relation.count_is_public else " How many records there are is covered too."
        return (
            "Everything in this file that depends on the records: the noisy counts, and what follows from them. "
            f"{relation.count_label}, schema, cells and parameters are public and enter as such.{counted}"
        )

    @property
    def floating_point(self) -> str:
        return FLOATING_POINT[self.noise]

    def curve(self) -> Curve:
        """Return the privacy curve of all tables together."""
        return GaussianCurve(self._loss) if self.noise == "gaussian" else PureCurve(self._loss)

    def spends(self) -> Guarantee:
        epsilon, neighbours = self.guarantee.epsilon, self.guarantee.neighbours
        if not self.guarantee.is_private:
            return self.guarantee
        if self.noise == "laplace":
            return Guarantee(self._loss, 0.0, neighbours)
        delta = gaussian_delta(self._loss, epsilon)
        return Guarantee(epsilon, min(delta, math.nextafter(1.0, 0.0)), neighbours)

    def renyi(self, order: float) -> float:
        """Return the Renyi divergence: exact for Gaussian noise, Bun and Steinke's bound for Laplace noise."""
        concentrated = order * self._loss**2 / 2.0
        return concentrated if self.noise == "gaussian" else min(concentrated, self._loss)

    def constants(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "rows_per_person": self.rows_per_person,
            "cells": list(self.cells),
            "shares": list(self.shares),
            "noise_scale": self.noise_scale,
        }

    def run(self, tables: Sequence[Array], randomness: Randomness) -> list[Array]:
        """Touch the data: add noise to PRIVATE counts, made by `statistic.count`; the result may be released."""
        if tuple(table.size for table in tables) != self.cells:
            raise InvalidParameter(
                "the tables do not have the sizes that the noise was calibrated for. Calibrate it for these tables."
            )
        if not self.guarantee.is_private:
            return [np.array(table) for table in tables]
        add = ADD_NOISE[self.noise]
        return [add(table, scale, randomness) for table, scale in zip(tables, self.scales, strict=True)]

    @property
    def _loss(self) -> float:
        """Cost of all tables together: the ratio of Gaussian noise, or the epsilon of Laplace noise."""
        if not self.guarantee.is_private:
            return math.inf
        tables = list(zip(self.cells, self.scales, strict=True))
        if self.noise == "laplace":
            sensitivity = _sensitivity_l1(self.guarantee, self.rows_per_person)
            return math.fsum(sensitivity / scale + cells * _GRID for cells, scale in tables)
        sensitivity = _sensitivity_l2(self.guarantee, self.rows_per_person)
        return math.hypot(*(sensitivity / scale + math.sqrt(cells) * _GRID for cells, scale in tables))


def _sensitivity_l1(guarantee: Guarantee, rows: int) -> float:
    """Return how far one person moves one table in L1: each record in which neighbours differ has one cell."""
    return float(guarantee.relation.gradients * rows)


def _sensitivity_l2(guarantee: Guarantee, rows: int) -> float:
    return guarantee.relation.counts * rows


def _laplace_scale(guarantee: Guarantee, rows: int, cells: int) -> float:
    epsilon = guarantee.epsilon * (1.0 - MARGIN) - cells * _GRID
    return _sensitivity_l1(guarantee, rows) / check_remaining(epsilon)


def _gaussian_scale(guarantee: Guarantee, rows: int, cells: int) -> float:
    """Return the noise scale; by the triangle inequality rounding adds at most its own norm to the ratio."""
    ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
    return _sensitivity_l2(guarantee, rows) / check_remaining(ratio - math.sqrt(cells) * _GRID)


def check_remaining(budget: float) -> float:
    """Return the budget after rounding; raise InvalidParameter if nothing is left of it."""
    if budget <= 0:
        raise InvalidParameter("rounding this many counts costs more than epsilon. Pass a larger epsilon.")
    return budget
