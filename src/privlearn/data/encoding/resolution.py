"""The resolution of features: knots, fine bins and pairs of columns, chosen from public numbers.

docs/explanation/resolution.md derives the rules of `choose_resolution` and measures their constants.

>>> schema = Schema.from_dict({"name": "clinic", "columns": {
...     "age": {"type": "number", "lower": 0, "upper": 100}, "weight": {"type": "number", "lower": 0, "upper": 200}}})
>>> choose_resolution(schema, records=1_000, noise=20.0)  # too few records for more than four knots
Resolution(bins=0, bin_share=0.0, grid=0, pair_share=0.0, knots=4)
>>> choose_resolution(schema, records=100_000, noise=2.0)
Resolution(bins=0, bin_share=0.0, grid=8, pair_share=0.38, knots=16)
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

FEW_KNOTS, KNOTS = 4, 16
BINS, COARSE_GRID, FINE_GRID = 256, 8, 16
MAX_PAIRS = 100
# Limits of the shares, and the clarity at which they begin to grow (see `choose_resolution`):
MAX_BIN_SHARE, BINS_FROM = 0.6, 1_200.0
BINS_PAY_FROM = 4_500.0  # below, they gain less than centred rows, which they exclude
MAX_PAIR_SHARE, PAIRS_FROM = 0.4, 2_700.0
FINE_GRID_FROM = 50_000.0
# A smaller share is not worth thousands of features; bins and pairs that a schema states get this share.
MIN_SHARE = 0.1


@dataclass(frozen=True)
class Resolution:
    """Numbers of knots and bins, and shares of the norm; part of every release, which predicts with the same features.

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
    knots : int
        Knots of each ordered column with ``knots: auto`` in the schema.
    """

    bins: int = 0
    bin_share: float = 0.0
    grid: int = 0
    pair_share: float = 0.0
    knots: int = KNOTS

    def __post_init__(self) -> None:
        counts = all(
            isinstance(count, int) and low <= count <= 2**16
            for low, count in ((2, self.knots), (0, self.bins), (0, self.grid))
        )
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

    @property
    def is_centred(self) -> bool:
        """Return whether there are neither bins nor pairs: the layout then wastes less of a row's norm."""
        return not (self.bin_share or self.pair_share)

    def columns_of(self, schema: Schema) -> dict[str, AnyColumn]:
        """Return the schema's columns with the number of knots in place of ``knots: auto``."""
        return {
            name: column.model_copy(update={"knots": self.knots})
            if isinstance(column, OrderedColumn) and getattr(column, "knots", None) == "auto"
            else column
            for name, column in schema.columns.items()
        }

    def bins_of(self, column: Ordered) -> int:
        """Return the number of fine bins of a column, by its schema."""
        if self.bin_share == 0.0 or column.bins == "none":
            return 0
        if isinstance(column.bins, int):
            return column.bins
        if column.encoding == "linear":
            return 0
        if isinstance(column, OrdinalColumn):  # a spline with a knot at every value needs no bins
            knots = self.knots if column.knots == "auto" else column.knots
            return 0 if len(column.values) <= knots else min(len(column.values), self.bins)
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


def choose_resolution(schema: Schema, records: int, noise: float, *, grows: bool = False) -> Resolution:
    """Public: choose the resolution for a number of records and the noise in one coordinate of their gradients' sum.

    Let the clarity be ``records / noise``. Features with share s add noise of at most sqrt(s) times that of the whole
    score, and are the more useful the higher the clarity. So shares grow with the clarity from 0 to their maximum.
    If the schema states how rare a class is, each record counts in proportion to the curvature of its loss.

    Parameters
    ----------
    schema : Schema
    records : int
        The number of records, or the expected number.
    noise : float
        Standard deviation of the noise in one coordinate, in units of the maximum norm of a record's gradient; 0
        without privacy.
    grows : bool, default=False
        Whether the noise grows with the root of the number of features; ``noise`` is then that of one feature. There
        are neither bins nor pairs.
    """
    # Sampling itself has noise: one record more or less.
    clarity = records * _relative_curvature(schema) / math.hypot(noise, 1.0)
    columns = schema.columns.values()
    knots = _choose_knots(len(columns), clarity, grows)
    if grows:
        return Resolution(knots=knots)
    category_share = sum(isinstance(column, CategoryColumn) for column in columns) / len(columns)
    bin_share = (
        _share(MAX_BIN_SHARE * category_share, clarity, BINS_FROM) if clarity >= BINS_PAY_FROM else 0.0
    )
    pair_share = _share(MAX_PAIR_SHARE, clarity, PAIRS_FROM)
    has_stated_bins = any(isinstance(getattr(column, "bins", None), int) for column in columns)
    has_stated_pairs = not isinstance(schema.pairs, str)
    if not has_stated_pairs and not (schema.pairs == "auto" and affordable_pairs(schema)):
        pair_share = 0.0
    pair_share = max(pair_share, MIN_SHARE) if has_stated_pairs else pair_share
    grid = FINE_GRID if clarity >= FINE_GRID_FROM else COARSE_GRID
    return Resolution(
        bins=BINS if bin_share else 0,
        bin_share=max(bin_share, MIN_SHARE) if has_stated_bins else bin_share,
        grid=grid if pair_share else 0,
        pair_share=pair_share,
        knots=knots,
    )


def _choose_knots(columns: int, clarity: float, grows: bool) -> int:
    """Return the nearer, on a logarithmic scale, of two numbers of knots to the one with the smallest error.

    With K knots in each of p columns the squared bias of a smooth effect falls like K^-4, and the variance of the noise
    in a score grows like (K p / clarity)^2; another factor K p if the noise grows with the number of features.
    """
    best = (4.0 * clarity / columns) ** (1.0 / 3.0)
    if grows:
        best = (4.0 * clarity / columns**1.5) ** (2.0 / 7.0)
    return KNOTS if best >= math.sqrt(FEW_KNOTS * KNOTS) else FEW_KNOTS


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
