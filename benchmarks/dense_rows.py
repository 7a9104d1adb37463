"""Fit time and memory against scikit-learn on the same features, one process each, one table.

    OMP_NUM_THREADS=1 python benchmarks/dense_rows.py
    PRIVLEARN_DATA=... python benchmarks/dense_rows.py --fresh    # import and first fit on Adult
    PRIVLEARN_DATA=... python benchmarks/dense_rows.py --bounds   # all rows of CoverType, with column_bounds

Each line runs in a fresh process and fits twice; the second fit is timed in seconds of processor. privlearn solves to a
certified gradient norm (about 1e-9), which scikit-learn's defaults do not; the row "same accuracy" gives scikit-learn
the tolerance that privlearn certifies.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TABLES = {"60000 x 1000, 10 classes": (60_000, 1_000, 10), "3617 x 102, 2 classes": (3_617, 102, 2)}
COVERTYPES = {"CoverType, 2 classes": 2, "CoverType, 7 classes": 7}
SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
METHODS = ("privlearn", "lbfgs", "newton-cg", "newton-cholesky", "lbfgs, same accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--bounds", action="store_true", help="time arrays with column_bounds instead")
    parser.add_argument("--fresh", action="store_true", help="time a fresh process on Adult instead")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    if arguments.fresh:
        compare_fresh_processes()
        return
    print("| rows | method | seconds | GB |\n|---|---|---|---|")
    for table in COVERTYPES if arguments.bounds else TABLES:
        for method in ("column_bounds", "lbfgs") if arguments.bounds else METHODS:
            if method == "newton-cholesky" and TABLES[table][2] > 2:
                continue  # a Hessian of 10,000 x 10,000
            command = [sys.executable, "-W", "ignore", __file__, "--one", table, method]
            result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"| {table} | {method} | {result['seconds']:.2f} | {result['memory']:.2f} |", flush=True)


FRESH = {
    "privlearn": """
import pyarrow.parquet
from privlearn import PrivateLogisticRegression
table = pyarrow.parquet.read_table(path)
PrivateLogisticRegression(epsilon=1, delta=1e-5, schema=schema).fit(table)
""",
    "scikit-learn": """
import pandas
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
table = pandas.read_parquet(path)
income = table.pop("income")
numbers = list(table.select_dtypes("number"))
words = [name for name in table if name not in numbers]
steps = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
make_pipeline(steps, LogisticRegression(max_iter=1000)).fit(table, income)
""",
}


def compare_fresh_processes(runs: int = 5) -> None:
    """Print the least processor time, over some runs, of a process that imports, reads Adult and fits once."""
    from pyarrow import parquet

    from privlearn.data.datasets import load_adult

    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/adult.parquet"
        parquet.write_table(load_adult(), path)
        least = dict.fromkeys(FRESH, math.inf)
        for _, name in itertools.product(range(runs), FRESH):
            program = f"path, schema = {path!r}, {str(SCHEMA)!r}\n{FRESH[name]}"
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            least[name] = min(least[name], seconds)
    for name, seconds in least.items():
        print(
            f"{name}: {seconds:.2f} s of processor, {seconds / least['scikit-learn']:.2f} of scikit-learn's"
        )


def measure(table: str, method: str) -> dict[str, float]:
    """Return the time of the second fit and the peak memory of the process."""
    rows, labels, classes = simulate(*TABLES[table]) if table in TABLES else load(COVERTYPES[table])
    regularization = 2.0 / len(rows)
    for _ in range(2):
        started = time.process_time()
        fit(method, rows, labels, classes, regularization)
        seconds = time.process_time() - started
    return {"seconds": seconds, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def simulate(count: int, dimension: int, classes: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return unit rows with a decaying spectrum, like features of images, and labels by noisy linear scores."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, dimension), dtype=np.float32)
    rows *= (1.0 / np.sqrt(1.0 + np.arange(dimension))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = 20.0 * rows @ rng.standard_normal((dimension, classes)).astype(np.float32)
    labels = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    return rows, labels, classes


def load(classes: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return CoverType's rows, scaled to [0, 1], with its labels or whether they are the most frequent one."""
    from privlearn.data.datasets import load_covertype

    rows, labels = load_covertype()
    rows = (rows - rows.min(axis=0)) / (rows.max(axis=0) - rows.min(axis=0))
    return rows, labels - 1 if classes == 7 else (labels == 2).astype(int), classes


def fit(method: str, rows: np.ndarray, labels: np.ndarray, classes: int, regularization: float) -> None:
    if method in ("privlearn", "column_bounds"):
        from privlearn import PrivateLogisticRegression

        bounds = {"norm_bound": 1.0} if method == "privlearn" else {"column_bounds": [(0, 1)] * rows.shape[1]}
        PrivateLogisticRegression(
            epsilon=3,
            delta=1e-6,
            **bounds,
            classes=range(classes),
            regularization=regularization,
            random_state=0,
        ).fit(rows, labels)
        return
    from sklearn.linear_model import LogisticRegression

    solver, _, accurate = method.partition(",")
    strength = 1.0 / (regularization * len(rows))
    LogisticRegression(C=strength, solver=solver, max_iter=10_000, tol=1e-9 if accurate else 1e-4).fit(
        rows, labels
    )


if __name__ == "__main__":
    main()
