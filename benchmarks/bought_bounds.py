"""A census table with no bounds at all: bounds bought with a tenth of epsilon 1, then trained, against public bounds.

    PRIVLEARN_DATA=... python benchmarks/bought_bounds.py [--seeds 10] [--epsilon 1]

80/20 splits of Adult, delta 1e-5, logistic regression with its defaults; a tenth of epsilon and of delta buys, the rest
trains, so that each row of the table costs the same. Splits and noise are seeded so that the table can be repeated.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from privlearn import BudgetSplit, Guarantee, PrivateLogisticRegression, Schema, SchemaDraft, discover
from privlearn.data.datasets import load_adult

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DELTA = 1e-5
SPLIT = BudgetSplit(bounds=0.1, fit=0.9)


def draft(*, scales: bool, lists: bool) -> SchemaDraft:
    """The example's schema without its bounds, if asked without its scales, values and classes."""
    content: dict[str, Any] = Schema.load(SCHEMA).to_dict()
    for column in content["columns"].values():
        if column["type"] == "number":
            column |= {"lower": "estimate", "upper": "estimate"} | ({} if scales else {"scale": "linear"})
        elif lists:
            column |= {"values": "estimate", "unknown": "other"}
    if lists:
        content["target"]["classes"] = "estimate"
    return SchemaDraft.from_dict(content)


CASES: dict[str, SchemaDraft | None] = {
    "public bounds and lists": None,
    "bounds bought, log scales kept": draft(scales=True, lists=False),
    "bounds bought, no scale known": draft(scales=False, lists=False),
    "bounds, values and classes bought": draft(scales=False, lists=True),
}


def error(table: Any, wanted: SchemaDraft | None, total: Guarantee, seed: int) -> float:
    """Test error on one random split, everything within the total."""
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(0.8 * table.num_rows)
    train, test = table.take(order[:cut]), table.take(order[cut:])
    schema, promise = Schema.load(SCHEMA), total
    if wanted is not None:
        plan = SPLIT.of(total)
        price, promise = plan.guarantee("bounds"), plan.guarantee("fit")
        schema = discover(train, wanted, epsilon=price.epsilon, delta=price.delta, random_state=seed)
    model = PrivateLogisticRegression(
        epsilon=promise.epsilon, delta=promise.delta, schema=schema, random_state=seed
    )
    return float(1.0 - model.fit(train).score(test))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    table, total = load_adult(), Guarantee(asked.epsilon, DELTA)
    print(SPLIT.of(total))
    means = {}
    for name, wanted in track(CASES.items(), description="Adult", transient=True):
        errors = [error(table, wanted, total, seed) for seed in range(asked.seeds)]
        means[name] = float(np.mean(errors))
    public = next(iter(means.values()))
    print(f"\n{'schema':<36} {'error':>8} {'against public':>15}")
    for name, mean in means.items():
        print(f"{name:<36} {mean:8.4f} {mean - public:+15.4f}")


if __name__ == "__main__":
    main()
