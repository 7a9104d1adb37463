"""What tuning costs, on Adult: the default, private searches over five regularizations, and the best in hindsight.

    PRIVLEARN_DATA=... python benchmarks/tuning.py [--seeds 5] [--epsilons 0.1 1]

Mean test error over random 80/20 splits, logistic regression, delta 1e-5. "public rows" sets 1,000 rows of the training
part aside as if they were public. The best in hindsight looks at test errors to choose, which nobody may.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from privlearn import PrivateGridSearch, PrivateLogisticRegression, Schema
from privlearn.data.datasets import load_adult

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DELTA = 1e-5
GRID = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
PUBLIC_ROWS = 1000


def errors(epsilon: float, seed: int) -> dict[str, Any]:
    """Test error of each way on one split; in hindsight, of each candidate."""
    table, schema = load_adult(), Schema.load(SCHEMA)
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(0.8 * table.num_rows)
    train, test = table.take(order[:cut]), table.take(order[cut:])
    public, rest = train.slice(0, PUBLIC_ROWS), train.slice(PUBLIC_ROWS)
    promise: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}

    def search(rows: Any, **settings: Any) -> float:
        model = PrivateLogisticRegression(schema=schema)
        tuned = PrivateGridSearch(model, {"regularization": GRID}, **promise, **settings)
        return 1.0 - tuned.fit(rows).score(test)

    def fitted(regularization: str | float) -> float:
        model = PrivateLogisticRegression(schema=schema, regularization=regularization, **promise)
        return float(1.0 - model.fit(train).score(test))

    return {
        "default, no tuning": fitted("auto"),
        "every candidate": search(train, method="every_candidate"),
        "random stopping": search(train, method="random_stopping"),
        "partition": search(train, method="partition"),
        "public rows": search(rest, public_validation=public),
        "best in hindsight": [fitted(value) for value in GRID],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0])
    options = parser.parse_args()
    for epsilon in options.epsilons:
        runs = [errors(epsilon, seed) for seed in track(range(options.seeds), transient=True)]
        print(f"epsilon {epsilon:g}")
        for name in runs[0]:
            means = np.mean([run[name] for run in runs], axis=0)
            spread = np.std([np.min(run[name]) for run in runs])
            print(f"  {name:<20} {np.min(means):.4f}  (a run's deviation {spread:.4f})")
        print(f"  each of the grid     {' '.join(f'{mean:.4f}' for mean in means)}")


if __name__ == "__main__":
    main()
