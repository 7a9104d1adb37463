"""Adult under add/remove neighbours: mean test error with a public guess of the number of records, right and wrong.

    PRIVLEARN_DATA=... python benchmarks/add_remove.py [--seeds 10] [--epsilon 1]

The splits and the noise are those of benchmarks/adult.py. Under zero_out the number of records is public; under
add_remove it is not, and a guess takes its place in the objective and in the default regularization.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.progress import track

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema
from privlearn.data.datasets import load_adult

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DELTA = 1e-5
ESTIMATORS = (PrivateLogisticRegression, PrivateSVC)
GUESSES = {
    "zero_out": None,
    "add_remove, exact": 1.0,
    "30,000": 30_000,
    "half": 0.5,
    "twice": 2.0,
    "a quarter": 0.25,
    "four times": 4.0,
}


def splits(seeds: int) -> list[tuple[pa.Table, pa.Table]]:
    table, parts = load_adult(), []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(table.num_rows)
        cut = int(0.8 * table.num_rows)
        parts.append((table.take(order[:cut]), table.take(order[cut:])))
    return parts


def relation(guess: float | None, records: int) -> dict[str, Any]:
    if guess is None:
        return {"neighbours": "zero_out"}
    expected = int(guess) if isinstance(guess, int) else round(guess * records)
    return {"neighbours": "add_remove", "expected_records": expected}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    schema, parts = Schema.load(SCHEMA), splits(asked.seeds)
    print(f"{'estimator':<26} {'guess':<18} {'error':>8} {'deviation':>10}")
    cells = [(estimator, name) for estimator in ESTIMATORS for name in GUESSES]
    for estimator, name in track(cells, description="Adult", transient=True):
        errors = []
        for seed, (train, test) in enumerate(parts):
            promise = {"epsilon": asked.epsilon, "delta": DELTA} | relation(GUESSES[name], train.num_rows)
            model = estimator(schema=schema, random_state=seed, **promise).fit(train)
            errors.append(1.0 - model.score(test, np.array(test["income"].to_pylist())))
        print(
            f"{estimator.__name__:<26} {name:<18} {np.mean(errors):8.4f} {np.std(errors):10.4f}", flush=True
        )


if __name__ == "__main__":
    main()
