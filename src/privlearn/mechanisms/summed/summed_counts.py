"""Histograms of several holders' records, as one noisy sum: what a joint evaluation is made of.

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
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.mechanisms.summed.summed import (
    MOST_RECORDS,
    Noise,
    NoisySum,
    Question,
    SummedMechanism,
    grid_ratio,
    whose_records,
)

ROUNDING = 2.0**-20
"""What multiplying counts by the roots of the shares adds to the sensitivity, relative to it."""


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
        How many honest, present holders are enough for the promised noise.
    parties_per_person : int
        h: how many holders may have records of one person, m rows each: S2 counts h times.
    """

    parties: int
    noise_shares: int
    parties_per_person: int = 1

    summed: ClassVar[str] = "counts"
    """What is summed, in words."""
    name: ClassVar[str] = "summed_counts"
    title: ClassVar[str] = "noisy counts over a secure sum"
    chosen_constants: ClassVar[tuple[str, ...]] = ("noise_scale",)
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"tight": ("gaussian",)}

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.parties, "parties")
        whole_number(self.noise_shares, "noise_shares")
        whole_number(self.parties_per_person, "parties_per_person")
        if self.noise_shares > self.parties:
            raise InvalidParameter(f"noise_shares must be at most the number of parties, {self.parties}")
        largest = MOST_RECORDS // self.guarantee.relation.largest_table
        if self.records * self.rows_per_person > largest:
            raise InvalidParameter(f"rounding is proven for at most {largest} rows: count fewer")

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
        """The least noise that keeps the promise. Looks at public facts only."""
        if not guarantee.is_private or guarantee.delta == 0:
            raise InvalidParameter(
                "counts of several holders get Gaussian noise, which needs a finite epsilon and delta > 0: "
                "say delta = 1e-6"
            )
        target = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
        left = target - grid_ratio(sum(cells))
        if left <= 0:
            raise InvalidParameter(
                "rounding so many counts costs more than this epsilon: ask for a larger one"
            )
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
        return replace(draft, noise_scale=draft.moved / left)

    @property
    def covers(self) -> str:
        """What the guarantee is about, and whom it trusts for what."""
        counted = (
            "" if self.guarantee.relation.count_is_public else " How many records there are is covered too."
        )
        return (
            f"Everything the coordinator sees: one noisy sum of {self.summed}, and so this file. It holds if "
            f"{self.noise_shares} of the {self.parties} parties each add their share of the noise, whoever else "
            "colludes with the coordinator or drops out, and if only the sum over all parties but the missing ones is "
            f"opened (secure sum). {whose_records(self.parties_per_person)} Number of parties and records, plan, "
            f"schema and cells are public and enter as such.{counted}"
        )

    @property
    def floating_point(self) -> str:
        """What is exact in the parties' samplers."""
        return SummedMechanism.floating_point

    @property
    def holders(self) -> tuple[int, int, int]:
        """How many there are, how many honest, present ones are enough for the noise, how many have one person."""
        return self.parties, self.noise_shares, self.parties_per_person

    @property
    def moved(self) -> float:
        """How far one person moves the sum, rounding included."""
        return self.guarantee.relation.counts * self._rows_of_a_person * (1.0 + ROUNDING)

    @property
    def _rows_of_a_person(self) -> int:
        return self.rows_per_person * self.parties_per_person

    @property
    def kinds(self) -> tuple[str, ...]:
        """One question, and no more."""
        return ("counts",)

    def question(self, number: int, coefficients: Array | None = None) -> Question:
        """The one question."""
        if number != 0:
            raise InvalidParameter("the plan has one question, numbered 0")
        most = self.records * self.rows_per_person * self.guarantee.relation.largest_table
        noise = (Noise("gaussian", self.noise_scale),)
        return Question(0, self.kinds[0], sum(self.cells), most * (1.0 + ROUNDING), noise)

    def answer(self, tables: Sequence[Array]) -> Array:
        """PRIVATE: one holder's exact part of the sum. It must not leave as it is."""
        if tuple(table.size for table in tables) != self.cells:
            raise InvalidParameter("the tables do not have the cells that their noise was calibrated for")
        return np.concatenate([root * table.ravel() for root, table in zip(self._roots, tables, strict=True)])

    def tables(self, answer: NoisySum) -> list[Array]:
        """The noisy tables in an opened sum."""
        parts = np.split(answer.vector, list(itertools.accumulate(self.cells))[:-1])
        return [part / root for part, root in zip(parts, self._roots, strict=True)]

    def in_sum(self, present: int, records: int) -> dict[str, Any]:
        """Public: how many holders and records are in an opened sum, and its noise for each promised one."""
        noise = math.sqrt(present / self.noise_shares)
        return {"parties": present, "records": records, "noise": noise}

    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        """Renyi divergence of the given order that answers to such questions may cost."""
        return self.renyi(order) if kinds else 0.0

    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        """What answers to such questions cost, at the guarantee's delta."""
        return self.guarantee.epsilon if kinds else 0.0

    def epsilon_after(self, questions: int) -> float:
        """What has been spent once so many were answered."""
        return self.epsilon_of(self.kinds[:questions])

    def constants(self) -> dict[str, Any]:
        """Every number the theorem speaks of."""
        several = {"parties_per_person": self.parties_per_person} if self.parties_per_person > 1 else {}
        return super().constants() | {"parties": self.parties, "noise_shares": self.noise_shares} | several

    @property
    def _loss(self) -> float:
        return self.moved / self.noise_scale + grid_ratio(sum(self.cells))

    @property
    def _roots(self) -> tuple[float, ...]:
        return tuple(math.sqrt(share) for share in self.shares)
