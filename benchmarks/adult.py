"""Adult with the product's defaults: mean test error against epsilon, 80/20 splits, no tuning.

    PRIVLEARN_DATA=... python benchmarks/adult.py [--seeds 10]

The splits and the noise are seeded so that the table can be repeated; nothing here looks at test errors to choose.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from rich.progress import track

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema
from privlearn.data.datasets import load_adult

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DELTA = 1e-5
ESTIMATORS = (PrivateLogisticRegression, PrivateSVC)
EPSILONS = {"replace_one": (0.1, 0.5, 1.0, 4.0, math.inf), "zero_out": (0.1, 0.5, 1.0)}
WANTED = {"replace_one": (0.171, 0.156, 0.152, 0.148, 0.146), "zero_out": (0.165, 0.153, 0.150)}


def mean_error(estimator: type, epsilon: float, neighbours: str, seeds: int) -> float:
    """Mean test error over random 80/20 splits."""
    table, schema = load_adult(), Schema.load(SCHEMA)
    errors = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(table.num_rows)
        cut = int(0.8 * table.num_rows)
        train, test = table.take(order[:cut]), table.take(order[cut:])
        model = estimator(
            epsilon=epsilon, delta=DELTA, neighbours=neighbours, schema=schema, random_state=seed
        )
        errors.append(1.0 - model.fit(train).score(test, np.array(test["income"].to_pylist())))
    return float(np.mean(errors))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    cells = [
        (estimator, neighbours, epsilon, wanted)
        for estimator in ESTIMATORS
        for neighbours in EPSILONS
        for epsilon, wanted in zip(EPSILONS[neighbours], WANTED[neighbours], strict=True)
    ]
    rows = [
        (estimator.__name__, neighbours, epsilon, mean_error(estimator, epsilon, neighbours, seeds), wanted)
        for estimator, neighbours, epsilon, wanted in track(cells, description="Adult", transient=True)
    ]
    print(f"{'estimator':<26} {'neighbours':<12} {'epsilon':>8} {'error':>8} {'wanted':>8}")
    for name, neighbours, epsilon, error, wanted in rows:
        print(f"{name:<26} {neighbours:<12} {epsilon:8g} {error:8.4f} {wanted:8.3f}")


if __name__ == "__main__":
    main()
