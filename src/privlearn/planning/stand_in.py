"""Made-up rows under a schema: stand-ins for private ones, with a target that depends on them."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from privlearn.arrays import Array
from privlearn.data.encode.bounded_arrays import schema_of_bounds
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.made_up import cells_at
from privlearn.data.schema.columns import AnyColumn, CategoryColumn, Target, TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, shown
from privlearn.features.kernel import row_count
from privlearn.planning.estimate import LOG_ODDS_SPREAD, TARGET_SPREAD

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
    if isinstance(points, str):
        points = None  # made from the schema, which fits made-up rows just as well
    if columns is not None and (schema is not None or points is not None):
        raise InvalidParameter("the schema or the public points say it all: leave out columns")
    if points is not None and (schema is None or schema.person is None):
        return points, _answers(estimator, row_count(points))
    if schema is not None:
        return stand_in_table(schema), _answers(estimator, STAND_INS)
    if estimator.column_bounds is not None:
        table = stand_in_table(schema_of_bounds(estimator.column_bounds))
        return np.column_stack([column.to_numpy() for column in table.columns]), _answers(
            estimator, STAND_INS
        )
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
    if allowed is None:
        return np.zeros(count)
    values = np.asarray(allowed).T  # of several numbers: a row of lower ends, then one of upper ends
    return np.resize(values, (count, *values.shape[1:]))


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
        name: _cells(name, column, _places(shared, random), random) for name, column in schema.columns.items()
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


def _cells(name: str, column: AnyColumn, places: Array, random: np.random.Generator) -> Any:
    match column:
        case CategoryColumn():
            shares = np.arange(1.0, len(column.values) + 1.0) ** -_RARITY
            chosen = np.searchsorted(np.cumsum(shares[:-1]) / shares.sum(), places)
            return np.array(column.values)[chosen]
        case TextColumn():
            words = np.minimum(random.zipf(_ZIPF, (len(places), _WORDS)), _VOCABULARY)
            return [" ".join(f"word{word}" for word in text) for text in words]
    return cells_at(name, column, 1.0 - (1.0 - places) ** (1.0 / _CROWDED))


MOST_ROWS = 1_000_000
_RULE = 1  # seed of what the columns have to do with the target: tables of all seeds follow one rule


def synthetic_table(schema: Schema, rows: int, seed: int) -> pa.Table:
    """Stand-in rows whose target, if there is one, depends on the columns as in a problem of ordinary difficulty.

    Labels are drawn by log-odds, numbers are a signal plus as much noise, both linear in the encoded columns. The rule
    is the same for every seed, so that what is learnt from one table can be tested on another.

    Parameters
    ----------
    schema : Schema
    rows : int
    seed : int
        At least 0.
    """
    check_count("rows", rows, MOST_ROWS)
    check_count("seed + 1", seed + 1, 2**32)
    table = stand_in_table(schema, rows, seed)
    if schema.target is None:
        return table
    functions = max(len(schema.target.classes), 1)
    random = np.random.default_rng([_RULE, seed])
    return table.append_column(
        schema.target.name, _drawn_answers(schema.target, _signals(schema, table, functions), random)
    )


def _signals(schema: Schema, table: pa.Table, functions: int) -> Array:
    """Random linear functions of the encoded rows, each of mean 0 and deviation 1 on stand-in rows."""
    encoder = SchemaEncoder(schema, fit_intercept=False)
    directions = np.random.default_rng(_RULE).standard_normal((encoder.dimension, functions))
    usual = np.asarray(encoder.encode(stand_in_table(schema)) @ directions)
    spread = np.maximum(usual.std(axis=0), 1e-12)
    return np.asarray((encoder.encode(table) @ directions - usual.mean(axis=0)) / spread)


def _drawn_answers(target: Target, signals: Array, random: np.random.Generator) -> pa.Array:
    if target.bounds is not None:
        lower, upper = target.bounds
        noise = random.standard_normal(len(signals))
        scaled = np.clip(TARGET_SPREAD * (signals[:, 0] + noise), -1.0, 1.0)
        return pa.array(lower + (scaled + 1.0) / 2.0 * (upper - lower))
    # The difference of two such scores has the typical problem's spread, and Gumbel noise makes log-odds of scores.
    scores = LOG_ODDS_SPREAD / np.sqrt(2.0) * signals + random.gumbel(size=signals.shape)
    labels: Any = np.array(target.classes)[np.argmax(scores, axis=1)]
    return pa.array(labels.tolist())
