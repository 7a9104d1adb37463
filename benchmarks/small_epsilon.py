"""Softmax with little N epsilon: the default regularization against the same without its lean to more shrinkage.

    PRIVLEARN_DATA=... python benchmarks/small_epsilon.py [digits mnist_5000 mnist marital_4000 marital ...] [--seeds 5]

Defaults, zero-out, delta 1e-5, the same splits and seeds for both. Prints test error and log-loss, and the mean
difference of the errors with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from softmax import mnist
from tables import encoded, load

from privlearn import PrivateLogisticRegression, Schema
from privlearn.data.datasets import load_adult, load_covertype
from privlearn.estimators import calibration

ADULT = "examples/adult.schema.yaml"
Table = tuple[Any, np.ndarray, dict[str, Any]]
"""Rows, labels, and what is declared about them."""


def digits() -> Table:
    content = load_digits()
    return _unit(content.data), content.target, {"norm_bound": 1.0, "classes": range(10)}


def images() -> Table:
    split = mnist(0)
    rows = np.vstack([split.rows, split.test_rows]).astype(np.float32)
    labels = np.concatenate([split.labels, split.test_labels])
    return rows, labels, {"norm_bound": 1.0, "classes": range(10)}


def marital_status() -> Table:
    """Adult's marital status, seven kinds, from the other columns."""
    table, content = load_adult(), Schema.load(ADULT).model_dump(mode="json", exclude_none=True)
    labels = np.array(table["marital-status"].to_pylist())
    del content["columns"]["marital-status"]
    content["target"] = {"name": "marital-status", "classes": sorted(set(labels.tolist()))}
    return table, labels, {"schema": Schema.from_dict(content)}


def forests() -> Table:
    """CoverType's seven kinds, encoded by the example schema."""
    rows, cover = encoded(*load("covertype")).features, load_covertype()[1]
    labels = cover[np.random.default_rng(0).permutation(len(cover))[: len(rows)]]  # as `load` takes them
    return rows, labels, {"norm_bound": 1.0, "classes": range(1, 8)}


def _unit(rows: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


CELLS: dict[str, tuple[Callable[[], Table], int, tuple[float, ...]]] = {
    "digits": (digits, 1_437, (0.3, 1.0, 3.0)),
    "mnist_5000": (images, 5_000, (0.3, 1.0, 3.0)),
    "mnist": (images, 60_000, (0.1, 0.3)),
    "marital_4000": (marital_status, 4_000, (0.3, 1.0)),
    "forests_5000": (forests, 5_000, (0.3, 1.0)),
    "forests": (forests, 50_000, (0.1,)),
    "marital": (marital_status, 39_000, (0.1, 0.3)),
}


def measure(table: Table, records: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Return test error and log-loss."""
    rows, labels, declared = table
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = order[:records], order[records:][-10_000:]
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=1e-5, neighbours="zero_out", random_state=seed, **declared
    )
    if "schema" in declared:
        likely = model.fit(rows.take(train)).predict_proba(rows.take(test))
    else:
        likely = model.fit(rows[train], labels[train]).predict_proba(rows[test])
    truth = np.searchsorted(model.classes_, labels[test])
    chosen = likely[np.arange(len(truth)), truth]
    return float(np.mean(likely.argmax(axis=1) != truth)), float(-np.mean(np.log(np.maximum(chosen, 1e-12))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cells", nargs="*", help=f"of {', '.join(CELLS)}; all if none is named")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    weight = calibration._FLAT_WEIGHT
    for name in arguments.cells or CELLS:
        read, records, epsilons = CELLS[name]
        table = read()
        for epsilon in epsilons:
            results = {}
            for calibration._FLAT_WEIGHT in (0.0, weight):
                runs = [measure(table, records, epsilon, seed) for seed in range(arguments.seeds)]
                results[calibration._FLAT_WEIGHT] = np.array(runs)
            before, after = results[0.0], results[weight]
            gain = (after - before)[:, 0]
            print(
                f"{name} epsilon {epsilon:g}: {before[:, 0].mean():.4f} ({before[:, 1].mean():.3f}) -> "
                f"{after[:, 0].mean():.4f} ({after[:, 1].mean():.3f}), "
                f"{gain.mean():+.4f} +- {gain.std() / np.sqrt(len(gain)):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
