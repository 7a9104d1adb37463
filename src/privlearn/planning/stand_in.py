"""Rows made up from public facts: what a plan takes for the data, which it must not see (docs/theory/planning.md)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtr

from privlearn.data import CategoryColumn, NumberColumn, Schema, TextColumn

Array = NDArray[np.float64]

STAND_INS = 2000
_CORRELATION = 0.5
_CROWDED = (
    4.0  # a number's place between its bounds has the law Beta(1, 4): bounds are wide, most people are not
)
_RARITY = 2.0  # the k-th category of a list has a share proportional to 1/k^2
_WORDS = 30
_VOCABULARY = 20_000
_ZIPF = 1.3


def stand_in_table(schema: Schema) -> pa.Table:
    """Rows that fit the schema: numbers crowd towards one bound, few categories are common, columns hang together.

    Any two columns have correlation 1/2, through one factor that all share. A person has one row.
    """
    random = np.random.default_rng(0)
    shared = random.standard_normal(STAND_INS)
    columns = {
        name: _cells(column, _places(shared, random), random) for name, column in schema.columns.items()
    }
    if schema.person is not None:
        columns[schema.person] = np.arange(STAND_INS)
    return pa.table(columns)


def stand_in_array(columns: int, norm_bound: float) -> Array:
    """Normal columns of correlation 1/2, the rows about as long as their bound."""
    random = np.random.default_rng(0)
    own = random.standard_normal((STAND_INS, columns))
    return _mixed(random.standard_normal((STAND_INS, 1)), own) * norm_bound / math.sqrt(columns)


def _places(shared: Array, random: np.random.Generator) -> Array:
    """Uniform in [0, 1], correlated with what all columns share."""
    return np.asarray(ndtr(_mixed(shared, random.standard_normal(len(shared)))))


def _mixed(shared: Array, own: Array) -> Array:
    return math.sqrt(_CORRELATION) * shared + math.sqrt(1.0 - _CORRELATION) * own


def _cells(
    column: NumberColumn | CategoryColumn | TextColumn, places: Array, random: np.random.Generator
) -> Any:
    match column:
        case NumberColumn():
            position, width = 1.0 - (1.0 - places) ** (1.0 / _CROWDED), column.upper - column.lower
            if column.scale == "log":
                return column.lower + np.expm1(position * math.log1p(width))
            return column.lower + position * width
        case CategoryColumn():
            shares = np.arange(1.0, len(column.values) + 1.0) ** -_RARITY
            chosen = np.searchsorted(np.cumsum(shares[:-1]) / shares.sum(), places)
            return np.array(column.values)[chosen]
        case TextColumn():
            words = np.minimum(random.zipf(_ZIPF, (len(places), _WORDS)), _VOCABULARY)
            return [" ".join(f"word{word}" for word in text) for text in words]
