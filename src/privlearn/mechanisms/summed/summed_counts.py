"""Histograms of several holders' records as one noisy sum, for joint evaluations.

The argument is in docs/theory/counts.md, "Several holders".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, gaussian_ratio
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.statistics.counts import NoisyCounts, check_remaining
from privlearn.mechanisms.summed.summed import (
    FLOATING_POINT,
    MAX_RECORDS,
    Noise,
    NoisySum,
    Question,
    grid_ratio,
    other_parties,
    whose_records,
)

ROUNDING = 2.0**-20
"""Relative increase of the sensitivity by multiplying counts with the roots of the shares."""


@register_mechanism
@dataclass(frozen=True)
class SummedCounts(NoisyCounts):
    """All tables of all holders in one question: table t times sqrt(w_t), every coordinate with the same noise.

    **Theorem** (docs/theory/counts.md). Each holder sends its tables, table t times the root of its share w_t, as one
    vector of c coordinates. One person, whose records lie with one holder, moves the sum by at most
    S2 sqrt(w_1 + ... + w_T) = S2 (1 + 2^-20), rounding included. Gaussian noise of deviation scale in every coordinate
    of the sum, of which every holder adds a share, is one Gaussian mechanism of

        ratio = S2 (1 + 2^-20) / scale + sqrt(c) 2^-32.

    Parameters
    ----------
    parties : int
        Number of holders.
    noise_shares : int
        Number of honest, present holders needed for the guaranteed noise.
    parties_per_person : int
        h: number of holders that may have records of one person, m rows each: S2 counts h times.

    Examples
    --------
    >>> mechanism = SummedCounts.calibrate(
    ...     Guarantee(1.0, 1e-6), records=1_000, rows_per_person=1, cells=[2, 3], weights=[1, 1],
    ...     parties=3, noise_shares=2,
    ... )
    >>> round(mechanism.noise_scale, 2), [round(scale, 2) for scale in mechanism.scales]
    (5.97, [8.45, 8.45])
    """

    parties: int
    noise_shares: int
    parties_per_person: int = 1

    summed = "counts"
    """What is summed, in certificates."""
    name = "summed_counts"
    title = "noisy counts over a secure sum"
    calibrated_constants = ("noise_scale",)
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"tight": ("gaussian",)}

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.parties, "parties")
        whole_number(self.noise_shares, "noise_shares")
        whole_number(self.parties_per_person, "parties_per_person")
        if self.noise_shares > self.parties:
            raise InvalidParameter(f"noise_shares must be at most the number of parties, {self.parties}")
        limit = MAX_RECORDS // self.guarantee.relation.max_table_ratio
        if self.records * self.rows_per_person > limit:
            raise InvalidParameter(f"rounding is proven for at most {limit} rows. Count fewer.")

    @classmethod
    def calibrate(  # type: ignore[override]
        cls,
        guarantee: Guarantee,
        *,
        records: int,
        rows_per_person: int,
        cells: Sequence[int],
        weights: Sequence[float],
        parties: int,
        noise_shares: int,
        parties_per_person: int = 1,
    ) -> SummedCounts:
        if not guarantee.is_private or guarantee.delta == 0:
            raise InvalidParameter(
                "counts of several holders get Gaussian noise, which needs a finite epsilon and delta > 0. "
                "Set delta = 1e-6"
            )
        target = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
        ratio = check_remaining(target - grid_ratio(sum(cells)))
        whole = math.fsum(weights)
        draft = cls(
            guarantee,
            records,
            rows_per_person,
            tuple(cells),
            tuple(weight / whole for weight in weights),
            "gaussian",
            1.0,
            parties,
            noise_shares,
            parties_per_person,
        )
        return replace(draft, noise_scale=draft.sum_sensitivity / ratio)

    @property
    def covers(self) -> str:
        counted = (
            "" if self.guarantee.relation.count_is_public else " How many records there are is covered too."
        )
        return (
            f"Everything the coordinator sees: one noisy sum of {self.summed}, and so this file. It holds if "
            f"{self.noise_shares} of the {self.parties} parties each add their share of the noise, whoever else "
            "colludes with the coordinator or drops out, and if only the sum over all parties but the missing ones is "
            f"opened (secure sum). {other_parties(self, self.noise_shares)} "
            f"{whose_records(self.parties_per_person)} Number of parties and records, plan, "
            f"schema and cells are public and enter as such.{counted}"
        )

    @property
    def floating_point(self) -> str:
        return FLOATING_POINT[self.noise]

    @property
    def holders(self) -> tuple[int, int, int]:
        """Numbers of holders: all; those that must add their noise; those that may have records of one person."""
        return self.parties, self.noise_shares, self.parties_per_person

    @property
    def sum_sensitivity(self) -> float:
        """Sensitivity of the sum, rounding included."""
        return self.guarantee.relation.counts * self._rows_of_a_person * (1.0 + ROUNDING)

    @property
    def _rows_of_a_person(self) -> int:
        return self.rows_per_person * self.parties_per_person

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of all questions: one."""
        return ("counts",)

    def question(self, number: int, coefficients: Array | None = None) -> Question:
        """Return the one question."""
        if number != 0:
            raise InvalidParameter("there is one question, numbered 0")
        bound = self.records * self.rows_per_person * self.guarantee.relation.max_table_ratio
        noise = (Noise("gaussian", self.noise_scale),)
        return Question(0, self.kinds[0], sum(self.cells), bound * (1.0 + ROUNDING), noise)

    def answer(self, tables: Sequence[Array]) -> Array:
        """PRIVATE: return one holder's exact part of the sum, to which noise must be added."""
        if tuple(table.size for table in tables) != self.cells:
            raise InvalidParameter(
                "the tables do not have the sizes that the noise was calibrated for. Calibrate it for these tables."
            )
        return np.concatenate([root * table.ravel() for root, table in zip(self._roots, tables, strict=True)])

    def tables(self, answer: NoisySum) -> list[Array]:
        """Return the noisy tables of an opened sum."""
        parts = np.split(answer.vector, list(itertools.accumulate(self.cells))[:-1])
        return [part / root for part, root in zip(parts, self._roots, strict=True)]

    def in_sum(self, present: int, records: int) -> dict[str, Any]:
        """Public: return the numbers of holders and records in an opened sum, and its relative noise."""
        noise = math.sqrt(present / self.noise_shares)
        return {"parties": present, "records": records, "noise": noise}

    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        """Return the Renyi divergence of the given order of answers to such questions."""
        return self.renyi(order) if kinds else 0.0

    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        """Return the epsilon of answers to such questions, at the guarantee's delta."""
        return self.guarantee.epsilon if kinds else 0.0

    def epsilon_after(self, questions: int) -> float:
        """Return the epsilon spent after a number of questions."""
        return self.epsilon_of(self.kinds[:questions])

    def constants(self) -> dict[str, Any]:
        several = {"parties_per_person": self.parties_per_person} if self.parties_per_person > 1 else {}
        return super().constants() | {"parties": self.parties, "noise_shares": self.noise_shares} | several

    @property
    def _loss(self) -> float:
        return self.sum_sensitivity / self.noise_scale + grid_ratio(sum(self.cells))

    @property
    def _roots(self) -> tuple[float, ...]:
        return tuple(math.sqrt(share) for share in self.shares)
