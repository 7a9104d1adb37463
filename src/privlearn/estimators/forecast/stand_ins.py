"""Synthetic rows under a schema, which replace private ones in forecasts; with a target that depends on them."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from privlearn.arrays import Array
from privlearn.data.datasets import cells_at
from privlearn.data.encoding.arrays import schema_of_bounds
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.schema.columns import AnyColumn, CategoryColumn, TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.forecast.reference import LOG_ODDS_DEVIATION, TARGET_DEVIATION
from privlearn.features.kernel import row_count
from privlearn.features.map_encoder import choose_map
from privlearn.features.public_map import PublicMap
from privlearn.features.scattering import ScatteringFeatures
from privlearn.features.texts import TextFeatures

STAND_INS = 2000
MAX_COLUMNS = 20_000  # more would not fit into the memory of a small machine
_CORRELATION = 0.5
_CROWDED = 4.0  # numbers follow Beta(1, 4) between their bounds: most lie near one end
_RARITY = 2.0  # the k-th category of a list has a share proportional to 1/k^2
_WORD_COUNT = 30
_VOCABULARY = 20_000
_ZIPF = 1.3


def stand_ins(estimator: Any, columns: int | None, count: int = STAND_INS) -> tuple[Any, Any]:
    """Return rows like those that an estimator would be fitted on, with answers, which do not affect a forecast.

    Public points are used if there are any, except that they lack person and weight columns.
    """
    schema, points = estimator.schema, getattr(estimator, "public_points", None)
    if isinstance(points, str):
        points = None  # simulated from the schema, as the rows below
    if columns is not None and any(each is not None for each in (schema, points, estimator.features)):
        raise InvalidParameter("the schema, features or public points describe the rows. Leave out columns")
    if points is not None and (schema is None or (schema.person is None and schema.weight is None)):
        return points, _answers(estimator, row_count(points))
    if schema is not None:
        return stand_in_table(schema, count), _answers(estimator, count)
    if estimator.column_bounds is not None:
        table = stand_in_table(schema_of_bounds(estimator.column_bounds), count)
        return np.column_stack([column.to_numpy() for column in table.columns]), _answers(estimator, count)
    if estimator.features is not None:
        X = _raw_rows(choose_map(estimator.features, None), count)
        return X, _answers(estimator, len(X))
    if columns is None:
        raise InvalidParameter(
            "the rows are not described. Give the estimator a schema, or pass the number of columns, columns=20"
        )
    bound = 1.0 if estimator.norm_bound is None else estimator.norm_bound
    width = check_count("columns", columns, MAX_COLUMNS)
    return stand_in_array(width, bound, count), _answers(estimator, count)


def _raw_rows(features: PublicMap, count: int) -> Any:
    """Return rows for a public map: texts, drawings, or normal numbers for a public network."""
    if isinstance(features, TextFeatures):
        return _texts(np.random.default_rng(0), count)
    if isinstance(features, ScatteringFeatures):
        return features.drawings(count)
    return stand_in_array(features.n_inputs, math.sqrt(features.n_inputs), count)


def _answers(estimator: Any, count: int) -> Any:
    if estimator.schema is not None:
        target = estimator.schema.target
        allowed: Any = None if target is None else target.classes or target.bounds
    else:
        allowed = estimator.target_bounds if hasattr(estimator, "target_bounds") else estimator.classes
    if allowed is None:
        return np.zeros(count)
    values = np.asarray(allowed).T  # for several numbers: a row of lower bounds, then one of upper bounds
    return np.resize(values, (count, *values.shape[1:]))


def check_count(name: str, value: Any, maximum: int) -> int:
    """Return a count; refuse anything but a whole number from 1 to ``maximum``."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not 1 <= int(value) <= maximum:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {maximum:,}, not {preview(value)}")
    return int(value)


def stand_in_table(schema: Schema, rows: int = STAND_INS, seed: int = 0) -> pa.Table:
    """Return rows that fit the schema: numbers lie near one bound, few categories are common, columns correlate.

    Any two columns have correlation 1/2, through one shared factor. A person has one row, of mean weight.
    """
    random = np.random.default_rng(seed)
    shared = random.standard_normal(rows)
    columns = {
        name: _cells(name, column, _quantiles(shared, random), random)
        for name, column in schema.columns.items()
    }
    if schema.person is not None:
        columns[schema.person] = np.arange(rows)
    if schema.weight is not None:
        columns[schema.weight.column] = np.full(rows, schema.weight.mean)
    return pa.table(columns)


