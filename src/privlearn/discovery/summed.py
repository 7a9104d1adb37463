"""Bounds and lists that several holders bought together, from one noisy sum of counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.draft import Bound, SchemaDraft
from privlearn.data.schema.public import Value
from privlearn.data.schema.purchases import JointPurchase
from privlearn.data.schema.schema import Schema
from privlearn.discovery.buying import MarkedColumns
from privlearn.errors import InvalidParameter, ReleaseError, VerificationError
from privlearn.mechanisms.statistics import tail_counts
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.release.counts_file import CountsFile

TAIL = 2.0
"""A noisy tail of at most so many of its deviations counts as empty."""
LISTED = 3.0
"""A value is listed whose noisy count exceeds so many of its deviations: one that nobody has, once in 740 times."""
SIZE_WEIGHT = 2.0
"""Of each size of a column's cells; a list weighs 1. About the least sum of variances: a tail is a sum of 15 counts."""


@dataclass(frozen=True)
class Candidates:
    """Public: the cells in which the marked columns of a draft are counted.

    Parameters
    ----------
    draft : SchemaDraft
    values : mapping of str to sequence of values
        Of each list that is bought, what may be on it: nothing else is counted.
    between : mapping of str to (float, float)
        Columns of numbers whose bounds lie between two known numbers, in equal steps; all others have steps of a
        sixteenth of a power of two.
    """

    draft: SchemaDraft
    values: Mapping[str, Sequence[Value]]
    between: Mapping[str, Sequence[float]]

    def __post_init__(self) -> None:
        if self.draft.is_complete:
            raise InvalidParameter(
                "draft: nothing is marked: write `buy` where a bound or a list is not known"
            )
        if set(self.values) != set(self.draft.lists):
            wanted = ", ".join(self.draft.lists) or "no column"
            raise InvalidParameter(
                f"candidates: name the values that may be listed, of {wanted}: a secure sum needs to know beforehand "
                "what it counts"
            )
        for name, values in self.values.items():
            of_its_type = all(type(value) is self.draft.lists[name] for value in values)
            if not values or not of_its_type or len(set(values)) < len(values):
                raise InvalidParameter(
                    f"candidates.{name}: list different values, all of the type that the draft says"
                )
        for name, (lower, upper) in self.between.items():
            if name not in self.columns or not lower < upper:
                raise InvalidParameter(
                    f"between.{name}: say between which two numbers the bounds of a marked column lie"
                )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Candidates:
        return cls(SchemaDraft(content["draft"]), content["candidates"], content["between"])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "draft": self.draft.to_dict(),
            "candidates": {name: list(values) for name, values in self.values.items()},
            "between": {name: list(ends) for name, ends in self.between.items()},
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """Of which a bound is bought."""
        return tuple(dict.fromkeys(bound.column for bound in self.draft.bounds))

    @property
    def cells(self) -> tuple[int, ...]:
        """Of each table: first each column's, size by size, then each list's."""
        return (
            *tail_counts.SIZES * len(self.columns),
            *(len(self.values[name]) for name in self.draft.lists),
        )

    @property
    def weights(self) -> tuple[float, ...]:
        """What each table gets of the budget, in the order of `cells`."""
        sizes = len(tail_counts.SIZES) * len(self.columns)
        return (SIZE_WEIGHT,) * sizes + (1.0,) * len(self.draft.lists)

    def needed(self, deviations: Sequence[float]) -> float:
        """How many records a listed value needs, or lie beyond a bound at most, with so much noise in each table."""
        longest = TAIL * float(np.sqrt(tail_counts.summed_cells().max()))
        sizes = len(tail_counts.SIZES) * len(self.columns)
        factors = [longest] * sizes + [LISTED] * len(self.draft.lists)
        return max(factor * deviation for factor, deviation in zip(factors, deviations, strict=True))

    def counted(self, columns: MarkedColumns) -> list[Array]:
        """PRIVATE: one holder's tables."""
        tables: list[Array] = []
        for name in self.columns:
            seen = columns.numbers(name).sides(self._edges(name))
            smallest = np.diff(seen.below, prepend=0, append=seen.cells).astype(np.float64)
            tables += tail_counts.cells_of_all_sizes(smallest)
        for name in self.draft.lists:
            found = columns.histogram(name)
            number = dict(zip(found.values, found.counts.tolist(), strict=True))
            tables.append(np.array([number.get(value, 0) for value in self.values[name]], dtype=np.float64))
        return tables

    def completed(
        self, tables: Sequence[Array], deviations: Sequence[float], receipt: JointPurchase
    ) -> Schema:
        """The schema that noisy tables give: it follows from them alone."""
        noisy = iter(zip(tables, deviations, strict=True))
        ends: dict[Bound, float] = {}
        for name in self.columns:
            sizes = [next(noisy) for _ in tail_counts.SIZES]
            found = tail_counts.bounds([each for each, _ in sizes], self._edges(name), sizes[0][1], TAIL)
            ends |= dict(zip((Bound(name, "lower"), Bound(name, "upper")), found, strict=True))
        lists = {}
        for name in self.draft.lists:
            counts, deviation = next(noisy)
            shown = zip(self.values[name], counts > LISTED * deviation, strict=True)
            lists[name] = [value for value, is_frequent in shown if is_frequent]
        return self.draft.complete({bound: ends[bound] for bound in self.draft.bounds}, lists, receipt)

    def _edges(self, name: str) -> Array:
        between = self.between.get(name)
        return tail_counts.edges(None if between is None else (between[0], between[1]))


@dataclass(frozen=True, eq=False)
class DiscoveredSchema(CountsFile):
    """Noisy counts of marked columns, and the schema that follows from them, with its receipt.

    ``DiscoveredSchema.load("bounds.privlearn").schema.save("census.schema.yaml")`` writes that schema.
    """

    what: ClassVar[str] = "file of bounds and lists"
    kind: ClassVar[str] = "schema"

    def __post_init__(self) -> None:
        if self.about.get("kind") != self.kind:
            raise ReleaseError("this file holds other counts than those of bounds and lists")
        if self.run is not None:
            agreed = json.loads(self.run.plan)
            if any(agreed.get(part) != self.about[part] for part in ("draft", "candidates", "between")):
                raise VerificationError("the file names other candidates than the plan of its run")

    @cached_property
    def draft(self) -> SchemaDraft:
        """What was to be bought."""
        return SchemaDraft(self.about["draft"])

    @cached_property
    def schema(self) -> Schema:
        """Complete, with the price of what was bought."""
        mechanism, candidates = self.certificate.mechanism, Candidates.from_dict(self.about)
        assert isinstance(mechanism, SummedCounts)
        surplus = self.about["in_sum"]["noise"]
        deviations = [surplus * deviation for deviation in mechanism.deviations]
        receipt = JointPurchase(
            bounds=tuple(map(str, candidates.draft.bounds)),
            lists=tuple(candidates.draft.lists),
            **mechanism.guarantee.to_dict(),
            records=mechanism.records,
            rows_per_person=mechanism.rows_per_person,
            person=candidates.draft.stand_in.person or False,
            noise_scale=mechanism.noise_scale,
            cells=sum(mechanism.cells),
            parties=mechanism.parties,
            noise_shares=mechanism.noise_shares,
            parties_per_person=mechanism.parties_per_person,
            randomness=self.certificate.randomness,
            secure=self.certificate.secure,
        )
        return candidates.completed(self.tables, deviations, receipt)
