"""What the default regularization loses against the best one in hindsight, over data sets, losses, n and epsilon.

    PRIVLEARN_DATA=... python benchmarks/regularization.py [adult bank ...] [--records 4000] [--features landmarks]

Each cell trains at N Lambda = 2^-4, 2^-3, ..., 2^11 and at the default, on the same random splits (four fifths of the
rows, at most ``--records``) with the same seeds, and prints the mean test errors: the grid's best, the default's, and
the difference in percentage points. Picking the grid's best on test rows is not private, hence the default.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from tables import NAMES, Rows, encoded, load

from privlearn import PrivateLogisticRegression, PrivateSVC
from privlearn.data.datasets import load_newsgroups
from privlearn.features import LandmarkFeatures, kernel_from_name

MODELS = {"logistic": PrivateLogisticRegression, "svm": PrivateSVC}
GRID = tuple(2.0**power for power in range(-4, 12))


def table(name: str) -> Rows:
    """A table through the encoder of its example schema."""
    return encoded(*load(name))


def newsgroups() -> Rows:
    """Texts about computers against the rest, words hashed to 65,536 columns: far more columns than rows."""
    texts = load_newsgroups()
    words = HashingVectorizer(n_features=2**16, stop_words="english").transform(texts["text"].to_pylist())
    labels = np.array([group.startswith("comp") for group in texts["group"].to_pylist()]).astype(int)
    return Rows(words, labels)


DATA: dict[str, Callable[[], Rows]] = {name: partial(table, name) for name in NAMES}
DATA["newsgroups"] = newsgroups


def landmark_features(rows: np.ndarray, points: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """RBF landmark features on the first rows, taken as public, and which rows are left."""
    left = np.arange(min(points, len(rows) // 10), len(rows))
    landmarks = LandmarkFeatures(kernel_from_name("rbf", gamma=2.0), rows[: left[0]])
    return np.asarray(landmarks.transform(rows), dtype=float), left


def errors(rows: Rows, model: str, settings: dict[str, Any], records: int, seeds: int) -> np.ndarray:
    """Test errors, one line per seed: each value of the grid, and last the default's."""
    features, labels = rows
    cut = int(0.8 * len(labels))
    found = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = order[:cut][:records], order[cut:]
        line = []
        strengths: list[float | str] = [value / len(train) for value in GRID]
        for regularization in [*strengths, "auto"]:
            fitted = MODELS[model](
                regularization=regularization,
                norm_bound=1.0,
                classes=[0, 1],
                fit_intercept=False,
                random_state=seed,
                **settings,
            ).fit(features[train], labels[train])
            line.append(1 - fitted.score(features[test], labels[test]))
        found.append(line)
    return np.array(found)


def cells(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int, float, np.ndarray]]:
    for name in arguments.data or DATA:
        features, labels = DATA[name]()
        if arguments.features == "landmarks":
            features, left = landmark_features(features)
            features, labels = features[left], labels[left]
        records = min(arguments.records, int(0.8 * len(labels)))
        for model in arguments.models:
            for epsilon in arguments.epsilons:
                settings = {"epsilon": epsilon, "delta": arguments.delta, "mechanism": arguments.mechanism}
                found = errors(Rows(features, labels), model, settings, records, arguments.seeds)
                yield name, model, records, epsilon, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", help=f"of {', '.join(DATA)}; all if none is named")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--records", type=int, default=10**9, help="training rows at most")
    parser.add_argument("--features", choices=["plain", "landmarks"], default="plain")
    parser.add_argument("--mechanism", default="auto")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    line = "{:<14} {:<9} {:>8} {:>8} {:>14} {:>10} {:>8} {:>7}"
    print(
        line.format("data", "model", "records", "epsilon", "best N Lambda", "its error", "default", "points")
    )
    for name, model, records, epsilon, found in cells(arguments):
        *grid, default = found.mean(axis=0)
        best = int(np.argmin(grid))
        figures = (
            f"{GRID[best]:g}",
            f"{grid[best]:.4f}",
            f"{default:.4f}",
            f"{100 * (default - grid[best]):+.2f}",
        )
        print(line.format(name, model, records, epsilon, *figures), flush=True)


if __name__ == "__main__":
    main()
