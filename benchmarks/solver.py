"""Our solver against every scikit-learn logistic regression, each to the same gradient norm, in one run.

    python benchmarks/solver.py            # Adult, 500,000 x 300, 20 newsgroups
    python benchmarks/solver.py --quick    # the same at a tenth of the rows

Adult and 20 newsgroups are read from the folder PRIVLEARN_DATA names; without it simulated rows of the same
shape take their place. scikit-learn's ``tol`` is lowered until the gradient norm we measure is small enough,
and only the last fit is timed.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import statistics
import tarfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from privlearn.solvers import Logistic, Problem, minimise

TARGET = 1e-10
REGULARIZATIONS = (1e-3, 1e-5)
DENSE_PEERS = ("newton-cholesky", "lbfgs", "newton-cg")
SPARSE_PEERS = ("lbfgs", "newton-cg")
TOLERANCES = tuple(10.0**-digits for digits in range(4, 14))
LBFGS_TOLERANCE = 1e-10  # its own test on the value stops it before, whatever we ask
TIME_LIMIT = 30.0  # seconds for the repeats of one line


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options.add_argument("--repeats", type=int, default=5, help="the median is printed (default 5)")
    chosen = options.parse_args()
    share = 10 if chosen.quick else 1
    print(f"{'data':<22}{'Lambda':>8}  {'solver':<17}{'seconds':>9}{'gradient':>11}{'ours/peer':>11}")
    for name, load in (("adult", adult), ("simulated", wide_simulation)):
        features, signs = load(share)
        for regularization in REGULARIZATIONS:
            compare(name, features, signs, regularization, DENSE_PEERS, chosen.repeats)
    features, signs = newsgroups(share)
    for regularization in REGULARIZATIONS:
        compare("newsgroups", features, signs, regularization, SPARSE_PEERS, chosen.repeats)
    show_memory(features, signs)


def compare(
    name: str, features: Any, signs: Any, regularization: float, peers: tuple[str, ...], repeats: int
) -> None:
    """Print a line for us and one for each peer; the ratio is our time over the peer's."""
    label = f"{name} {features.shape[0]}x{features.shape[1]}"
    problem = Problem(features, signs, Logistic(), regularization, len(signs))
    reached = gradient_norm(features, signs, regularization, minimise(problem).coefficients)
    ours = median_seconds(lambda: minimise(problem), repeats)
    show(label, regularization, "privlearn", ours, reached, "")
    fastest = np.inf
    for solver in peers:
        model, reached = tuned_peer(solver, features, signs, regularization)
        seconds = median_seconds(lambda model=model: model.fit(features, signs), repeats)  # type: ignore[misc]
        fastest = min(fastest, seconds) if reached <= TARGET else fastest
        show(label, regularization, solver, seconds, reached, f"{ours / seconds:.2f}")
    show(label, regularization, "fastest at target", fastest, TARGET, f"{ours / fastest:.2f}")


def tuned_peer(solver: str, features: Any, signs: Any, regularization: float) -> tuple[Any, float]:
    """The peer with the loosest ``tol`` that reaches the target, or the tightest if none does."""
    model, reached = None, np.inf
    for tolerance in (LBFGS_TOLERANCE,) if solver == "lbfgs" else TOLERANCES:
        model = LogisticRegression(
            C=1 / (len(signs) * regularization),
            fit_intercept=False,
            solver=solver,
            tol=tolerance,
            max_iter=3000,
        )
        model.fit(features, signs)
        reached = gradient_norm(features, signs, regularization, model.coef_[0])
        if reached <= TARGET:
            break
    return model, reached


def gradient_norm(features: Any, signs: Any, regularization: float, coefficients: Any) -> float:
    slopes = -signs * expit(-signs * (features @ coefficients))
    return float(np.linalg.norm(features.T @ slopes / len(signs) + regularization * coefficients))


