"""What rows of URL Reputation's width and number take: 3,231,961 columns, of which a row fills about 120.

    python benchmarks/wide_rows.py                # 240,000 simulated rows, a tenth of the data set's
    python benchmarks/wide_rows.py 2396130        # as many as it has, in about 4 GB of CSR rows

`PrivateSVC` with a linear kernel and its defaults, on the CSR rows as they are and on 300 public points: processor
time of `fit`, the largest resident size of the process so far, and the error on 5,000 other rows. Columns mean
nothing, and labels are a random hyperplane's (`privlearn.papers.jt13_url`): errors compare with each other and
with nothing printed. Noise is seeded: secure bits for so many coordinates take a minute more.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from typing import Any

from privlearn import NothingRecorded, PrivateSVC
from privlearn.data.datasets import URL_COLUMNS
from privlearn.papers.jt13_url import ROWS, simulate_split

EPSILONS, DELTA = (0.1, 1.0), 1e-7


def measure(name: str, model: PrivateSVC, split: Any) -> None:
    start = time.process_time()
    model.fit(split.rows, split.signs)
    seconds = time.process_time() - start
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    error = 1.0 - model.score(split.test_rows, split.test_signs)
    print(f"| {name} | {model.epsilon:g} | {seconds:.0f} | {gigabytes:.1f} | {error:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="?", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, default=URL_COLUMNS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NothingRecorded)
    start = time.process_time()
    split, points = simulate_split(arguments.rows, arguments.columns, seed=0)
    print(
        f"{arguments.rows:,} rows, {split.rows.nnz:,} filled cells, made in {time.process_time() - start:.0f} s"
    )
    print("| rows | epsilon | seconds | largest size so far, GB | error |\n|---|---|---|---|---|", flush=True)
    settings: dict[str, Any] = {
        "kernel": "linear",
        "norm_bound": 1.0,
        "fit_intercept": False,
        "classes": [-1, 1],
    }
    for name, more in {"as they are": {}, "on 300 public points": {"public_points": points}}.items():
        for epsilon in EPSILONS:
            model = PrivateSVC(epsilon=epsilon, delta=DELTA, random_state=0, **settings, **more)
            measure(name, model, split)


if __name__ == "__main__":
    main()
