"""Rows made up from public facts: what a plan takes for the data, which it must not see (docs/theory/planning.md)."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtr

from privlearn.data import CategoryColumn, NumberColumn, Schema, TextColumn
from privlearn.errors import InvalidParameter, shown
from privlearn.features.points import row_count

Array = NDArray[np.float64]

STAND_INS = 2000
MOST_COLUMNS = 20_000  # more would not fit into the memory of a small machine
_CORRELATION = 0.5
_CROWDED = 4.0  # a number lies between its bounds by the law Beta(1, 4): bounds are wide, most people are not
_RARITY = 2.0  # the k-th category of a list has a share proportional to 1/k^2
_WORDS = 30
_VOCABULARY = 20_000
_ZIPF = 1.3


def stand_ins(estimator: Any, columns: int | None) -> tuple[Any, Any]:
    """Rows like those that an estimator would be fitted on, and some answers: which, does not matter to a plan.

    Public points, if there are any, are the best stand-ins; they lack only what tells persons apart.
    """
    schema, points = estimator.schema, getattr(estimator, "public_points", None)
    if columns is not None and (schema is not None or points is not None):
        raise InvalidParameter("the schema or the public points say it all: leave out columns")
    if points is not None and (schema is None or schema.person is None):
        return points, _answers(estimator, row_count(points))
    if schema is not None:
        return stand_in_table(schema), _answers(estimator, STAND_INS)
    if columns is None:
        raise InvalidParameter(
            "describe the rows: give the estimator a schema, or say how many columns of numbers there are, columns=20"
        )
    bound = 1.0 if estimator.norm_bound is None else estimator.norm_bound
    width = check_count("columns", columns, MOST_COLUMNS)
    return stand_in_array(width, bound), _answers(estimator, STAND_INS)


def _answers(estimator: Any, count: int) -> Any:
    if estimator.schema is not None:
        target = estimator.schema.target
        allowed: Any = None if target is None else target.classes or target.bounds
    else:
        allowed = estimator.target_bounds if hasattr(estimator, "target_bounds") else estimator.classes
    return np.zeros(count) if allowed is None else np.resize(np.asarray(allowed), count)


def check_count(name: str, value: Any, most: int) -> int:
    """Refuse what does not count anything."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not 1 <= int(value) <= most:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {most:,}, not {shown(value)}")
    return int(value)


def stand_in_table(schema: Schema, rows: int = STAND_INS, seed: int = 0) -> pa.Table:
    """Rows that fit the schema: numbers crowd towards one bound, few categories are common, columns hang together.

    Any two columns have correlation 1/2, through one factor that all share. A person has one row.
    """
    random = np.random.default_rng(seed)
    shared = random.standard_normal(rows)
    columns = {
        name: _cells(column, _places(shared, random), random) for name, column in schema.columns.items()
    }
    if schema.person is not None:
        columns[schema.person] = np.arange(rows)
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
