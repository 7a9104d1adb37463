"""What the default regularization loses against the best one in hindsight, over data sets, losses, n and epsilon.

    PRIVLEARN_DATA=... python benchmarks/regularization.py [adult bank ...] [--records 4000] [--features landmarks]

Each cell trains at N Lambda = 2^-4, 2^-3, ..., 2^11 and at the default, on the same random splits (four fifths of the
rows, at most ``--records``) with the same seeds, and prints the mean test errors: the grid's best, the default's, and
the difference in percentage points. Picking the grid's best on test rows is not private, hence the default. Tables are
read through their example schema, as a user would have them read.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.feature_extraction.text import HashingVectorizer
from tables import NAMES, encoded, load

from privlearn import PrivateLogisticRegression, PrivateSVC
from privlearn.data.datasets import load_newsgroups
from privlearn.features import LandmarkFeatures, kernel_from_name

MODELS = {"logistic": PrivateLogisticRegression, "svm": PrivateSVC}
GRID = tuple(2.0**power for power in range(-4, 12))


VECTORS = {"norm_bound": 1.0, "classes": [0, 1], "fit_intercept": False}


class Problem(NamedTuple):
    """Rows, their labels 0 and 1, and what a model is told about them."""

    rows: Any
    labels: np.ndarray
    declared: dict[str, Any]

    def train(self, model: Any, numbers: np.ndarray) -> Any:
        return model.fit(self._take(numbers), None if "schema" in self.declared else self.labels[numbers])

    def error(self, model: Any, numbers: np.ndarray) -> float:
        return float(np.mean((model.decision_function(self._take(numbers)) > 0) != self.labels[numbers]))

    def _take(self, numbers: np.ndarray) -> Any:
        return self.rows.take(numbers) if isinstance(self.rows, pa.Table) else self.rows[numbers]


def table(name: str) -> Problem:
    """A table with its example schema."""
    rows, schema = load(name)
    return Problem(rows, encoded(rows, schema).labels, {"schema": schema})


def newsgroups() -> Problem:
    """Texts about computers against the rest, words hashed to 65,536 columns: far more columns than rows."""
    texts = load_newsgroups()
    words = HashingVectorizer(n_features=2**16, stop_words="english").transform(texts["text"].to_pylist())
    labels = np.array([group.startswith("comp") for group in texts["group"].to_pylist()]).astype(int)
    return Problem(words, labels, VECTORS)


DATA: dict[str, Callable[[], Problem]] = {name: partial(table, name) for name in NAMES}
DATA["newsgroups"] = newsgroups


def landmark_features(problem: Problem, points: int = 300) -> Problem:
    """RBF landmark features on the first rows, taken as public; the others are left."""
    rows = encoded(problem.rows, problem.declared["schema"]).features
    left = np.arange(min(points, len(rows) // 10), len(rows))
    landmarks = LandmarkFeatures(kernel_from_name("rbf", gamma=2.0), rows[: left[0]])
    features = np.asarray(landmarks.transform(rows), dtype=float)
    return Problem(features[left], problem.labels[left], VECTORS)


def errors(problem: Problem, model: str, settings: dict[str, Any], records: int, seeds: int) -> np.ndarray:
    """Test errors, one line per seed: each value of the grid, and last the default's."""
    cut = int(0.8 * len(problem.labels))
    found = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(problem.labels))
        train, test = order[:cut][:records], order[cut:]
        strengths: list[float | str] = [value / len(train) for value in GRID]
        line = []
        for regularization in [*strengths, "auto"]:
            given = problem.declared | settings | {"regularization": regularization, "random_state": seed}
            line.append(problem.error(problem.train(MODELS[model](**given), train), test))
        found.append(line)
    return np.array(found)


def cells(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int, float, np.ndarray]]:
    for name in arguments.data or DATA:
        problem = DATA[name]()
        if arguments.features == "landmarks":
            problem = landmark_features(problem)
        records = min(arguments.records, int(0.8 * len(problem.labels)))
        for model in arguments.models:
            for epsilon in arguments.epsilons:
                settings = {"epsilon": epsilon, "delta": arguments.delta, "mechanism": arguments.mechanism}
                found = errors(problem, model, settings, records, arguments.seeds)
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
