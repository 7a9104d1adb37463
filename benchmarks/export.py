"""Exports beside `predict`: the largest difference, labels that differ, size of the file and time, per target.

    python benchmarks/export.py                10,000 rows
    python benchmarks/export.py --rows 200     quick

Rows have gaps, values that no schema lists, and numbers beyond their bounds. PostgreSQL is left out where it is not
installed. Run it with the repository's folder on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from privlearn.export import export_release
from tests.support import export_runners
from tests.support.export_cases import dirty_table, exported_releases
from tests.support.postgresql_cluster import Unavailable, cluster

RELEASES = {"two": "two classes", "several": "three classes", "number": "a number"}
FILES = {"Python file": "python", "onnxruntime": "onnx"}


def main(rows: int) -> None:
    table = dirty_table(rows)
    print(f"{rows} rows\n\n| release | target | largest difference | other labels | bytes | seconds |")
    print("|---|---|---|---|---|---|")
    with _postgresql(table) as beside:
        databases = {
            "SQLite": export_runners.sqlite_database(table),
            "DuckDB": export_runners.duckdb_database(table),
        } | beside
        runners: dict[str, Callable[[Any], export_runners.Answers]] = {
            "Python file": lambda release: export_runners.run_python(release, table),
            "onnxruntime": lambda release: export_runners.run_onnx(release, table),
        } | {
            name: lambda release, database=database: export_runners.run_sql(release, database)
            for name, database in databases.items()
        }
        for case, title in RELEASES.items():
            release = exported_releases()[case]
            labels, numbers = export_runners.predicted(release, table)
            for name, run in runners.items():
                started = time.perf_counter()
                found, close_to = run(release)
                seconds = time.perf_counter() - started
                size = len(export_release(release, FILES.get(name, "sql")))
                difference = np.max(np.abs(np.array(close_to, dtype=np.float64) - numbers))
                other = sum(one != another for one, another in zip(found, labels, strict=True))
                print(
                    f"| {title} | {name} | {difference:.0e} | {other} | {size:,} | {seconds:.1f} |",
                    flush=True,
                )


@contextmanager
def _postgresql(table: Any) -> Iterator[dict[str, Any]]:
    import psycopg

    try:
        with cluster() as server, psycopg.connect(server.new_place(), autocommit=True) as database:
            export_runners.fill_postgresql(database, table)
            yield {"PostgreSQL": database}
    except Unavailable:
        yield {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    main(parser.parse_args().rows)
