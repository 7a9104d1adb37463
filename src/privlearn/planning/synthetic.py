"""Rows with answers, made up from a schema: something to try a learner on without any private value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.data import Schema, SchemaEncoder, Target
from privlearn.planning.stand_in import check_count, stand_in_table
from privlearn.planning.typical import LOG_ODDS_SPREAD, TARGET_SPREAD

Array = NDArray[np.float64]

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
        schema.target.name, _answers(schema.target, _signals(schema, table, functions), random)
    )


def _signals(schema: Schema, table: pa.Table, functions: int) -> Array:
    """Random linear functions of the encoded rows, each of mean 0 and deviation 1 on stand-in rows."""
    encoder = SchemaEncoder(schema, fit_intercept=False)
    directions = np.random.default_rng(_RULE).standard_normal((encoder.dimension, functions))
    usual = np.asarray(encoder.encode(stand_in_table(schema)) @ directions)
    spread = np.maximum(usual.std(axis=0), 1e-12)
    return np.asarray((encoder.encode(table) @ directions - usual.mean(axis=0)) / spread)


def _answers(target: Target, signals: Array, random: np.random.Generator) -> pa.Array:
    if target.bounds is not None:
        lower, upper = target.bounds
        noise = random.standard_normal(len(signals))
        scaled = np.clip(TARGET_SPREAD * (signals[:, 0] + noise), -1.0, 1.0)
        return pa.array(lower + (scaled + 1.0) / 2.0 * (upper - lower))
    # The difference of two such scores has the typical problem's spread, and Gumbel noise makes log-odds of scores.
    scores = LOG_ODDS_SPREAD / np.sqrt(2.0) * signals + random.gumbel(size=signals.shape)
    labels: Any = np.array(target.classes)[np.argmax(scores, axis=1)]
    return pa.array(labels.tolist())