def stand_in_array(columns: int, norm_bound: float, count: int = STAND_INS) -> Array:
    """Return normal columns of correlation 1/2, with rows of about the norm of their bound."""
    random = np.random.default_rng(0)
    own = random.standard_normal((count, columns))
    return _correlate(random.standard_normal((count, 1)), own) * norm_bound / math.sqrt(columns)


def _quantiles(shared: Array, random: np.random.Generator) -> Array:
    """Return uniform numbers in [0, 1], correlated with the shared factor."""
    return np.asarray(ndtr(_correlate(shared, random.standard_normal(len(shared)))))


def _correlate(shared: Array, own: Array) -> Array:
    return math.sqrt(_CORRELATION) * shared + math.sqrt(1.0 - _CORRELATION) * own


def _cells(name: str, column: AnyColumn, quantiles: Array, random: np.random.Generator) -> Any:
    match column:
        case CategoryColumn():
            shares = np.arange(1.0, len(column.values) + 1.0) ** -_RARITY
            indices = np.searchsorted(np.cumsum(shares[:-1]) / shares.sum(), quantiles)
            return np.array(column.values)[indices]
        case TextColumn():
            return _texts(random, len(quantiles))
    return cells_at(name, column, 1.0 - (1.0 - quantiles) ** (1.0 / _CROWDED))


def _texts(random: np.random.Generator, count: int) -> list[str]:
    vocabulary_indices = np.minimum(random.zipf(_ZIPF, (count, _WORD_COUNT)), _VOCABULARY)
    return [" ".join(f"word{number}" for number in text) for text in vocabulary_indices]


MAX_ROWS = 1_000_000
_RULE = 1  # seed of the rule by which the target depends on the columns, the same for tables of all seeds


def synthetic_table(schema: Schema, rows: int, seed: int) -> pa.Table:
    """Return synthetic rows whose target, if there is one, depends on the columns as in the reference problem.

    Labels are drawn by log-odds, numbers are a signal plus as much noise, both linear in the encoded columns. The rule
    is the same for every seed, so that a model of one table can be tested on another.

    Parameters
    ----------
    schema : Schema
    rows : int
    seed : int
        At least 0.
    """
    check_count("rows", rows, MAX_ROWS)
    check_count("seed + 1", seed + 1, 2**32)
    table = stand_in_table(schema, rows, seed)
    if schema.target is None:
        return table
    functions = max(len(schema.target.classes), 1)
    random = np.random.default_rng([_RULE, seed])
    return table.append_column(
        schema.target.name, _draw_answers(schema.target, _signals(schema, table, functions), random)
    )


def _signals(schema: Schema, table: pa.Table, functions: int) -> Array:
    """Return random linear functions of the encoded rows, each of mean 0 and deviation 1 on stand-in rows."""
    encoder = SchemaEncoder(schema, fit_intercept=False)
    directions = np.random.default_rng(_RULE).standard_normal((encoder.dimension, functions))
    usual = np.asarray(encoder.encode(stand_in_table(schema)) @ directions)
    deviation = np.maximum(usual.std(axis=0), 1e-12)
    return np.asarray((encoder.encode(table) @ directions - usual.mean(axis=0)) / deviation)


def _draw_answers(target: Target, signals: Array, random: np.random.Generator) -> pa.Array:
    if target.bounds is not None:
        lower, upper = target.bounds
        noise = random.standard_normal(len(signals))
        scaled = np.clip(TARGET_DEVIATION * (signals[:, 0] + noise), -1.0, 1.0)
        return pa.array(lower + (scaled + 1.0) / 2.0 * (upper - lower))
    # The difference of two such scores has the reference problem's deviation; Gumbel noise turns scores into log-odds.
    scores = LOG_ODDS_DEVIATION / np.sqrt(2.0) * signals + random.gumbel(size=signals.shape)
    labels: Any = np.array(target.classes)[np.argmax(scores, axis=1)]
    return pa.array(labels.tolist())
