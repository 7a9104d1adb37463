"""Private evaluation: how near to the true values, and how often intervals cover the population's.

    PRIVLEARN_DATA=... python benchmarks/evaluation.py adult [--runs 400] [--epsilon 0.5]
    python benchmarks/evaluation.py coverage [--runs 1000] [--epsilon 0.5]
    python benchmarks/evaluation.py regression [--runs 200] [--epsilon 0.5]

``adult``: a release that learnt from 36,222 records is evaluated on the 9,000 others, again and again with new noise,
and compared with what scikit-learn computes from the records themselves. ``coverage``: for each run 9,000 records are
drawn anew from a simulated population of a million, so that an interval must cover noise and sampling. ``regression``:
the same for a predicted cost, with bounds that are far wider than the costs are.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rich.progress import track
from sklearn.metrics import brier_score_loss, roc_auc_score

from privlearn import NothingRecorded, PrivateLogisticRegression, Schema, evaluate
from privlearn.data.datasets import census_schema, load_adult, simulated_census
from privlearn.statistics.evaluation.metrics import QUANTILES

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DELTA = 1e-6
TEST = 9000


def truth(scores: Any, labels: Any, groups: Any) -> dict[str, float]:
    """What the records themselves say, without noise."""
    said = scores > 0.5
    found = {
        "accuracy": float(np.mean(said == labels)),
        "auc": float(roc_auc_score(labels, scores)),
        "precision": float(np.mean(labels[said])),
        "recall": float(np.mean(said[labels])),
        "false positive rate": float(np.mean(said[~labels])),
        "Brier score": float(brier_score_loss(labels, scores)),
    }
    for group in np.unique(groups):
        here = groups == group
        found[f"error, {group}"] = float(np.mean(said[here] != labels[here]))
        found[f"false positive rate, {group}"] = float(np.mean(said[here & ~labels]))
        found[f"false negative rate, {group}"] = float(np.mean(~said[here & labels]))
    return found


def told(evaluation: Any) -> dict[str, Any]:
    """The same by the evaluation."""
    found = dict(evaluation.numbers)
    for result in evaluation.groups:
        found |= {f"{name}, {result.group}": rate for name, rate in result.rates.items()}
    return found


def adult(runs: int, epsilon: float, by: str | None) -> dict[str, float]:
    """For each number the distance from the truth that 95 % of the runs keep."""
    schema, table = Schema.load(SCHEMA), load_adult()
    order = np.random.default_rng(0).permutation(table.num_rows)
    train, test = table.take(order[:-TEST]), table.take(order[-TEST:])
    model = PrivateLogisticRegression(schema=schema, epsilon=1.0, delta=DELTA).fit(train)
    true = truth(model.predict_proba(test)[:, 1], *_labels_and_groups(test, model.classes_[1]))
    distances: dict[str, list[float]] = {}
    for _ in track(range(runs), description="Adult", transient=True):
        found = told(evaluate(model.release_, test, epsilon=epsilon, delta=DELTA, by=by))
        for name in true.keys() & found.keys():
            distances.setdefault(name, []).append(abs(found[name].value - true[name]))
    return {name: float(np.quantile(distances[name], 0.95)) for name in true if name in distances}


def coverage(runs: int, epsilon: float, population: int = 1_000_000) -> dict[str, float]:
    """For each number the share of runs whose interval covers the population's value."""
    schema = census_schema()
    model = PrivateLogisticRegression(schema=schema, epsilon=1.0, delta=DELTA).fit(
        simulated_census(30_000, seed=1)
    )
    people = simulated_census(population, seed=2)
    scores = model.predict_proba(people)[:, 1]
    true = truth(scores, *_labels_and_groups(people, model.classes_[1]))
    measured = people.select(["income", "sex"]).append_column("score", [scores])
    covered: dict[str, list[bool]] = {name: [] for name in true}
    source = np.random.default_rng(3)
    for _ in track(range(runs), description="coverage", transient=True):
        drawn = measured.take(source.choice(population, TEST, replace=False))
        found = told(
            evaluate(None, drawn, scores="score", schema=schema, by="sex", epsilon=epsilon, delta=DELTA)
        )
        for name, value in true.items():
            covered[name].append(found[name].lower <= value <= found[name].upper)
    return {name: float(np.mean(hits)) for name, hits in covered.items()}


COST = Schema.from_dict(
    {
        "name": "stays",
        "one_row_per_person": True,
        "columns": {
            "days": {"type": "number", "lower": 0, "upper": 60},
            "ward": {"type": "category", "values": ["north", "south"]},
        },
        "target": {"name": "cost", "lower": 0, "upper": 40_000},
    }
)


def regression(runs: int, epsilon: float, population: int = 1_000_000) -> dict[str, Regression]:
    """Of a predicted cost: what is true, what is told on average, and how often the interval covers."""
    source = np.random.default_rng(4)
    days = source.gamma(2.0, 3.0, population).clip(0, 60)
    costs = (2000 + 400 * days + source.normal(0, 950, population)).clip(0, 40_000)
    guesses = 2000 + 390 * days
    residual = guesses - costs
    true = {
        "R2": 1 - np.mean(residual**2) / costs.var(),
        "mean absolute error": np.abs(residual).mean(),
        "root mean squared error": np.sqrt(np.mean(residual**2)),
        **{f"quantile {at}": np.quantile(residual, at) for at in QUANTILES},
    }
    found: dict[str, list[Any]] = {name: [] for name in true}
    for _ in track(range(runs), description="regression", transient=True):
        drawn = source.choice(population, TEST, replace=False)
        rows = {"days": days[drawn], "cost": costs[drawn]}
        measured = evaluate(None, rows, scores=guesses[drawn], schema=COST, epsilon=epsilon)
        quantiles = {f"quantile {at}": one for at, one in measured.residual_quantiles.items()}
        for name, one in (dict(measured.numbers) | quantiles).items():
            if one.is_known:
                found[name].append((one.value, one.upper - one.lower, one.lower <= true[name] <= one.upper))
    return {
        name: Regression(float(true[name]), len(known) / runs, *np.mean(known, axis=0).tolist())
        for name, known in found.items()
        if known
    }


class Regression(NamedTuple):
    """What the runs told of one number; ``known``: the share of them that did not call it too noisy."""

    true: float
    known: float
    mean: float
    width: float
    covered: float


def _labels_and_groups(table: pa.Table, positive: str) -> tuple[Any, Any]:
    return np.array(table["income"].to_pylist()) == positive, np.array(table["sex"].to_pylist())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("adult", "coverage", "regression"))
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--epsilon", type=float, default=0.5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", NothingRecorded)
    if asked.part == "coverage":
        for name, share in coverage(asked.runs or 1000, asked.epsilon).items():
            print(f"{name:<32} {share:.3f}")
        return
    if asked.part == "regression":
        for name, one in regression(asked.runs or 200, asked.epsilon).items():
            print(f"{name:<24} " + "  ".join(f"{key} {value:.3f}" for key, value in one._asdict().items()))
        return
    for by in (None, "sex"):
        for name, distance in adult(asked.runs or 400, asked.epsilon, by).items():
            print(f"{'by sex' if by else 'all':<8} {name:<32} {distance:.4f}", flush=True)


if __name__ == "__main__":
    main()
