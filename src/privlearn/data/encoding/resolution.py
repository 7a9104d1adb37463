"""The resolution of features: fine bins and pairs of columns, chosen from public numbers.

docs/explanation/resolution.md derives the rules of `choose_resolution` and measures their constants.

>>> schema = Schema.from_dict({"name": "clinic", "columns": {
...     "age": {"type": "number", "lower": 0, "upper": 100}, "weight": {"type": "number", "lower": 0, "upper": 200}}})
>>> choose_resolution(schema, records=1_000, noise=2.0) is None  # too few records
True
>>> choose_resolution(schema, records=100_000, noise=2.0)
Resolution(bins=0, bin_share=0.0, grid=8, pair_share=0.38)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Self

from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    Ordered,
    OrderedColumn,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, preview

Pair = tuple[str, str]

BINS, COARSE_GRID, FINE_GRID = 256, 8, 16
MAX_PAIRS = 100
# Limits of the shares, and the clarity from which on they are above 0 (see `choose_resolution`):
MAX_BIN_SHARE, BINS_FROM = 0.6, 1_200.0
MAX_PAIR_SHARE, PAIRS_FROM = 0.4, 2_700.0
FINE_GRID_FROM = 50_000.0
# A smaller share is not worth thousands of features; bins and pairs that a schema states get this share.
MIN_SHARE = 0.1


@dataclass(frozen=True)
class Resolution:
    """Numbers of bins and shares of the norm; part of every release, so that it predicts with the same features.

    A share is a part of a row's squared norm. The rest is for the coarse features: lines, splines, lists, words and the
    intercept.

    Parameters
    ----------
    bins : int
        Fine bins of each ordered column with ``bins: auto`` in the schema; 0 for none.
    bin_share : float
        Share of all fine bins together.
    grid : int
        Bins of each ordered column in a pair's grid; 0 for no pairs with ``pairs: auto``.
    pair_share : float
        Share of all pairs together.
    """

    bins: int = 0
    bin_share: float = 0.0
    grid: int = 0
    pair_share: float = 0.0

    def __post_init__(self) -> None:
        counts = all(isinstance(count, int) and 0 <= count <= 2**16 for count in (self.bins, self.grid))
        shares = all(0.0 <= share < 1.0 for share in (self.bin_share, self.pair_share))
        if not (counts and shares and self.bin_share + self.pair_share < 1.0):
            raise InvalidParameter(
                f"{preview(self)} is not a resolution. Pass counts up to 65536, and shares below 1 in total."
            )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        return cls(**record)

    def bins_of(self, column: Ordered) -> int:
        """Return the number of fine bins of a column, by its schema."""
        if self.bin_share == 0.0 or column.bins == "none":
            return 0
        if isinstance(column.bins, int):
            return column.bins
        if column.encoding == "linear":
            return 0
        if isinstance(column, OrdinalColumn):  # a spline with a knot at every value needs no bins
            return 0 if len(column.values) <= column.knots else min(len(column.values), self.bins)
        return self.bins

    def grid_of(self, column: AnyColumn) -> int:
        """Return the number of a column's bins in a pair's grid; of a category, the number of its values."""
        if isinstance(column, CategoryColumn):
            return len(column.values) + (column.unknown == "other")
        return min(self.grid, len(column.values)) if isinstance(column, OrdinalColumn) else self.grid

    def pairs_of(self, schema: Schema) -> tuple[Pair, ...]:
        """Return the pairs of columns that have features."""
        if self.pair_share == 0.0 or schema.pairs == "none":
            return ()
        return affordable_pairs(schema) if schema.pairs == "auto" else schema.pairs


def affordable_pairs(schema: Schema) -> tuple[Pair, ...]:
    """Public: return the pairs with an ordered column, if most columns are ordered and there are not too many pairs.

    Categories are resolved already, and where most columns are categories, pairs add little to a sum of effects. With
    many pairs, each would have a tiny share, and rows would be long.
    """
    ordered = {name for name, column in schema.columns.items() if isinstance(column, OrderedColumn)}
    names = [name for name, column in schema.columns.items() if not isinstance(column, TextColumn)]
    pairs = tuple(pair for pair in combinations(names, 2) if not ordered.isdisjoint(pair))
    return pairs if 2 * len(ordered) >= len(names) and len(pairs) <= MAX_PAIRS else ()


def choose_resolution(schema: Schema, records: int, noise: float) -> Resolution | None:
    """Public: choose the resolution for a number of records and the noise in one coordinate of their gradients' sum.

    Let the clarity be ``records / noise``. Features with share s add noise of at most sqrt(s) times that of the whole
    score, and are the more useful the higher the clarity. So shares grow with the clarity from 0 to their maximum.
    If the schema states how rare a class is, records count as many times less as their curvature is smaller.

    Parameters
    ----------
    schema : Schema
    records : int
        The number of records, or the expected number.
    noise : float
        Standard deviation of the noise in one coordinate, in units of the maximum norm of a record's gradient; 0
        without privacy, infinite if it would grow with the number of features.

    Returns
    -------
    Resolution or None
        None if neither bins nor pairs are useful: the centred layout then wastes less of a row's norm.
    """
    # Sampling itself has noise: one record more or less.
    clarity = records * _relative_curvature(schema) / math.hypot(noise, 1.0)
    columns = schema.columns.values()
    category_share = sum(isinstance(column, CategoryColumn) for column in columns) / len(columns)
    bin_share = _share(MAX_BIN_SHARE * category_share, clarity, BINS_FROM)
    pair_share = _share(MAX_PAIR_SHARE, clarity, PAIRS_FROM)
    has_stated_bins = any(isinstance(getattr(column, "bins", None), int) for column in columns)
    has_stated_pairs = not isinstance(schema.pairs, str)
    if not has_stated_pairs and not (schema.pairs == "auto" and affordable_pairs(schema)):
        pair_share = 0.0
    resolution = Resolution(
        bins=BINS if bin_share else 0,
        bin_share=max(bin_share, MIN_SHARE) if has_stated_bins else bin_share,
        grid=FINE_GRID if clarity >= FINE_GRID_FROM else COARSE_GRID,
        pair_share=max(pair_share, MIN_SHARE) if has_stated_pairs else pair_share,
    )
    return resolution if resolution.bin_share or resolution.pair_share else None


def _relative_curvature(schema: Schema) -> float:
    """Return the curvature of a record's loss at the stated shares of the classes, relative to that at equal shares."""
    shares = schema.target.shares if schema.target else None
    if shares is None:
        return 1.0
    return (1.0 - sum(share**2 for share in shares)) / (1.0 - 1.0 / len(shares))


def _share(maximum: float, clarity: float, start: float) -> float:
    """Return a share that grows from 0 at `start` towards the maximum; rounded, to be readable in a certificate."""
    share = round(maximum * (1.0 - start / clarity), 2) if clarity > start else 0.0
    return share if share > MIN_SHARE else 0.0
