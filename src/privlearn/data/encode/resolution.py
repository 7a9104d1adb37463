"""How finely columns are spread over features, chosen from public numbers (docs/explanation/resolution.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Self

from privlearn.data.encode.positions import Ordered
from privlearn.data.schema.columns import CategoryColumn, OrderedColumn, OrdinalColumn, TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, shown

Pair = tuple[str, str]


@dataclass(frozen=True)
class Resolution:
    """What the schema leaves to be chosen; a release carries it, so that it predicts as it learnt.

    Each share is a part of a row's squared norm. What is left goes to the lines, splines, lists, words and the
    intercept, as they are without fine bins and pairs.

    Parameters
    ----------
    bins : int
        Fine bins of each ordered column whose schema says ``auto``; 0 for none.
    bin_share : float
        Of all fine bins together.
    grid : int
        Cells per ordered column in a pair's grid; 0 where ``pairs: auto`` shall mean none.
    pair_share : float
        Of all pairs together.
    """

    bins: int = 0
    bin_share: float = 0.0
    grid: int = 0
    pair_share: float = 0.0

    def __post_init__(self) -> None:
        counts = all(isinstance(count, int) and 0 <= count <= 2**16 for count in (self.bins, self.grid))
        shares = all(0.0 <= share < 1.0 for share in (self.bin_share, self.pair_share))
        if not (counts and shares and self.bin_share + self.pair_share < 1.0):
            raise InvalidParameter(f"no resolution: {shown(self)}")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        return cls(**record)

    def bins_of(self, column: Ordered) -> int:
        """Fine bins of one column, by what its schema says."""
        if self.bin_share == 0.0 or column.bins == "none":
            return 0
        if isinstance(column.bins, int):
            return column.bins
        if column.encoding == "linear":
            return 0
        if isinstance(
            column, OrdinalColumn
        ):  # a spline with a knot at every value is as fine as a list can be
            return 0 if len(column.values) <= column.knots else min(len(column.values), self.bins)
        return self.bins

    def grid_of(self, column: Ordered | CategoryColumn) -> int:
        """Cells of one column in a pair's grid; lists as they are."""
        if isinstance(column, CategoryColumn):
            return len(column.values) + (column.unknown == "other")
        return min(self.grid, len(column.values)) if isinstance(column, OrdinalColumn) else self.grid

    def pairs_of(self, schema: Schema) -> tuple[Pair, ...]:
        """The pairs that have features, by what the schema says."""
        if self.pair_share == 0.0 or schema.pairs == "none":
            return ()
        return affordable_pairs(schema) if schema.pairs == "auto" else schema.pairs


def affordable_pairs(schema: Schema) -> tuple[Pair, ...]:
    """Public: all pairs with an ordered column, where most columns are ordered and the pairs are not too many.

    Lists are resolved already, and where most columns are lists a sum of their effects leaves little to pairs. Many
    pairs would each have a tiny share, and make every row long.
    """
    ordered = {name for name, column in schema.columns.items() if isinstance(column, OrderedColumn)}
    names = [name for name, column in schema.columns.items() if not isinstance(column, TextColumn)]
    pairs = tuple(pair for pair in combinations(names, 2) if not ordered.isdisjoint(pair))
    most = 2 * len(ordered) >= len(names)
    return pairs if most and len(pairs) <= MOST_PAIRS else ()


BINS, COARSE_GRID, FINE_GRID = 256, 8, 16
MOST_PAIRS = 100
MOST_BIN_SHARE, BINS_FROM = 0.6, 1_200.0
MOST_PAIR_SHARE, PAIRS_FROM = 0.4, 2_700.0
FINE_GRID_FROM = 50_000.0
LEAST_SHARE = 0.1
"""No more is not worth thousands of features; and what a schema asks for gets this much."""


def choose_resolution(schema: Schema, records: int, noise: float) -> Resolution | None:
    """Public: the resolution for so many records, where one coordinate of the sum of gradients gets so much noise.

    ``None`` where neither bins nor pairs pay: the centred encoding of version 0.1 wastes less of a row's norm.

    Let the clarity be records / noise. What has share s adds noise of at most sqrt(s) times the whole score's, and
    finds more the clearer the records are: shares grow with the clarity, as s (1 - from / clarity), from nothing.
    docs/explanation/resolution.md derives the form and measures the constants.

    Parameters
    ----------
    schema : Schema
    records : int
        N, or how many are expected.
    noise : float
        Deviation of the noise in one coordinate, in units of the longest gradient of a record; 0 without privacy,
        infinite where it would grow with the number of features.
    """
    clarity = records / math.hypot(
        noise, 1.0
    )  # one record more or less: the noise that sampling has of its own
    lists = sum(isinstance(column, CategoryColumn) for column in schema.columns.values()) / len(
        schema.columns
    )
    bin_share = _grown(MOST_BIN_SHARE * lists, clarity, BINS_FROM)
    pair_share = _grown(MOST_PAIR_SHARE, clarity, PAIRS_FROM)
    asked_bins = any(isinstance(getattr(column, "bins", None), int) for column in schema.columns.values())
    asked_pairs = not isinstance(schema.pairs, str)
    if not asked_pairs and not (schema.pairs == "auto" and affordable_pairs(schema)):
        pair_share = 0.0
    chosen = Resolution(
        bins=BINS if bin_share else 0,
        bin_share=max(bin_share, LEAST_SHARE) if asked_bins else bin_share,
        grid=FINE_GRID if clarity >= FINE_GRID_FROM else COARSE_GRID,
        pair_share=max(pair_share, LEAST_SHARE) if asked_pairs else pair_share,
    )
    return chosen if chosen.bin_share or chosen.pair_share else None


def _grown(most: float, clarity: float, start: float) -> float:
    """From 0 at the start towards the most, once it is worth while; rounded, so that a certificate can be read."""
    share = round(most * (1.0 - start / clarity), 2) if clarity > start else 0.0
    return share if share > LEAST_SHARE else 0.0
