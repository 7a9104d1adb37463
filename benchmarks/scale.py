"""How time and memory grow with the number of rows that are learnt from, read from a Parquet file.

    python benchmarks/scale.py                     # 10^5 and 10^6 rows
    python benchmarks/scale.py 1e5 1e6 1e7 3e7     # about a gigabyte of disk, and half an hour

Simulated census rows (seven columns) are written to a folder that is deleted at the end, 500,000 at a time, and each
number of rows is learnt from by a process of its own: processor time of `fit`, reading included, and the largest
resident size of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as parquet

from privlearn import PrivateLogisticRegression
from privlearn.data import open_records
from privlearn.data.datasets import census_schema, simulated_census

PIECE = 500_000
TEST_ROWS, TEST_SEED = 50_000, 10**6


def write(path: Path, rows: int) -> None:
    """So many people, each piece by its own seed."""
    schema = simulated_census(1, 0).schema
    with parquet.ParquetWriter(path, schema) as file:
        for start in range(0, rows, PIECE):
            file.write_table(simulated_census(min(PIECE, rows - start), seed=start))


def fit(path: Path) -> dict[str, float]:
    """In this process: what a fit takes, and how good it is."""
    rows = open_records(path, census_schema())
    model = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-9, random_state=0)
    start = time.process_time()
    model.fit(rows)
    seconds = time.process_time() - start
    test = simulated_census(TEST_ROWS, TEST_SEED)
    return {
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "error": 1.0 - float(model.score(test)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", type=float, default=[1e5, 1e6])
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit is not None:
        print(json.dumps(fit(arguments.fit)))
        return
    print("| rows | seconds | microseconds per row | largest size, MB | error |\n|---|---|---|---|---|")
    for rows in map(int, arguments.rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "census.parquet"
            write(path, rows)
            command = [sys.executable, __file__, "--fit", str(path)]
            took = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        each = 1e6 * took["seconds"] / rows
        print(
            f"| {rows:,} | {took['seconds']:.1f} | {each:.1f} | {took['megabytes']:.0f} | {took['error']:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
