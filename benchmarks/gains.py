"""How well `privlearn agreement --parties` foretells: expected gains of three parties against measured ones.

    PRIVLEARN_DATA=... python benchmarks/gains.py [--data adult bank] [--seeds 5] [--epsilons 0.1 1 4]

Parties hold 5, 25 and 70 % of the training rows. Measured: each party's own model and the joint one, test error, mean
over seeds (of split and noise); what is lost is counted as a share of what the model without privacy on all rows gains
over the most frequent class. It looks at the rows, and is not private; a plan does not.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from parties import DATA, DELTA

from privlearn import PrivateLogisticRegression, Schema
from privlearn.parties import JointTraining, expected_gains, train_together

FRACTIONS = {"east": 0.05, "north": 0.25, "west": 0.70}


def measured(data: str, epsilons: list[float], seeds: int) -> None:
    load, path = DATA[data]
    table, schema = load(), Schema.load(path)
    assert schema.target is not None
    labels = np.array(table[schema.target.name].to_pylist())
    errors: dict[tuple[float, str], list[float]] = {}
    plain, guess = [], []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = np.split(order, [int(0.8 * len(order))])
        cuts = np.cumsum([int(share * len(train)) for share in list(FRACTIONS.values())[:-1]])
        parts = {name: table.take(rows) for name, rows in zip(FRACTIONS, np.split(train, cuts), strict=True)}
        held_out, truth = table.take(test), labels[test]
        guess.append(1.0 - max(np.mean(truth == each) for each in schema.target.classes))
        best = PrivateLogisticRegression(epsilon=math.inf, schema=schema).fit(table.take(train))
        plain.append(1.0 - best.score(held_out, truth))
        for epsilon in epsilons:
            settings: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "schema": schema}
            for name, part in parts.items():
                own = PrivateLogisticRegression(**settings, random_state=seed).fit(part)
                errors.setdefault((epsilon, name), []).append(1.0 - own.score(held_out, truth))
            agreement = JointTraining(
                **settings, parties={name: part.num_rows for name, part in parts.items()}
            )
            joint = train_together(agreement, parts, random_state=seed).model.predict(held_out)
            errors.setdefault((epsilon, ""), []).append(float(np.mean(joint != truth)))
    scale = np.mean(guess) - np.mean(plain)
    print(f"{data}: error without privacy {np.mean(plain):.3f}, of guessing {np.mean(guess):.3f}")
    print("epsilon  party  records  error alone  together  gain measured  expected  verdict")
    for epsilon in epsilons:
        together = np.mean(errors[epsilon, ""])
        agreement = JointTraining(
            epsilon=epsilon,
            delta=DELTA,
            schema=schema,
            parties={name: part.num_rows for name, part in parts.items()},
        )
        for party in expected_gains(agreement):
            alone = np.mean(errors[epsilon, party.party])
            print(
                f"{epsilon:7g}  {party.party:<5}  {party.records:7,}  {alone:11.3f}  {together:8.3f}  "
                f"{(alone - together) / scale:13.2f}  {party.gain:8.2f}  {party.verdict}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 4.0])
    chosen = parser.parse_args()
    for data in chosen.data:
        measured(data, chosen.epsilons, chosen.seeds)


if __name__ == "__main__":
    main()
