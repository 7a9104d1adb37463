"""Three parties with 5, 25 and 70 % of the records against one holder of all: mean test error, no tuning.

    PRIVLEARN_DATA=... python benchmarks/parties.py [--data adult|bank] [--seeds 5] [--epsilons 0.1 1 4]

The parties run in one process, with the noise of a secure sum that tolerates one colluding party; splits and noise are
seeded. The single holder uses objective perturbation, the product's default.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Literal

import numpy as np

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema
from privlearn.data.datasets import load_adult, load_bank_marketing
from privlearn.parties.run.joint_training import JointTraining
from privlearn.parties.run.simulation import train_together

EXAMPLES = Path(__file__).parent.parent / "examples"
Loss = Literal["logistic", "huber_hinge"]
DATA = {
    "adult": (load_adult, EXAMPLES / "adult.schema.yaml"),
    "bank": (load_bank_marketing, EXAMPLES / "bank_marketing.schema.yaml"),
}
DELTA = 1e-5
FRACTIONS = (0.05, 0.25)
SINGLE: dict[Loss, Any] = {"logistic": PrivateLogisticRegression, "huber_hinge": PrivateSVC}
JOINT: tuple[Literal["descent", "aggregation", "uniform_aggregation"], ...] = (
    "descent",
    "aggregation",
    "uniform_aggregation",
)


def errors(table: Any, schema: Schema, loss: Loss, epsilon: float, seed: int) -> tuple[dict[str, float], str]:
    """Test error of one holder and of three parties by each algorithm, and the rounds of the default."""
    order = np.random.default_rng(seed).permutation(table.num_rows)
    train, test = np.split(order, [int(0.8 * len(order))])
    cuts = np.cumsum([int(fraction * len(train)) for fraction in FRACTIONS])
    tables = {name: table.take(part) for name, part in zip("abc", np.split(train, cuts), strict=True)}
    held_out = table.take(test)
    truth = np.array(held_out[schema.target.name].to_pylist())  # type: ignore[union-attr]
    single = SINGLE[loss](epsilon=epsilon, delta=DELTA, schema=schema, random_state=seed)
    found = {"single holder": 1.0 - single.fit(table.take(train)).score(held_out, truth)}
    sizes = {name: part.num_rows for name, part in tables.items()}
    rounds = ""
    for algorithm in JOINT:
        agreement = JointTraining(
            schema=schema, parties=sizes, epsilon=epsilon, delta=DELTA, loss=loss, algorithm=algorithm
        )
        release = train_together(agreement, tables, random_state=seed)
        found[algorithm] = float(np.mean(release.model.predict(held_out) != truth))
        if algorithm == "descent":
            rounds = f"{agreement.mechanism.rounds} {agreement.mechanism.calibration}"
    return found, rounds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", choices=DATA, default="adult")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 4.0])
    chosen = parser.parse_args()
    load, schema_path = DATA[chosen.data]
    table, schema = load(), Schema.load(schema_path)
    print(
        f"{'loss':<13}{'epsilon':>8}{'single holder':>16}"
        + "".join(f"{name:>22}" for name in JOINT)
        + "  rounds"
    )
    for loss in SINGLE:
        for epsilon in chosen.epsilons:
            runs = [errors(table, schema, loss, epsilon, seed) for seed in range(chosen.seeds)]
            means = {name: np.mean([found[name] for found, _ in runs]) for name in ("single holder", *JOINT)}
            line = f"{loss:<13}{epsilon:8g}{means['single holder']:16.4f}"
            print(line + "".join(f"{means[name]:22.4f}" for name in JOINT) + f"  {runs[0][1]}", flush=True)


if __name__ == "__main__":
    main()
