"""A person may weigh more than one record: mechanisms and regularizations, on tables that the rule was not chosen on.

    PRIVLEARN_DATA=... python benchmarks/capped.py [--splits 3] [--epsilons 0.3 1] [--tables visits adult]
        [--ways default output]

`visits` is simulated: persons with 1 to 40 rows, a column of persons that nobody may use, rows_per_person: 40. `adult`
is the census table under rows_per_person: 10. Ways: the default; output perturbation; the rule of
docs/theory/regularization.md for such persons left out; its flat balance divided or multiplied by 9, and uncentred.
Error and AUC are those of rows of other people.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score

from privlearn import PrivateLogisticRegression, Schema
from privlearn.data.datasets import load_adult
from privlearn.estimators import calibration

ADULT = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DELTA = 1e-6
VISITS: dict[str, Any] = {
    "name": "visits",
    "rows_per_person": 40,
    "columns": {
        "age": {"type": "number", "lower": 18, "upper": 95},
        "sex": {"type": "category", "values": ["f", "m"]},
        "pressure": {"type": "number", "lower": 60, "upper": 240},
        "ward": {"type": "category", "values": list("ABCDEFGH")},
        "stays": {"type": "number", "lower": 0, "upper": 50, "scale": "log"},
    },
    "target": {"name": "outcome", "classes": ["well", "ill"]},
}


def visits(persons: int, seed: int) -> pa.Table:
    """Effects are additive and of ordinary size; each person has a level of their own, of deviation 1."""
    source = np.random.default_rng(seed)
    rows = np.where(source.random(persons) < 0.4, 1, source.integers(1, 41, persons))
    of = np.repeat(np.arange(persons), rows)
    age = source.integers(18, 96, persons)[of]
    sex, level = source.choice(["f", "m"], persons)[of], source.normal(size=persons)[of]
    pressure = np.clip(source.normal(120 + 0.3 * (age - 50), 15), 60, 240)
    ward, stays = source.choice(list("ABCDEFGH"), len(of)), np.minimum(source.geometric(0.3, len(of)) - 1, 50)
    score = 0.04 * (age - 55) + 0.03 * (pressure - 120) + 0.8 * (sex == "m") + 0.4 * np.log1p(stays) + level
    score += 0.5 * np.isin(ward, ["A", "B"]) - 0.7
    ill = score + source.logistic(size=len(of)) > 0
    columns = {"age": age, "sex": sex, "pressure": pressure, "ward": ward, "stays": stays}
    return pa.table({**columns, "outcome": np.where(ill, "ill", "well")})


def tables(name: str, seed: int) -> tuple[Schema, pa.Table, pa.Table]:
    """Return a schema with the cap, rows to learn from, and rows of other people."""
    if name == "visits":
        return Schema.from_dict(VISITS), visits(4000, seed), visits(1000, 1000 + seed)
    table, content = load_adult(), Schema.load(ADULT).to_dict()
    content.pop("one_row_per_person", None)
    order = np.random.default_rng(seed).permutation(len(table))
    parts = np.split(order, [len(table) * 4 // 5])
    train, test = (table.take(part) for part in parts)
    return Schema.from_dict(content | {"rows_per_person": 10}), train, test


RULE = calibration._heavy_balance


WAYS: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("default", 1.0, {}),
    ("output", 1.0, {"mechanism": "output"}),
    ("without the rule", 0.0, {}),
    ("rule / 3", 1 / 9, {"centre": False}),
    ("rule, not centred", 1.0, {"centre": False}),
    ("rule x 3", 9.0, {"centre": False}),
)


def ways() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name each way, with its parameters; the rule is replaced while the caller fits."""
    for name, factor, parameters in WAYS:
        scaled = partial(_scaled, factor)
        setattr(calibration, "_heavy_balance", scaled)  # noqa: B010 - mypy takes it for a constant
        yield name, parameters
    setattr(calibration, "_heavy_balance", RULE)  # noqa: B010


def _scaled(factor: float, task: Any, deviation: float) -> float:
    return factor * RULE(task, deviation)


def measured(names: list[str], splits: int, epsilons: list[float], chosen: list[str]) -> None:
    print("table   epsilon  way                N Lambda  mechanism  error and AUC")
    for name in names:
        for epsilon in epsilons:
            for way, parameters in ways():
                if chosen and way not in chosen:
                    continue
                results = []
                for seed in range(splits):
                    schema, train, test = tables(name, seed)
                    assert schema.target is not None
                    model = PrivateLogisticRegression(
                        epsilon=epsilon, delta=DELTA, schema=schema, random_state=seed, **parameters
                    ).fit(train)
                    truth = np.array(test[schema.target.name].to_pylist()) == schema.target.classes[1]
                    scores = model.predict_proba(test)[:, 1]
                    results.append((float(np.mean((scores > 0.5) != truth)), roc_auc_score(truth, scores)))
                mechanism = model.certificate_.mechanism
                strength = mechanism.task.total * mechanism.task.regularization
                means, spreads = np.mean(results, 0), np.std(results, 0, ddof=1) / math.sqrt(splits)
                print(
                    f"{name:<7} {epsilon:>7g}  {way:<18} {strength:>8.1f}  {mechanism.name:<9}  "
                    f"{means[0]:.4f} +- {spreads[0]:.4f}  {means[1]:.4f} +- {spreads[1]:.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0])
    parser.add_argument("--tables", nargs="+", default=["visits", "adult"])
    parser.add_argument("--ways", nargs="+", default=[], help="some of the ways; all by default")
    arguments = parser.parse_args()
    measured(arguments.tables, arguments.splits, arguments.epsilons, arguments.ways)
