"""How time and memory grow with the number of rows that are learnt from, read from a Parquet file; and against others.

    python benchmarks/scale.py                                   # 10^5 and 10^6 rows
    python benchmarks/scale.py 1e5 1e6 1e7 3e7                   # two gigabytes of disk, and an hour
    python benchmarks/scale.py 1e6 --scikit-learn --before ENV/bin/python   # ratios; ENV has another version installed
    python benchmarks/scale.py --csv 3e6                         # `privlearn train` and `predict` of a CSV file

Simulated census rows of twelve columns are written to a folder that is deleted at the end, 500,000 at a time. Each
number of rows is learnt from by a process of its own: time and processor time of `fit`, reading included, the latter
per row, too, and the largest resident size of the process. Ratios are of processor time, which other users of the
machine hardly change. The comparisons learn from a table in memory; scikit-learn is given the encoded rows and takes
the solver that is fastest to reach the same gradient norm, without reading and encoding. The CSV file has the eight
columns of `simulated_census`: 128 MB are three million rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from privlearn import PrivateLogisticRegression
from privlearn.data import Schema

PIECE = 500_000
TEST, TEST_ROWS, TEST_SEED = "test.parquet", 50_000, 10**6
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "random_state": 0}
MARITAL = ("single", "married", "divorced", "widowed")
SOLVERS = ("newton-cg", "lbfgs")  # sag, of a million rows, had not come as far after minutes


def schema() -> Schema:
    """The census and four columns more, as other versions read it, too."""
    numbers = {
        "age": (18, 90),
        "hours": (0, 80),
        "education_years": (6, 22),
        "household": (1, 12),
        "commute": (0, 180),
        "rent": (0, 5000),
    }
    lists = {
        "occupation": ("office", "trade", "craft", "services", "health", "management", "farming"),
        "region": ("north", "east", "south", "west"),
        "sex": ("female", "male"),
        "marital": MARITAL,
    }
    columns: dict[str, Any] = {
        name: {"type": "number", "lower": lower, "upper": upper} for name, (lower, upper) in numbers.items()
    }
    columns["capital_income"] = {"type": "number", "lower": 0, "upper": 1_000_000, "scale": "log"}
    columns |= {name: {"type": "category", "values": list(values)} for name, values in lists.items()}
    target = {"name": "income", "classes": ["low", "high"]}
    return Schema.from_dict({"name": "census", "columns": columns, "target": target})


def people(count: int, seed: int) -> pa.Table:
    """Twelve columns."""
    from privlearn.data.datasets import simulated_census

    random = np.random.default_rng([seed, 12])
    table = simulated_census(count, seed)
    more = {
        "household": 1 + np.minimum(random.poisson(1.4, count), 11),
        "commute": np.minimum(random.gamma(2.0, 14.0, count).round(), 180),
        "rent": np.minimum(random.lognormal(6.6, 0.5, count).round(2), 5000),
        "marital": np.array(MARITAL)[random.choice(4, count, p=[0.35, 0.45, 0.14, 0.06])],
    }
    for name, cells in more.items():
        table = table.append_column(name, pa.array(cells))
    return table


def write(path: Path, rows: int, made: Callable[[int, int], pa.Table] = people) -> None:
    """So many people, each piece by its own seed."""
    kinds = made(1, 0).schema
    with (parquet.ParquetWriter if path.suffix == ".parquet" else arrow_csv.CSVWriter)(path, kinds) as file:
        for start in range(0, rows, PIECE):
            file.write_table(made(min(PIECE, rows - start), start))


def measured(work: Callable[[], Any]) -> dict[str, float]:
    """In this process: what the work takes; of memory, what the process has in all, and had before."""
    before, start, begun = _largest_size(), time.process_time(), time.perf_counter()
    work()
    return {
        "processor": time.process_time() - start,
        "seconds": time.perf_counter() - begun,
        "megabytes": _largest_size(),
        "before": before,
    }


def _largest_size() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def fit_file(path: Path) -> dict[str, float]:
    """From disk, and how good it is."""
    from privlearn.data import open_records

    model = PrivateLogisticRegression(schema=schema(), **PROMISE)
    took = measured(lambda: model.fit(open_records(path, schema())))
    return took | error_of(model, path)


def fit_memory(path: Path) -> dict[str, float]:
    """From a table in memory; this runs under other versions, too."""
    table = parquet.read_table(path)
    model = PrivateLogisticRegression(schema=schema(), **PROMISE)
    took = measured(lambda: model.fit(table))
    return took | error_of(model, path)


def error_of(model: Any, path: Path) -> dict[str, float]:
    return {"error": 1.0 - float(model.score(parquet.read_table(path.with_name(TEST))))}


def fit_scikit_learn(path: Path) -> dict[str, float]:
    """The same encoded rows and regularization, to the gradient norm that ours is certified for."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    from privlearn.data import open_records
    from privlearn.data.sources.row_source import in_memory

    warnings.simplefilter("ignore", ConvergenceWarning)
    learner = PrivateLogisticRegression(schema=schema(), **PROMISE)
    work = learner.prepare(open_records(path, schema()), None, private=True)
    task = work.calibrate(learner.make_guarantee()).task
    features = in_memory(work.rows.features)
    labels = work.rows.targets.answers
    signs, count = 2.0 * labels - 1.0, len(labels)

    def gradient_norm(point: Any) -> float:
        slopes = -signs / (1.0 + np.exp(signs * (features @ point)))
        return float(np.linalg.norm(features.T @ slopes / count + task.regularization * point))

    found = []
    for solver in SOLVERS:
        for tolerance in task.tolerance * 10.0 ** -np.arange(-1, 5):
            model = LogisticRegression(
                C=1.0 / (count * task.regularization),
                solver=solver,
                fit_intercept=False,
                tol=tolerance,
                max_iter=2000,
            )
            took = measured(lambda model=model: model.fit(features, labels))  # type: ignore[misc]
            if gradient_norm(model.coef_[0]) <= task.tolerance:
                found.append(took)
            if found and took["processor"] >= min(one["processor"] for one in found):
                break
    return min(found, key=lambda one: one["processor"])


