"""Probabilities of a support vector machine: bought as counts of its scores, or as two private numbers.

    PRIVLEARN_DATA=... python benchmarks/probability.py [adult bank_marketing ...] [--epsilons 0.1 1] [--splits 5]

80/20 splits, defaults, delta 1e-5. "platt" is a private logistic regression on the score, at sqrt(0.05) times epsilon:
about the noise of the counts, whose constants were chosen on Adult, bank marketing and breast cancer. Errors are by
the sign of the score, and by a probability above 1/2.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import tables
from sklearn.metrics import log_loss

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema
from privlearn.mechanisms.statistics.score_counts import REACH

Figures = dict[str, tuple[float, float, float]]


def measured(table: Any, schema: Schema, seed: int, settings: dict[str, Any]) -> Figures:
    """For each way: error by sign, error by probability, log-loss; of one split."""
    assert schema.target is not None
    target = schema.target
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(0.8 * len(order))
    train, test = table.take(order[:cut]), table.take(order[cut:])
    settings = settings | {"random_state": seed}
    truths = [np.array(part[target.name].to_pylist()) == target.classes[1] for part in (train, test)]
    svm = PrivateSVC(schema=schema, probability=True, **settings).fit(train)
    logistic = PrivateLogisticRegression(schema=schema, **settings).fit(train)
    known, asked = (
        np.clip(svm.decision_function(part), -REACH, REACH)[:, np.newaxis] for part in (train, test)
    )
    share = {"epsilon": math.sqrt(0.05) * settings["epsilon"], "norm_bound": REACH, "classes": [False, True]}
    platt = PrivateLogisticRegression(**settings | share, centre=False).fit(known, truths[0])
    ways = {
        "logistic": (logistic.decision_function(test), logistic.predict_proba(test)),
        "svm, counts": (svm.decision_function(test), svm.predict_proba(test)),
        "svm, platt": (svm.decision_function(test), platt.predict_proba(asked)),
    }
    return {
        way: (_error(scores > 0, truths[1]), _error(odds[:, 1] > 0.5, truths[1]), log_loss(truths[1], odds))
        for way, (scores, odds) in ways.items()
    }


def _error(found: Any, truth: Any) -> float:
    return float(np.mean(found != truth))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", default=["adult", "bank_marketing"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--neighbours", default="zero_out")
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    print(
        "| table | epsilon | probabilities | error by sign | error by 1/2 | log-loss |\n|---|---|---|---|---|---|"
    )
    for name in arguments.data:
        table, schema = tables.load(name)
        for epsilon in arguments.epsilons:
            settings = {"epsilon": epsilon, "delta": 1e-5, "neighbours": arguments.neighbours}
            splits = [measured(table, schema, seed, settings) for seed in range(arguments.splits)]
            for way in splits[0]:
                sign, half, loss = np.mean([split[way] for split in splits], axis=0)
                print(f"| {name} | {epsilon:g} | {way} | {sign:.4f} | {half:.4f} | {loss:.4f} |", flush=True)


if __name__ == "__main__":
    main()
