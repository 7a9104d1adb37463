"""Every target predicts what the release predicts: gaps, unknown values and numbers out of range included."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import pytest

from privlearn import Release
from privlearn.export import TARGETS, export_release, standalone
from tests.support import export_runners
from tests.support.export_cases import (
    array_models,
    dirty_table,
    exported_releases,
    made_up_models,
    with_model,
)

if TYPE_CHECKING:
    from tests.support.postgresql_cluster import Cluster

ROWS = 2_000
CLOSE = 1e-9
CASES = ("two", "several", "number", "centred", "odds", *made_up_models())


def release_of(case: str) -> Release:
    trained = exported_releases()
    return trained[case] if case in trained else with_model(trained["two"], made_up_models()[case])


def assert_same(release: Release, table: Any, found: export_runners.Answers) -> None:
    labels, numbers = export_runners.predicted(release, table)
    assert found[0] == labels
    assert np.max(np.abs(np.array(found[1], dtype=np.float64) - numbers)) < CLOSE


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return dirty_table(ROWS)


@pytest.mark.parametrize("case", CASES)
def test_python_file(case: str, table: pd.DataFrame) -> None:
    assert_same(release_of(case), table, export_runners.run_python(release_of(case), table))


@pytest.mark.parametrize("case", CASES)
def test_onnx(case: str, table: pd.DataFrame) -> None:
    assert_same(release_of(case), table, export_runners.run_onnx(release_of(case), table))


@pytest.fixture(scope="module")
def sqlite(table: pd.DataFrame) -> sqlite3.Connection:
    return export_runners.sqlite_database(table)


@pytest.mark.parametrize("case", CASES)
def test_sqlite(case: str, table: pd.DataFrame, sqlite: sqlite3.Connection) -> None:
    assert_same(release_of(case), table, export_runners.run_sql(release_of(case), sqlite))


@pytest.fixture(scope="module")
def duck(table: pd.DataFrame) -> Any:
    return export_runners.duckdb_database(table)


@pytest.mark.parametrize("case", CASES)
def test_duckdb(case: str, table: pd.DataFrame, duck: Any) -> None:
    assert_same(release_of(case), table, export_runners.run_sql(release_of(case), duck))


def test_postgresql(table: pd.DataFrame, server: Cluster) -> None:
    import psycopg

    with psycopg.connect(server.new_place(), autocommit=True) as database:
        export_runners.fill_postgresql(database, table)
        for case in CASES:
            assert_same(release_of(case), table, export_runners.run_sql(release_of(case), database))


@pytest.mark.parametrize("case", array_models())
def test_plain_arrays(case: str) -> None:
    release = with_model(exported_releases()["number"], array_models()[case])
    X = np.random.default_rng(0).normal(0.0, 1.0, (ROWS, 5)) * np.logspace(-3, 3, ROWS)[:, np.newaxis]
    columns = {f"x[{place}]": column for place, column in enumerate(X.T)}
    model = json.loads(export_release(release, "json"))
    rows = [dict(zip(columns, row.tolist(), strict=True)) for row in X]
    assert_same(release, X, ([], [standalone.predict(row, model)["prediction"] for row in rows]))
    running = onnxruntime.InferenceSession(export_release(release, "onnx"))
    inputs = {name: column[:, np.newaxis] for name, column in columns.items()}
    assert_same(release, X, ([], running.run(["prediction"], inputs)[0]))
    database = duckdb.connect()
    database.register("frame", pd.DataFrame(columns))
    found = database.execute(export_release(release, "sql", table="frame").decode()).fetchall()
    assert_same(release, X, ([], [row[5:] for row in found]))


def test_every_target_is_compared_with_the_release() -> None:
    calculator = Path(__file__).parents[1] / "browser" / "test_browser_calculator.py"
    compared: dict[str, Any] = {
        "python": test_python_file,
        "onnx": test_onnx,
        "sql": test_postgresql,
        "json": test_plain_arrays,
        "html-calculator": calculator.read_text().index("run_calculator(release"),
    }
    assert set(compared) == set(TARGETS), "write a test that a new target predicts what the release predicts"


def test_command_line_of_the_python_file(table: pd.DataFrame, tmp_path: Path, capsys: Any) -> None:
    release = release_of("two")
    table.to_csv(tmp_path / "rows.csv", index=False)
    export_runners.load_python(release).main(tmp_path / "rows.csv")
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "prediction,probability_no,probability_yes"
    cells = [line.split(",") for line in lines]
    assert_same(release, table, ([row[0] for row in cells], [row[1:] for row in cells]))
