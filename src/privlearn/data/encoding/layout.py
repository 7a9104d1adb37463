"""Arrange the features of a schema's columns in one vector, and divide the vector's norm among them.

There are two arrangements, which `choose_resolution` (resolution.py) selects from public numbers:

- *centred* (neither bins nor pairs): coarse groups in the order of the schema, each minus its centre, stored densely.
  Little of a row's norm is spent on what all rows have in common, which matters for few records, much noise or kernels.
- *resolved*: coarse groups, then fine bins, then pairs of columns, then words; stored in CSR form.
  Bins and pairs have fixed shares of the squared norm.

The constant feature comes last in both.

>>> from privlearn.data import Resolution, Schema
>>> schema = Schema.from_dict({"name": "clinic", "columns": {
...     "age": {"type": "number", "lower": 0, "upper": 100, "knots": 3},
...     "sex": {"type": "category", "values": ["f", "m"]}}})
>>> FeatureLayout(schema, Resolution()).feature_names
['age[0]', 'age[1]', 'age[2]', 'age[3]', 'sex=f', 'sex=m', 'intercept']
>>> layout = FeatureLayout(schema, Resolution(bins=4, bin_share=0.2, grid=2, pair_share=0.3))
>>> layout.feature_names[:6]
['age[0]', 'age[1]', 'age[2]', 'age', 'sex=f', 'sex=m']
>>> layout.feature_names[6:]  # doctest: +NORMALIZE_WHITESPACE
['age bin 0', 'age bin 1', 'age bin 2', 'age bin 3',
 'age x sex bin 0,0', 'age x sex bin 0,1', 'age x sex bin 1,0', 'age x sex bin 1,1', 'intercept']
>>> layout.dimension, layout.entries_per_row, layout.coarse_share
(15, 7, 0.5)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from privlearn.data.encoding.feature_groups import (
    BinIndicators,
    CoarseFeatures,
    FeatureGroup,
    Line,
    SineCosine,
    TextFeatures,
    coarse_features,
)
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.schema.columns import AnyColumn, CategoryColumn, TextColumn
from privlearn.data.schema.schema import Schema


@dataclass(frozen=True)
class ColumnLayout:
    """Public: the features that depend on one column alone.

    Parameters
    ----------
    name : str
    coarse : list of (int, CoarseFeatures)
    bins : (int, BinIndicators), optional
    grid : int
        The number of the column's bins in pairs; 0 if it is in none.
    """

    name: str
    coarse: list[tuple[int, CoarseFeatures]]
    bins: tuple[int, BinIndicators] | None
    grid: int

    @property
    def entries_per_row(self) -> int:
        """Return the number of entries of a row for this column alone."""
        return sum(group.entries_per_row for _, group in self.coarse) + (self.bins is not None)


class FeatureLayout:
    """Public: the features of a row, and how they share its squared norm.

    Parameters
    ----------
    schema : Schema
    resolution : Resolution
    fit_intercept : bool, default=True

    Attributes
    ----------
    groups : list of (int, FeatureGroup)
        All groups in order, each with the index of its first feature.
    coarse, bins, pairs, texts : list of (int, FeatureGroup)
        The groups of each kind.
    dimension : int
        Number of features.
    entries_per_row : int
        Entries of a row in CSR form, words excluded.
    bin_share, pair_share, coarse_share : float
        Parts of the squared norm of a row without missing cells; coarse groups, words and intercept share the last.
    bin_weight, pair_weight : float
        Value of a bin's or a pair's entry, before the row is divided by its norm.
    """

    def __init__(self, schema: Schema, resolution: Resolution, fit_intercept: bool = True) -> None:
        self.is_centred, self.fit_intercept = resolution.is_centred, fit_intercept
        columns = list(resolution.columns_of(schema).items())
        if self.is_centred:
            groups = [group for name, column in columns for group in _column_groups(name, column)]
        else:
            words = [(name, column) for name, column in columns if isinstance(column, TextColumn)]
            others = [(name, column) for name, column in columns if not isinstance(column, TextColumn)]
            groups = [group for name, column in others for group in _column_groups(name, column)]
            groups += _fine_groups(schema, dict(columns), resolution)
            groups += [TextFeatures(name, column) for name, column in words]
        self.groups = list(_with_starts(groups))
        self.coarse = [(start, group) for start, group in self.groups if isinstance(group, CoarseFeatures)]
        self.texts = [(start, group) for start, group in self.groups if isinstance(group, TextFeatures)]
        fine = [(start, group) for start, group in self.groups if isinstance(group, BinIndicators)]
        self.bins = [(start, group) for start, group in fine if len(group.columns) == 1]
        self.pairs = [(start, group) for start, group in fine if len(group.columns) == 2]
        self.dimension = sum(group.width for group in groups) + fit_intercept
        coarse_entries = sum(group.entries_per_row for _, group in self.coarse)
        self.entries_per_row = coarse_entries + len(fine) + fit_intercept
        self.bin_share = resolution.bin_share if self.bins else 0.0
        self.pair_share = resolution.pair_share if self.pairs else 0.0
        self.coarse_share = 1.0 - (self.bin_share + self.pair_share)
        self.bin_weight = math.sqrt(self.bin_share / max(len(self.bins), 1))
        self.pair_weight = math.sqrt(self.pair_share / max(len(self.pairs), 1))

    @property
    def is_sparse(self) -> bool:
        """Return whether rows are stored in CSR form."""
        return not self.is_centred or bool(self.texts)

    @property
    def feature_names(self) -> list[str]:
        """Return a name for each feature."""
        names = [name for start, group in self.groups for name in self._names(start, group)]
        return [*names, "intercept"] if self.fit_intercept else names

    def _names(self, start: int, group: FeatureGroup) -> list[str]:
        """Return the names of a group; a centred trend is numbered after the hat functions of its column."""
        if self.is_centred and isinstance(group, Line | SineCosine):
            offset = start - next(first for first, other in self.groups if other.columns == group.columns)
            if offset + group.width > 1:
                return [f"{group.name}[{offset + index}]" for index in range(group.width)]
        return group.feature_names

    @property
    def feature_columns(self) -> list[tuple[str, ...]]:
        """Return the columns that each feature depends on: one, two for a pair, none for the intercept."""
        columns = [group.columns for _, group in self.groups for _ in range(group.width)]
        return [*columns, ()] if self.fit_intercept else columns

    def columns(self) -> list[ColumnLayout]:
        """Return the features of each column alone, text columns excluded."""
        bins = {group.columns: (start, group) for start, group in self.bins}
        grid = {name: count for _, pair in self.pairs for name, count in pair.bins}
        coarse: dict[str, list[tuple[int, CoarseFeatures]]] = {group.name: [] for _, group in self.coarse}
        for start, group in self.coarse:
            coarse[group.name].append((start, group))
        return [ColumnLayout(name, coarse[name], bins.get((name,)), grid.get(name, 0)) for name in coarse]


def _column_groups(name: str, column: AnyColumn) -> list[FeatureGroup]:
    if isinstance(column, TextColumn):
        return [TextFeatures(name, column)]
    return [*coarse_features(name, column)]


def _fine_groups(
    schema: Schema, columns: dict[str, AnyColumn], resolution: Resolution
) -> Iterator[BinIndicators]:
    """Yield the bins of ordered columns, then the pairs."""
    for name, column in columns.items():
        if not isinstance(column, CategoryColumn | TextColumn) and (count := resolution.bins_of(column)):
            yield BinIndicators({name: count})
    for pair in resolution.pairs_of(schema):
        yield BinIndicators({name: resolution.grid_of(columns[name]) for name in pair})


def _with_starts(groups: Iterable[FeatureGroup]) -> Iterator[tuple[int, FeatureGroup]]:
    """Yield each group with the index of its first feature."""
    start = 0
    for group in groups:
        yield start, group
        start += group.width
