"""Kernels on Adult and CoverType with the product's defaults: test error, seconds, peak memory.

    PRIVLEARN_DATA=... python benchmarks/kernels.py [adult] [covertype] [--seeds 3] [--mechanisms auto]

Adult: RBF kernel on the schema encoding, 300 public points from the test part, delta 1e-5.
CoverType: class 2 against the rest, kernel (<x, y> + 1)^3, 500,000 training rows, 300 public points, delta 1e-6.
Seeded, so that the table can be repeated; no test error is used to choose anything.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from privlearn import PrivateSVC, Schema
from privlearn.data.datasets import load_adult
from privlearn.papers.jt13_covertype import POINTS, covertype

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
Split = tuple[Any, Any, Any, Any, Any]


def adult(seed: int) -> Split:
    """Training table and labels, public points, test table and labels."""
    table = load_adult()
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(0.8 * len(order))
    train, points, test = (table.take(part) for part in np.split(order, [cut, cut + POINTS]))
    return train, np.array(train["income"].to_pylist()), points, test, np.array(test["income"].to_pylist())


CASES: dict[str, dict[str, Any]] = {
    "adult": {
        "split": adult,
        "epsilons": (0.1, 1.0),
        "settings": {"kernel": "rbf", "delta": 1e-5, "schema": Schema.load(SCHEMA)},
    },
    "covertype": {
        "split": covertype,
        "epsilons": (0.05, 0.1),
        "settings": {
            "kernel": "polynomial",
            "delta": 1e-6,
            "norm_bound": 1.0,
            "classes": [0, 1],
            "fit_intercept": False,
        },
    },
}


def errors(case: str, seed: int, mechanisms: list[str]) -> Iterator[tuple[str, float, float, float]]:
    """(mechanism, epsilon, test error, seconds of the fit)."""
    spec = CASES[case]
    train, labels, points, test, truth = spec["split"](seed)
    for mechanism in mechanisms:
        for epsilon in spec["epsilons"]:
            model = PrivateSVC(
                epsilon=epsilon,
                mechanism=mechanism,
                public_points=points,
                random_state=seed,
                **spec["settings"],
            )
            start = time.perf_counter()
            model.fit(train, labels)
            yield mechanism, epsilon, 1 - model.score(test, truth), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--mechanisms", nargs="+", default=["auto", "function_release", "tddl"])
    arguments = parser.parse_args()
    print(f"{'data':<10} {'mechanism':<18} {'epsilon':>8} {'seed':>5} {'error':>8} {'seconds':>8}")
    for case in arguments.cases:
        for seed in range(arguments.seeds):
            for mechanism, epsilon, error, seconds in errors(case, seed, arguments.mechanisms):
                print(
                    f"{case:<10} {mechanism:<18} {epsilon:8g} {seed:5d} {error:8.4f} {seconds:8.1f}",
                    flush=True,
                )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of the whole run, data included: {peak:.1f} GB")


if __name__ == "__main__":
    main()
