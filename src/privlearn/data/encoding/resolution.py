"""The resolution of features: knots, fine bins and pairs of columns, chosen from public numbers.

docs/explanation/resolution.md derives the rules of `choose_resolution` and measures their constants.

>>> schema = Schema.from_dict({"name": "clinic", "columns": {
...     "age": {"type": "number", "lower": 0, "upper": 100}, "weight": {"type": "number", "lower": 0, "upper": 200}}})
>>> choose_resolution(schema, Clarity(records=1_000, noise=20.0))
Resolution(knots=5, bins=0, bin_share=0.0, grid=0, pair_share=0.0)
>>> choose_resolution(schema, Clarity(records=100_000, noise=2.0))
Resolution(knots=16, bins=0, bin_share=0.0, grid=8, pair_share=0.36)
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
KNOTS = range(3, 18, 2)
"""Odd numbers: bounds are mostly stated around the usual values, where a knot is needed most."""
_OCCUPIED = 0.3  # part of a column's range in which most values lie
# Limits of the shares, and the clarity from which on they are above 0 (see `choose_resolution`):
MAX_BIN_SHARE, BINS_FROM = 0.6, 1_200.0
MAX_PAIR_SHARE, PAIRS_FROM = 0.4, 2_700.0
FINE_GRID_FROM = 50_000.0
# Sampling as noise: its variance grows with the number of cells, so with the number of pairs.
_BIN_SAMPLING, _PAIRS_PER_NOISE = 3.0, 6.0
# A smaller share is not worth thousands of features; bins and pairs that a schema states get this share.
MIN_SHARE = 0.1


@dataclass(frozen=True)
class Resolution:
    """Numbers of knots and bins, and shares of the norm; part of every release, which predicts with the same features.

    A share is a part of a row's squared norm. The rest is for the coarse features: lines, splines, lists, words and the
    intercept.

    Parameters
    ----------
    knots : int
        Knots of each ordered column with ``knots: auto`` in the schema.
    bins : int
        Fine bins of each ordered column with ``bins: auto`` in the schema; 0 for none.
    bin_share : float
        Share of all fine bins together.
    grid : int
        Bins of each ordered column in a pair's grid; 0 for no pairs with ``pairs: auto``.
    pair_share : float
        Share of all pairs together.
    """

    knots: int = 16
    bins: int = 0
    bin_share: float = 0.0
    grid: int = 0
    pair_share: float = 0.0

    def __post_init__(self) -> None:
        counts = all(
            isinstance(count, int) and minimum <= count <= 2**16
            for count, minimum in ((self.knots, 2), (self.bins, 0), (self.grid, 0))
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
        """Return whether there are only coarse features, which are centred and dense."""
        return not (self.bin_share or self.pair_share)

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


@dataclass(frozen=True)
class Clarity:
    """Public: what decides how much can be seen in a table.

    Parameters
    ----------
    records : int
        The number of records or persons, or the expected number.
    noise : float
        Standard deviation of the noise in one coordinate of the sum of gradients, in units of the maximum norm of a
        record's gradient; 0 without privacy.
    grows : bool
        Whether the noise grows with the root of the number of features, as noise for delta 0 does. ``noise`` is that
        of one feature then.
    curvature, gradient_square, signal : float
        Typical second derivative of the loss, mean square of its first derivative, and deviation of the scores, in the
        same units; by default those of the logistic loss.
    takes_fine : bool
        Whether bins and pairs may be used.
    """

    records: int
    noise: float
    grows: bool = False
    curvature: float = 0.15
    gradient_square: float = 0.15
    signal: float = 2.0
    takes_fine: bool = True

    def ratio(self, sampling: float) -> float:
        """Return records over noise, to which sampling adds; 0 if fine features are no choice."""
        return self.records / math.hypot(self.noise, sampling) if self.takes_fine and not self.grows else 0.0


def choose_knots(columns: int, clarity: Clarity) -> int:
    """Return the number of knots with the smallest expected error of a score.

    With K knots in each of p columns, the error has three parts (docs/explanation/resolution.md): a spline misses
    signal^2 (pi / o)^4 / (720 K^4) of waves over the occupied part o of each range; the o p K coefficients that rows
    determine have a sampling variance of g / (N h^2) each; and the noise adds 3/2 (o p K noise / (N h))^2.
    """

    def error(knots: int) -> float:
        coefficients, information = _OCCUPIED * columns * knots, clarity.records * clarity.curvature
        noise = clarity.noise * (math.sqrt(columns * knots) if clarity.grows else 1.0)
        missed = clarity.signal**2 * (math.pi / _OCCUPIED / knots) ** 4 / 720.0
        sampling = coefficients * clarity.gradient_square / (information * clarity.curvature)
        return missed + sampling + 1.5 * (coefficients * noise / information) ** 2

    return min(KNOTS, key=error)


def choose_resolution(schema: Schema, clarity: Clarity) -> Resolution:
    """Public: choose the resolution that serves a table best.

    Features with share s add noise of at most sqrt(s) times that of the whole score, and are the more useful the higher
    the clarity. So shares of bins and pairs grow with the clarity from 0 to their maximum. Without bins and pairs the
    layout is centred, which wastes less of a row's norm.
    """
    columns = schema.columns.values()
    knots = choose_knots(len(columns) + 1, clarity)
    pairs = affordable_pairs(schema) if schema.pairs == "auto" else ()
    ratio = clarity.ratio(max(1.0, math.sqrt(len(pairs) / _PAIRS_PER_NOISE)))
    category_share = sum(isinstance(column, CategoryColumn) for column in columns) / len(columns)
    bin_share = _share(MAX_BIN_SHARE * category_share, clarity.ratio(_BIN_SAMPLING), BINS_FROM)
    pair_share = _share(MAX_PAIR_SHARE, ratio, PAIRS_FROM)
    has_stated_bins = any(isinstance(getattr(column, "bins", None), int) for column in columns)
    has_stated_pairs = not isinstance(schema.pairs, str)
    if not has_stated_pairs and not pairs:
        pair_share = 0.0
    pair_share = max(pair_share, MIN_SHARE) if has_stated_pairs else pair_share
    grid = FINE_GRID if ratio >= FINE_GRID_FROM else COARSE_GRID
    return Resolution(
        knots,
        bins=BINS if bin_share else 0,
        bin_share=max(bin_share, MIN_SHARE) if has_stated_bins else bin_share,
        grid=grid if pair_share else 0,
        pair_share=pair_share,
    )


def _share(maximum: float, ratio: float, start: float) -> float:
    """Return a share that grows from 0 at `start` towards the maximum; rounded, to be readable in a certificate."""
    share = round(maximum * (1.0 - start / ratio), 2) if ratio > start else 0.0
    return share if share > MIN_SHARE else 0.0
