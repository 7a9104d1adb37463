"""What three holders get from one noisy sum: bounds of columns, and regressions of two targets.

    python benchmarks/joint_statistics.py [--rows 20000] [--seeds 3]

Simulated people with three parties of 5, 25 and 70 %, one of which may collude; delta 1e-6. Bounds: the share of the
records beyond each bought bound, smallest and largest, and the listed occupations of seven. Regressions: root mean
square error on fresh people as a share of the target's deviation, beside a single holder with all records at the same
epsilon, for a plan of one target and of two.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pyarrow as pa

from privlearn import NothingRecorded, PrivateRegressor, Schema
from privlearn.data.datasets import census_schema, simulated_census
from privlearn.parties import JointDiscovery, JointMoments, simulate
from privlearn.release.moments_file import schema_for

DELTA = 1e-6
EPSILONS = (0.2, 0.5, 1.0)
NUMBERS = ("age", "hours", "education_years", "capital_income")
OCCUPATIONS = tuple(census_schema().to_dict()["columns"]["occupation"]["values"])
DRAFT: dict[str, Any] = {
    "name": "census",
    "columns": {name: {"type": "number", "lower": "estimate", "upper": "estimate"} for name in NUMBERS}
    | {"occupation": {"type": "category", "values": "estimate"}},
}


def shared(table: pa.Table) -> dict[str, pa.Table]:
    """Three parties' parts of a table."""
    first, second = len(table) // 20, len(table) * 3 // 10
    return {
        "east": table.slice(0, first),
        "north": table.slice(first, second - first),
        "west": table.slice(second),
    }


def bounds(rows: int, epsilon: float, seed: int) -> str:
    table = simulated_census(rows, seed=seed)
    parts = shared(table)
    sizes = {name: len(part) for name, part in parts.items()}
    candidates = {"occupation": OCCUPATIONS}
    plan = JointDiscovery.from_dict(
        {"draft": DRAFT, "candidates": candidates, "parties": sizes, "epsilon": epsilon, "delta": DELTA}
    )
    columns: dict[str, Any] = dict(simulate(plan, parts).schema.columns)
    beyond = []
    for name in NUMBERS:
        cells = np.array(table[name], dtype=float)
        beyond += [np.mean(cells < columns[name].lower), np.mean(cells > columns[name].upper)]
    listed = len(columns["occupation"].values) if "occupation" in columns else 0
    return f"beyond a bound {min(beyond):.2%} to {max(beyond):.2%}, {listed} of {len(OCCUPATIONS)} listed"


def clinic(rows: int, seed: int) -> pa.Table:
    """The simulated census with two numbers that its columns tell something about."""
    table, noise = simulated_census(rows, seed=seed), np.random.default_rng(seed).normal(size=(2, rows))
    age, hours = np.array(table["age"], dtype=float), np.array(table["hours"], dtype=float)
    stay = 5.0 + 0.15 * age + 2.0 * noise[0]
    cost = 200.0 + 8.0 * hours + 80.0 * noise[1]
    return table.append_column("stay", pa.array(stay)).append_column("cost", pa.array(cost))


def columns_of_clinic() -> Schema:
    content = census_schema().to_dict()
    content["columns"] |= {
        "stay": {"type": "number", "lower": 0, "upper": 30},
        "cost": {"type": "number", "lower": 0, "upper": 1000},
    }
    return Schema.from_dict(content | {"target": None})


def regressions(rows: int, epsilon: float, seed: int) -> str:
    table, fresh, schema = clinic(rows, seed), clinic(5000, seed + 1000), columns_of_clinic()
    parts = shared(table)
    told = []
    for targets in (("stay",), ("stay", "cost")):
        sizes = {name: len(part) for name, part in parts.items()}
        plan = JointMoments(schema=schema, targets=targets, parties=sizes, epsilon=epsilon, delta=DELTA)
        moments = simulate(plan, parts)
        told += [
            f"{target} of {len(targets)} {_error(moments.model(target), fresh, target):.3f}"
            for target in targets
        ]
    for target in ("stay", "cost"):
        alone = schema_for(schema, ("stay", "cost"), target)
        model = PrivateRegressor(epsilon=epsilon, delta=DELTA, schema=alone).fit(table)
        told.append(f"single holder's {target} {_error(model, fresh, target):.3f}")
    return ", ".join(told)


def _error(model: Any, fresh: pa.Table, target: str) -> float:
    truth = np.array(fresh[target])
    return float(np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / truth.std())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", NothingRecorded)
    for epsilon in EPSILONS:
        for seed in range(chosen.seeds):
            print(f"epsilon {epsilon:g}, seed {seed}: {bounds(chosen.rows, epsilon, seed)}", flush=True)
            print(f"epsilon {epsilon:g}, seed {seed}: {regressions(chosen.rows, epsilon, seed)}", flush=True)


if __name__ == "__main__":
    main()
