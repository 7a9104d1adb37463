"""Random tables of many shapes: evidence for rules whose constants were chosen on other tables.

>>> table = random_table(7)
>>> sorted(table.schema)
['columns', 'name', 'target']

A table has 2 to 40 columns, of which any share are categories of 2 to 30 values; numbers are normal, uniform,
log-normal, counts or mostly 0, with bounds up to 4 times too wide; columns share up to 4 factors. Few or all columns
count, along lines, steps, parabolas and one product. Log-odds have a deviation of 0.5 to 6, the rarer class a share of
2 to 50 %; of every third table the target is a number, with an R^2 of 0.1 to 0.9.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from privlearn.estimators.forecast.reference import log_odds_centre

RECORDS = 45_000

Rng = np.random.Generator


class RandomTable(NamedTuple):
    schema: dict[str, Any]
    cells: dict[str, np.ndarray]


def random_table(seed: int) -> RandomTable:
    rng = np.random.default_rng([31, seed])
    factors = rng.normal(size=(RECORDS, rng.integers(1, 5)))
    count, categories, common = round(_log_uniform(rng, 2, 40)), rng.random(), rng.random()
    columns, cells, effects = {}, {}, []
    for index in range(count):
        weights = rng.dirichlet(np.ones(factors.shape[1]))
        shared = factors @ weights / np.linalg.norm(weights)
        latent = math.sqrt(common) * shared + math.sqrt(1.0 - common) * rng.normal(size=RECORDS)
        make = _category if rng.random() < categories else _number
        columns[f"x{index}"], cells[f"x{index}"], effect = make(rng, latent)
        effects.append(effect / max(effect.std(), 1e-9) * rng.normal() * (rng.random() < 0.3 or not index))
    if count > 2 and rng.random() < 0.5:
        effects.append(effects[0] * effects[1])
    signal = sum(effects) - np.mean(sum(effects))
    target, answers = _target(rng, signal / signal.std(), is_number=seed % 3 == 0)
    schema = {"name": f"shape-{seed}", "columns": columns, "target": target}
    return RandomTable(schema, cells | {"y": answers})


def _log_uniform(rng: Rng, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _category(rng: Rng, latent: np.ndarray) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    count = round(_log_uniform(rng, 2, 30))
    bounds = np.quantile(latent, np.cumsum(rng.dirichlet(np.ones(count)))[:-1])
    indices = rng.permutation(count)[np.searchsorted(bounds, latent)]
    values = [f"v{index}" for index in range(count)]
    return {"type": "category", "values": values}, np.array(values)[indices], rng.normal(size=count)[indices]


def _number(rng: Rng, latent: np.ndarray) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    kind = rng.integers(5)
    column: dict[str, Any] = {"type": "number"}
    if kind == 0:
        cells = 50.0 + 10.0 * latent
    elif kind == 1:  # uniform
        cells = np.argsort(np.argsort(latent)) / len(latent)
    elif kind == 2:  # log-normal
        cells = np.exp(3.0 + 1.2 * latent)
        column["scale"] = "log"
    elif kind == 3:  # counts
        cells = np.floor(np.exp(0.8 * latent))
    else:  # mostly 0
        cells = np.maximum(latent - 0.7, 0.0) * 1000.0
    slack = _log_uniform(rng, 1.0, 4.0)
    low, high = float(cells.min()), float(cells.max())
    column["lower"], column["upper"] = (
        (0.0, slack * high) if kind > 1 else (low - (slack - 1.0) / 2.0 * (high - low), high + slack - 1.0)
    )
    shape = rng.integers(3)
    effect = latent if shape == 0 else (latent > rng.normal()).astype(float) if shape == 1 else latent**2
    return column, cells, effect


def _target(rng: Rng, signal: np.ndarray, *, is_number: bool) -> tuple[dict[str, Any], np.ndarray]:
    if is_number:
        share = rng.uniform(0.1, 0.9)
        value = math.sqrt(share) * signal + math.sqrt(1.0 - share) * rng.normal(size=len(signal))
        answers = np.exp(value) if rng.random() < 0.3 else 20.0 + value
        slack = _log_uniform(rng, 1.0, 30.0)
        return {
            "name": "y",
            "lower": min(0.0, float(answers.min())),
            "upper": slack * float(answers.max()),
        }, answers
    deviation, rate = _log_uniform(rng, 0.5, 6.0), _log_uniform(rng, 0.02, 0.5)
    odds = deviation * signal + log_odds_centre(deviation, rate)
    labels = np.where(rng.random(len(odds)) < 1.0 / (1.0 + np.exp(-odds)), "yes", "no")
    return {"name": "y", "classes": ["no", "yes"]}, labels