FITS = {"file": fit_file, "memory": fit_memory, "scikit-learn": fit_scikit_learn}


def apart(kind: str, path: Path, python: str = sys.executable) -> dict[str, float]:
    """One fit in a process of its own."""
    command = [python, __file__, "--fit", kind, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def show(name: str, rows: int, took: dict[str, float]) -> None:
    error = f"{took['error']:.4f}" if "error" in took else ""
    each = 1e6 * took["processor"] / rows
    print(
        f"| {name} | {rows:,} | {took['seconds']:.1f} | {took['processor']:.1f} | {each:.2f} | "
        f"{took['megabytes']:.0f} | {error} |",
        flush=True,
    )


def compare(rows: int, path: Path, scikit_learn: bool, before: str | None) -> None:
    """A table in memory, against others."""
    ours = apart("memory", path)
    show("in memory", rows, ours)
    others = {}
    if before:
        others["before"] = apart("memory", path, before)
    if scikit_learn:
        others["scikit-learn, encoded"] = apart("scikit-learn", path)
    for name, took in others.items():
        show(name, rows, took)
    for name, took in others.items():
        print(
            f"In memory against {name}: {ours['processor'] / took['processor']:.2f} of the processor time, "
            f"{ours['seconds'] / took['seconds']:.2f} of the time on the clock, "
            f"{ours['megabytes'] / took['megabytes']:.2f} of the memory; the fit adds "
            f"{_added(ours):.0f} and {_added(took):.0f} MB to what was there."
        )


def _added(took: dict[str, float]) -> float:
    return took["megabytes"] - took["before"]


def run_commands(rows: int, folder: Path) -> None:
    """`privlearn train` and `privlearn predict` of the census as CSV: processor time and the largest size of each."""
    from privlearn.data.datasets import census_schema, simulated_census

    table, described, model = folder / "census.csv", folder / "schema.yaml", folder / "income.privlearn"
    write(table, rows, simulated_census)
    census_schema().save(described)
    promise = ["--epsilon", "1", "--delta", "1e-9", "--seed", "0"]
    train = ["train", str(table), "--schema", str(described), *promise, "--out", str(model)]
    predict = ["predict", str(model), str(table), "--out", str(folder / "predictions.csv")]
    print(f"\n{rows:,} rows, {table.stat().st_size / 1e6:.0f} MB of CSV:")
    for command in (train, predict):
        process = subprocess.Popen([sys.executable, "-m", "privlearn", *command], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"privlearn {command[0]} failed")
        print(
            f"privlearn {command[0]}: {used.ru_utime + used.ru_stime:.1f} s of processor time, "
            f"{used.ru_maxrss / 1e3:.0f} MB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", type=float)
    parser.add_argument("--csv", type=float, help="rows of a CSV file for the commands")
    parser.add_argument("--scikit-learn", action="store_true", help="the same encoded rows in memory")
    parser.add_argument(
        "--before", metavar="PYTHON", help="an interpreter that has another version installed"
    )
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit is not None:
        kind, path = arguments.fit
        print(json.dumps(FITS[kind](Path(path))))
        return
    sizes = [1e5, 1e6] if not arguments.rows and arguments.csv is None else arguments.rows
    with tempfile.TemporaryDirectory() as folder:
        if sizes:
            parquet.write_table(people(TEST_ROWS, TEST_SEED), Path(folder) / TEST)
            print(
                "| from | rows | seconds | processor | microseconds of it per row | largest size, MB | error |"
            )
            print("|---|---|---|---|---|---|---|")
        for rows in map(int, sizes):
            path = Path(folder) / "census.parquet"
            write(path, rows)
            show("a file", rows, apart("file", path))
            if arguments.scikit_learn or arguments.before:
                compare(rows, path, arguments.scikit_learn, arguments.before)
        if arguments.csv is not None:
            run_commands(int(arguments.csv), Path(folder))


if __name__ == "__main__":
    main()