def median_seconds(work: Callable[[], Any], repeats: int) -> float:
    """Median over the repeats; the caller has run the work once before, to warm up."""
    seconds: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > TIME_LIMIT:
            break
    return statistics.median(seconds)


def show(label: str, regularization: float, solver: str, seconds: float, reached: float, ratio: str) -> None:
    print(
        f"{label:<22}{regularization:>8.0e}  {solver:<17}{seconds:>9.3f}{reached:>11.1e}{ratio:>11}",
        flush=True,
    )


def show_memory(features: Any, signs: Any) -> None:
    tracemalloc.start()
    minimise(Problem(features, signs, Logistic(), REGULARIZATIONS[0], len(signs)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = features.data.nbytes + features.indices.nbytes + features.indptr.nbytes
    print(
        f"memory on {features.shape[0]}x{features.shape[1]}: peak {peak / 2**20:.0f} MiB beside the data's "
        f"{held / 2**20:.0f} MiB (dense rows would take {8 * np.prod(features.shape) / 2**30:.0f} GiB)"
    )


def adult(share: int) -> tuple[Any, Any]:
    """Numbers over their maximum, one-hot categories, rows of norm 1 (CMS11 section 7.1, for timing only)."""
    folder = os.environ.get("PRIVLEARN_DATA")
    if folder is None:
        return simulated(36_178 // share, 104)
    rows = []
    for name in ("adult.data.gz", "adult.test.gz"):
        with gzip.open(Path(folder) / "adult" / name, "rt") as lines:
            cells = [line.strip().rstrip(".").split(", ") for line in lines]
            rows += [row for row in cells if len(row) == 15 and "?" not in row]
    table = np.array(rows)[: 36_178 // share]
    numbers = table[:, [0, 2, 4, 10, 11, 12]].astype(np.float64)
    parts = [numbers / np.maximum(numbers.max(axis=0), 1.0)]
    for column in (1, 3, 5, 6, 7, 8, 9, 13):
        parts.append((table[:, column, np.newaxis] == np.unique(table[:, column])).astype(np.float64))
    features = np.ascontiguousarray(np.hstack(parts))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features, np.where(table[:, 14] == ">50K", 1.0, -1.0)


def wide_simulation(share: int) -> tuple[Any, Any]:
    return simulated(500_000 // share, 300)


def simulated(rows: int, columns: int) -> tuple[Any, Any]:
    """Correlated columns of falling scale, rows of norm 1, noisy labels."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, columns)) / np.sqrt(1.0 + np.arange(columns))
    features[:, 1:] += 0.5 * features[:, :-1]
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    margins = features @ (4.0 * rng.normal(size=columns))
    return features, np.where(rng.random(rows) < expit(margins), 1.0, -1.0)


def newsgroups(share: int) -> tuple[Any, Any]:
    """Training messages hashed to 2^20 features; one group against the rest."""
    folder = os.environ.get("PRIVLEARN_DATA")
    if folder is None:
        rng = np.random.default_rng(0)
        rows = 11_314 // share
        random = sparse.csr_array(sparse.random_array((rows, 2**20), density=150 / 2**20, rng=rng))
        scales = 1.0 / np.maximum(np.sqrt(np.asarray(random.multiply(random).sum(axis=1)).ravel()), 1e-300)
        return sparse.csr_array(random.multiply(scales[:, np.newaxis])), rng.choice(
            [-1.0, 1.0], rows, p=[0.95, 0.05]
        )
    texts, groups = [], []
    with tarfile.open(Path(folder) / "newsgroups20" / "20news-bydate.tar.gz") as archive:
        for member in archive:
            if member.isfile() and "-train/" in member.name:
                content: io.BufferedReader | Any = archive.extractfile(member)
                texts.append(content.read().decode("latin-1"))
                groups.append(member.name.split("/")[-2])
    features = HashingVectorizer(n_features=2**20, norm="l2", alternate_sign=True).fit_transform(
        texts[::share]
    )
    return features, np.where(np.array(groups[::share]) == "rec.autos", 1.0, -1.0)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
