"""Every target predicts what the release predicts: gaps, unknown values and numbers out of range included."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
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


AS_TEXT: dict[str, Sequence[str]] = {
    "number": ("12", "12.9", "-3", "+5", "5.", ".5", "1e1", "1.5E+1", "2e-1", "inf", "-Infinity"),
    "date": ("2020-02-29", "2021-12-31 23:59:59", "2019-06-30T00:00:00Z"),
    "list": ("1", "2.0"),
}
REFUSED: dict[str, Sequence[str]] = {
    "number": (
        *("12,9", "k.A.", "abc", "2020-01-31", "1.2.3", "1-2", "--5", "e5", "5e", ".", "-", "5 m"),
        *("<5", "><5", "<>"),  # what the test of forms writes itself
    ),
    "date": (
        *("05.05.2021", "20210505", "2021-1-5", "2021-05-05x", "k.A."),
        *("2021-02-29", "1900-02-29", "2021-13-01", "2021-00-10"),
    ),
    "list": ("k.A.", "1,0", "one"),
}
COLUMN_OF = {"number": "age", "date": "seen", "list": "rooms"}


def _textual() -> list[tuple[str | None, ...]]:
    """Rows of text, each with one cell that is to be read or refused, and beside it cells that say nothing."""
    cells = [(kind, text) for table in (AS_TEXT, REFUSED) for kind, texts in table.items() for text in texts]
    return [tuple(text if kind == each else None for each in COLUMN_OF) for kind, text in cells]


def _assert_text_is_read_or_refused(database: Any, mark: str) -> None:
    columns = ["age", "income", "hour", "grade", "job", "rooms", "smoker", "seen"]
    database.execute(f"CREATE TABLE texts (id integer, {', '.join(f'{name} text' for name in columns)})")
    rows = _textual()
    insert = f"INSERT INTO texts (id, age, seen, rooms) VALUES ({', '.join([mark] * 4)})"
    for place, row in enumerate(rows):
        database.execute(insert, (place, *row))
    release = release_of("two")
    found = sorted(
        database.execute(export_release(release, "sql", table="texts", keep=["id"]).decode()).fetchall()
    )
    readable = sum(map(len, AS_TEXT.values()))
    assert [row[1:] for row in found[readable:]] == [(None, None, None)] * (len(rows) - readable)
    typed = pd.DataFrame(dict.fromkeys(columns, [None] * readable)).astype(object)
    for place, (age, seen, rooms) in enumerate(rows[:readable]):
        typed.loc[place, ["age", "rooms"]] = [cell and float(cell) for cell in (age, rooms)]
        typed.loc[place, "seen"] = seen
    typed = typed.astype({"age": float, "rooms": float})
    assert_same(release, typed, ([row[1] for row in found[:readable]], [row[2:] for row in found[:readable]]))


def test_text_in_sqlite_is_read_or_refused() -> None:
    _assert_text_is_read_or_refused(sqlite3.connect(":memory:"), "?")


def test_text_in_duckdb_is_read_or_refused() -> None:
    _assert_text_is_read_or_refused(duckdb.connect(), "?")


def test_text_in_postgresql_is_read_or_refused(server: Cluster) -> None:
    import psycopg

    with psycopg.connect(server.new_place(), autocommit=True) as database:
        _assert_text_is_read_or_refused(database, "%s")


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
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(export_release(release, "python"), "model.py", "exec"), space)
    table.to_csv(tmp_path / "rows.csv", index=False)
    space["main"](tmp_path / "rows.csv")
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "prediction,probability_no,probability_yes"
    cells = [line.split(",") for line in lines]
    assert_same(release, table, ([row[0] for row in cells], [row[1:] for row in cells]))
