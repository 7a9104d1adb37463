"""Exports beside `predict`: the largest difference, labels that differ, size of the file and time, per target.

    python benchmarks/export.py                10,000 rows
    python benchmarks/export.py --rows 200     quick

Rows have gaps, values that no schema lists, and numbers beyond their bounds. PostgreSQL and Chromium, which the
calculator page runs in, are left out where they are not installed. Run it with the repository's folder on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import shutil
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
FILES = {"Python file": "python", "onnxruntime": "onnx", "calculator page": "html-calculator"}


def main(rows: int) -> None:
    table = dirty_table(rows)
    print(f"{rows} rows\n\n| release | target | largest difference | other labels | bytes | seconds |")
    print("|---|---|---|---|---|---|")
    with _postgresql(table) as beside, _browser() as browser:
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
        if browser is not None:
            runners["calculator page"] = lambda release: _calculated(browser, release, table)
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


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        yield None
        return
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


def _calculated(browser: Any, release: Any, table: Any) -> export_runners.Answers:
    page = browser.new_page()
    page.set_content(export_release(release, "html-calculator").decode())
    return export_runners.run_calculator(release, table, page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    main(parser.parse_args().rows)
