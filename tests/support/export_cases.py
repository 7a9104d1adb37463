"""Releases to export, and rows with gaps, values that nobody listed and numbers beyond their bounds."""

from __future__ import annotations

import dataclasses
import datetime
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from privlearn import PrivateLogisticRegression, PrivateRegressor, PrivateSVC, Release, Schema
from privlearn.data import ArrayEncoder, SchemaEncoder
from privlearn.data.encoding import CentredEncoder
from privlearn.release import Decision, LinearModel, Model, RegressionModel

_JOBS = ["nurse", "o'clock", 'a "quoted" one', "<b>"]
_GRADES = ["never", "sometimes", "often", "always"]
_DAY = datetime.date(2015, 1, 1)
_PAIRS = [["age", "job"], ["hour", "income"], ["grade", "seen"]]


def raw_table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Clean but for its numbers, some of which lie beyond the bounds or on a bin's border."""
    random = np.random.default_rng(seed)
    incomes = np.exp(random.normal(8, 3, rows))
    return pd.DataFrame(
        {
            "age": random.integers(-20, 140, rows).astype(float),
            "income": np.where(random.random(rows) < 0.2, 2.0 ** random.integers(0, 19, rows) - 1.0, incomes),
            "hour": random.uniform(-2, 26, rows).round(1),
            "grade": random.choice(_GRADES, rows).astype(object),
            "job": random.choice(_JOBS, rows).astype(object),
            "rooms": random.integers(1, 5, rows).astype(float),
            "smoker": random.choice([True, False], rows).astype(object),
            "seen": [(_DAY + datetime.timedelta(int(d))).isoformat() for d in random.integers(-99, 4000, rows)],
        }
    )  # fmt: skip


def dirty_table(rows: int, seed: int = 1) -> pd.DataFrame:
    """Return a table with missing cells in every column, and values that are not in the schema."""
    random = np.random.default_rng(seed)
    table = raw_table(rows, seed)
    table.loc[random.random(rows) < 0.1, "grade"] = "?"
    table.loc[random.random(rows) < 0.1, "job"] = "astronaut"
    table.loc[random.random(rows) < 0.1, "rooms"] = 99.0
    table.loc[random.random(rows) < 0.02, "age"] = np.inf
    for name in table.columns:
        table.loc[random.random(rows) < 0.05, name] = None
    table.iloc[0] = None  # and a row that says nothing
    return table


def schema_for(target: dict[str, Any], pairs: Any = "none", **bins: int) -> Schema:
    columns: dict[str, dict[str, Any]] = {
        "age": {"type": "number", "lower": 0, "upper": 120},
        "income": {"type": "number", "lower": 0, "upper": 2**18 - 1, "scale": "log"},
        "hour": {"type": "number", "period": 24},
        "grade": {"type": "ordinal", "values": _GRADES, "unknown": "zero"},
        "job": {"type": "category", "values": _JOBS, "unknown": "other"},
        "rooms": {"type": "category", "values": [1, 2, 3, 4], "unknown": "zero"},
        "smoker": {"type": "category", "values": [True, False]},
        "seen": {"type": "date", "lower": "2015-01-01", "upper": "2025-01-01", "encoding": "linear"},
    }
    for name, column in columns.items():
        column["missing"] = "zero"
        if name in bins:
            column["bins"] = bins[name]
    return Schema.from_dict({"name": 'cli"nic', "columns": columns, "target": target, "pairs": pairs})


ILL = {"name": "ill", "classes": ["no", "yes"]}
KIND = {"name": "kind", "classes": [3, 1, 2]}
COST = {"name": "cost", "lower": -1.0, "upper": 2.0}
_FINE = {"income": 64, "hour": 48}


@cache
def exported_releases() -> dict[str, Release]:
    """Trained: two classes, several, a number; with bins and pairs, and centred without them."""
    table = raw_table(1500)
    hidden = table.age / 100 + (table.job == "nurse") - 0.7
    ill, kind = np.where(hidden > 0, "yes", "no"), np.digitize(hidden, [-0.3, 0.4]) + 1
    ill_table, coarse = table.assign(ill=ill), schema_for(ILL)
    settings: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-6, "random_state": 1, "accept_weak_privacy": True}
    fine, several, amount = (
        schema_for(ILL, _PAIRS, **_FINE),
        schema_for(KIND, _PAIRS),
        schema_for(COST, _PAIRS, age=7),
    )
    return {
        "two": PrivateLogisticRegression(schema=fine, **settings).fit(ill_table).release_,
        "several": PrivateLogisticRegression(schema=several, **settings)
        .fit(table.assign(kind=kind))
        .release_,
        "number": PrivateRegressor(schema=amount, **settings).fit(table.assign(cost=hidden)).release_,
        "centred": PrivateLogisticRegression(schema=coarse, centre=True, **settings).fit(ill_table).release_,
        "odds": PrivateSVC(schema=coarse, probability=True, **settings).fit(ill_table).release_,
    }


def with_model(release: Release, model: Model) -> Release:
    """Another model under the same certificate: what is made up is never saved."""
    return dataclasses.replace(release, model=model, evaluation=None)


def made_up_models() -> dict[str, Model]:
    """Kinds that a short training does not bring, with coefficients out of the air."""
    random = np.random.default_rng(5)
    centred = SchemaEncoder(schema_for(ILL))
    unresolved = SchemaEncoder(schema_for(KIND), fit_intercept=False)

    def weights(rows: int, encoder: Any) -> Any:
        return random.normal(0.0, 3.0, (rows, encoder.dimension))

    steep, labels = weights(1, centred) * 300.0, np.array(["no", "yes"])
    decided = Decision(0.7, (0.2, 0.2, 0.6), (0.1, 0.3, 0.9))
    mean = random.normal(0.0, 0.1, unresolved.dimension)
    return {
        "steep": LinearModel(centred, steep, labels, "logistic"),
        "scores": LinearModel(centred, weights(1, centred), labels, "none", decision=Decision(0.25)),
        "decided": LinearModel(centred, weights(1, centred), labels, "logistic", decision=decided),
        "sure": LinearModel(centred, weights(1, centred), labels, "logistic", decision=Decision(1.0)),
        "softmax of two": LinearModel(centred, weights(2, centred), labels, "softmax"),
        "one against the rest": LinearModel(
            unresolved, weights(3, unresolved), np.array([3, 1, 2]), "logistic"
        ),
        "several scores": LinearModel(unresolved, weights(3, unresolved), np.array([3, 1, 2]), "none"),
        "several centred": LinearModel(
            CentredEncoder(unresolved, mean, 0.4), weights(3, unresolved), np.array([3, 1, 2]), "softmax"
        ),
    }


def array_models() -> dict[str, Model]:
    """Return models of plain arrays with five columns."""
    random = np.random.default_rng(6)
    encoder = ArrayEncoder(2.0, 5)
    weights = random.normal(0.0, 2.0, (2, encoder.dimension))
    bounds = ((0.0, 1.0), (-10.0, 30.0))
    mean = random.normal(0.0, 0.1, 5)
    return {
        "two numbers": RegressionModel(encoder, weights, bounds),
        "centred array": RegressionModel(CentredEncoder(encoder, mean, 0.3), weights, bounds),
    }
