"""The default classifiers as they are, on every table: error, area under the ROC curve and log-loss against epsilon.

    PRIVLEARN_DATA=... python benchmarks/defaults.py [adult covertype ...] [--epsilons 0.1 1] [--neighbours replace_one]

80/20 splits, the same for both classifiers; nothing is tuned. Log-loss is that of probabilities, which only the
logistic model has. ``covertype_all`` is CoverType with all its rows, at delta 1e-6.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import tables
from sklearn.metrics import log_loss, roc_auc_score

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema

MODELS: dict[str, Any] = {"logistic": PrivateLogisticRegression, "svm": PrivateSVC}
NAMES = (*tables.NAMES, "covertype_all")


def load(name: str) -> tuple[Any, Schema]:
    if name == "covertype_all":
        return tables.all_covertype(), Schema.load(tables.EXAMPLES / "covertype.schema.yaml")
    return tables.load(name)


def measured(table: Any, schema: Schema, kind: Any, seed: int, settings: dict[str, Any]) -> list[float]:
    """Error, AUC, log-loss and seconds of one split."""
    assert schema.target is not None
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(0.8 * len(order))
    train, test = table.take(order[:cut]), table.take(order[cut:])
    begun = time.perf_counter()
    model = kind(schema=schema, random_state=seed, **settings).fit(train)
    seconds = time.perf_counter() - begun
    truth = np.array(test[schema.target.name].to_pylist()) == schema.target.classes[1]
    scores = model.decision_function(test)
    loss = log_loss(truth, model.predict_proba(test)[:, 1]) if hasattr(model, "predict_proba") else np.nan
    return [float(np.mean((scores > 0) != truth)), float(roc_auc_score(truth, scores)), float(loss), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data", nargs="*", choices=[*NAMES, []], help=f"of {', '.join(NAMES)}; all but the last if none"
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--neighbours", default="zero_out")
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    print(
        "| table | classifier | epsilon | error | AUC | log-loss | seconds |\n|---|---|---|---|---|---|---|"
    )
    for name in arguments.data or tables.NAMES:
        table, schema = load(name)
        delta = 1e-6 if name == "covertype_all" else 1e-5
        for epsilon in arguments.epsilons:
            settings = {"epsilon": epsilon, "delta": delta, "neighbours": arguments.neighbours}
            for label, kind in MODELS.items():
                splits = [measured(table, schema, kind, seed, settings) for seed in range(arguments.splits)]
                error, area, loss, seconds = np.mean(splits, axis=0)
                print(
                    f"| {name} | {label} | {epsilon:g} | {error:.4f} | {area:.4f} | {loss:.4f} | {seconds:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
