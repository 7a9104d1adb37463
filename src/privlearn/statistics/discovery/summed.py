"""Bounds and lists of values that several holders estimate together, from one noisy sum of counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.draft import Bound, SchemaDraft
from privlearn.data.schema.private_bounds import JointPrivateBounds
from privlearn.data.schema.public import Value
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, ReleaseError, VerificationError
from privlearn.mechanisms.statistics import tail_counts
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.release.counts_file import CountsFile
from privlearn.statistics.discovery.measuring import MarkedColumns

MAX_TAIL = 2.0
"""A noisy tail of at most this many standard deviations of its noise counts as empty."""
MIN_LISTED = 3.0
"""A value is listed if its noisy count exceeds this many standard deviations of the noise. A value that no record has
is listed with probability 1/740."""
SIZE_WEIGHT = 2.0
"""Weight of a column's cells of one size in the budget, where a list has weight 1. It nearly minimises the sum of the
variances: on average a tail is a sum of 15 counts."""


@dataclass(frozen=True)
class Candidates:
    """Public: the cells in which the marked columns of a draft are counted.

    ``values``: the candidates of each marked list; no other value is counted. ``between``: known limits of the bounds
    of a column, divided into equal steps; other columns have steps of a sixteenth of a power of two.
    """

    draft: SchemaDraft
    values: Mapping[str, Sequence[Value]]
    between: Mapping[str, Sequence[float]]

    def __post_init__(self) -> None:
        if self.draft.is_complete:
            raise InvalidParameter(
                "draft: nothing is marked. Write `estimate` where a bound or a list is not known."
            )
        if set(self.values) != set(self.draft.lists):
            expected = ", ".join(self.draft.lists) or "no column"
            raise InvalidParameter(
                f"candidates: these must be exactly the marked lists ({expected}). Name the values to count for each, "
                "since a secure sum counts nothing else."
            )
        for name, values in self.values.items():
            of_its_type = all(type(value) is self.draft.lists[name] for value in values)
            if not values or not of_its_type or len(set(values)) < len(values):
                raise InvalidParameter(
                    f"candidates.{name}: some values repeat or have another type than in the draft. Correct the list."
                )
        for name, (lower, upper) in self.between.items():
            if name not in self.columns or not lower < upper:
                raise InvalidParameter(
                    f"between.{name} must be two increasing numbers for a marked column. Correct or remove it."
                )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Candidates:
        return cls(SchemaDraft(content["draft"]), content["candidates"], content["between"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "draft": self.draft.to_dict(),
            "candidates": {name: list(values) for name, values in self.values.items()},
            "between": {name: list(ends) for name, ends in self.between.items()},
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns with a marked bound."""
        return tuple(dict.fromkeys(bound.column for bound in self.draft.bounds))

    @property
    def cells(self) -> tuple[int, ...]:
        """Return the number of cells of each table: those of each column, size by size, then those of each list."""
        return (
            *tail_counts.SIZES * len(self.columns),
            *(len(self.values[name]) for name in self.draft.lists),
        )

    @property
    def weights(self) -> tuple[float, ...]:
        """Return the weight of each table in the budget, in the order of `cells`."""
        sizes = len(tail_counts.SIZES) * len(self.columns)
        return (SIZE_WEIGHT,) * sizes + (1.0,) * len(self.draft.lists)

    def min_records(self, deviations: Sequence[float]) -> float:
        """Return the number of records that a listed value needs, or that may lie beyond a bound.

        ``deviations`` are the standard deviations of the noise in the tables.
        """
        longest = MAX_TAIL * float(np.sqrt(tail_counts.cells_per_tail().max()))
        sizes = len(tail_counts.SIZES) * len(self.columns)
        factors = [longest] * sizes + [MIN_LISTED] * len(self.draft.lists)
        return max(factor * deviation for factor, deviation in zip(factors, deviations, strict=True))

    def count(self, columns: MarkedColumns) -> list[Array]:
        """PRIVATE: return the exact tables of one holder."""
        tables: list[Array] = []
        for name in self.columns:
            sides = columns.numbers(name).sides(self._edges(name))
            smallest = np.diff(sides.below, prepend=0, append=sides.cells).astype(np.float64)
            tables += tail_counts.cells_of_all_sizes(smallest)
        for name in self.draft.lists:
            histogram = columns.histogram(name)
            counts = dict(zip(histogram.values, histogram.counts.tolist(), strict=True))
            tables.append(np.array([counts.get(value, 0) for value in self.values[name]], dtype=np.float64))
        return tables

    def complete(
        self, tables: Sequence[Array], deviations: Sequence[float], receipt: JointPrivateBounds
    ) -> Schema:
        """Return the schema that follows from noisy tables."""
        noisy = iter(zip(tables, deviations, strict=True))
        ends: dict[Bound, float] = {}
        for name in self.columns:
            sizes = [next(noisy) for _ in tail_counts.SIZES]
            pair = tail_counts.bounds([each for each, _ in sizes], self._edges(name), sizes[0][1], MAX_TAIL)
            ends |= dict(zip((Bound(name, "lower"), Bound(name, "upper")), pair, strict=True))
        lists = {}
        for name in self.draft.lists:
            counts, deviation = next(noisy)
            frequent = counts > MIN_LISTED * deviation
            lists[name] = [value for value, keep in zip(self.values[name], frequent, strict=True) if keep]
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
            raise ReleaseError("this file has no bounds and lists. Load it with the class of its kind.")
        if self.run is not None:
            agreed = json.loads(self.run.plan)
            if any(agreed.get(part) != self.about[part] for part in ("draft", "candidates", "between")):
                raise VerificationError("the file has other candidates than its run. Do not use it.")

    @cached_property
    def draft(self) -> SchemaDraft:
        """Return the draft whose marked parts were counted."""
        return SchemaDraft(self.about["draft"])

    @cached_property
    def schema(self) -> Schema:
        """Return the complete schema, with a receipt of its cost."""
        mechanism, candidates = self.certificate.mechanism, Candidates.from_dict(self.about)
        assert isinstance(mechanism, SummedCounts)
        deviations = [self.about["in_sum"]["noise"] * deviation for deviation in mechanism.deviations]
        receipt = JointPrivateBounds(
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
        return candidates.complete(self.tables, deviations, receipt)
