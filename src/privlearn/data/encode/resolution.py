"""How finely a table's columns are spread over features, chosen from public numbers (docs/explanation/resolution.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Self

from privlearn.data.encode.positions import Ordered
from privlearn.data.schema.columns import CategoryColumn, OrderedColumn, OrdinalColumn
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
        if isinstance(column, OrdinalColumn):  # a spline with a knot at every value is as fine as a list can be
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
        if not isinstance(schema.pairs, str):
            return schema.pairs
        ordered = [name for name, column in schema.columns.items() if isinstance(column, OrderedColumn)]
        return tuple(combinations(ordered, 2)) if self.grid else ()


def choose_resolution(records: int, noise: float) -> Resolution:
    """Public: the resolution for so many records, where one coordinate of the sum of gradients gets so much noise.

    Parameters
    ----------
    records : int
        N, or how many are expected.
    noise : float
        Deviation of the noise in one coordinate, in units of the longest gradient of a record; 0 without privacy,
        infinite where it would grow with the number of features.
    """
    clarity = math.inf if noise == 0.0 else records / noise
    if clarity < 500.0:
        return Resolution()
    return Resolution(bins=256, bin_share=0.1)
