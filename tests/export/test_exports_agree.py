"""Every target predicts what the release predicts: gaps, unknown values and numbers out of range included."""

from __future__ import annotations

import datetime
import json
import math
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import pytest

from privlearn import Release
from privlearn.export import export_release, scorecard, standalone
from privlearn.export.scorecard import Classes, ListInput, Scorecard
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
TRAINED = ("two", "several", "number", "centred", "odds")
CASES = (*TRAINED, *made_up_models())
_EPOCH = datetime.date(1970, 1, 1)


def release_of(case: str) -> Release:
    trained = exported_releases()
    return trained[case] if case in trained else with_model(trained["two"], made_up_models()[case])


def expected(release: Release, table: Any) -> tuple[list[Any], Any]:
    """Predictions, and the numbers beside them: probabilities, or else scores; of a regression the predictions."""
    model: Any = release.model
    predictions = model.predict(table)
    if not hasattr(model, "classes"):
        return [], predictions.reshape(len(predictions), -1)
    has_none = (
        model.link == "none" and model.log_odds is None and not (model.decision and model.decision.scores)
    )
    numbers = model.decision_function(table) if has_none else model.predict_proba(table)
    return predictions.tolist(), numbers.reshape(len(predictions), -1)


def assert_same(release: Release, table: Any, labels: list[Any], numbers: Any) -> None:
    wanted, close_to = expected(release, table)
    assert labels == wanted
    assert np.max(np.abs(np.array(numbers, dtype=np.float64) - close_to)) < CLOSE


def plain(cell: Any) -> Any:
    return None if cell is None or cell != cell else cell


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return dirty_table(ROWS)


@pytest.mark.parametrize("case", CASES)
def test_python_file(case: str, table: pd.DataFrame) -> None:
    release = release_of(case)
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(export_release(release, "python"), "model.py", "exec"), space)
    found = [space["predict"](row) for row in table.to_dict("records")]
    if "prediction" in found[0] and "scores" not in found[0]:
        assert_same(release, table, [], [[row["prediction"]] for row in found])
        return
    numbers = [
        list(row["probabilities"].values()) if "probabilities" in row else row["scores"] for row in found
    ]
    assert_same(release, table, [row["prediction"] for row in found], numbers)


@pytest.mark.parametrize("case", array_models())
def test_plain_arrays(case: str) -> None:
    release = with_model(exported_releases()["number"], array_models()[case])
    X = np.random.default_rng(0).normal(0.0, 1.0, (ROWS, 5)) * np.logspace(-3, 3, ROWS)[:, np.newaxis]
    columns = {f"x[{place}]": column for place, column in enumerate(X.T)}
    model = json.loads(export_release(release, "json"))
    found = [
        standalone.predict(dict(zip(columns, row.tolist(), strict=True)), model)["prediction"] for row in X
    ]
    assert_same(release, X, [], found)
    running = onnxruntime.InferenceSession(export_release(release, "onnx"))
    assert_same(
        release, X, [], running.run(["prediction"], {n: c[:, np.newaxis] for n, c in columns.items()})[0]
    )
    database = duckdb.connect()
    database.register("frame", pd.DataFrame(columns))
    rows = database.execute(export_release(release, "sql", table="frame").decode()).fetchall()
    assert_same(release, X, [], [row[5:] for row in rows])


def onnx_inputs(card: Scorecard, table: pd.DataFrame) -> dict[str, Any]:
    """As the documentation says: text, or doubles with NaN where a cell is missing."""
    found: dict[str, Any] = {}
    for column in card.inputs:
        cells = [plain(cell) for cell in table[column.name]]
        if isinstance(column, ListInput) and isinstance(column.values[0], str):
            found[column.name] = np.array([["" if cell is None else cell] for cell in cells], dtype=object)
            continue
        if column.type == "date":
            cells = [cell and (datetime.date.fromisoformat(cell) - _EPOCH).days for cell in cells]
        found[column.name] = np.array([[math.nan if cell is None else float(cell)] for cell in cells])
    return found


@pytest.mark.parametrize("case", CASES)
def test_onnx(case: str, table: pd.DataFrame) -> None:
    release = release_of(case)
    card = scorecard(release)
    running = onnxruntime.InferenceSession(export_release(release, "onnx"))
    names = [output.name for output in running.get_outputs()]
    found = dict(zip(names, running.run(names, onnx_inputs(card, table)), strict=True))
    assert not found["refused"].any()
    if not isinstance(card.outcome, Classes):
        assert_same(release, table, [], found["prediction"])
        return
    numbers = found["probabilities"] if "probabilities" in found else found["scores"]
    assert_same(release, table, found["prediction"][:, 0].tolist(), numbers)


def compare_sql(release: Release, table: pd.DataFrame, rows: list[Any]) -> None:
    """Rows of id, prediction and numbers."""
    rows = sorted(rows)
    if isinstance(scorecard(release).outcome, Classes):
        assert_same(release, table, [row[1] for row in rows], [row[2:] for row in rows])
    else:
        assert_same(release, table, [], [row[1:] for row in rows])


def numbered_rows(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    return [
        (place, *map(plain, row)) for place, row in enumerate(table.astype(object).itertuples(index=False))
    ]


_TYPES = "id integer, age {0}, income {0}, hour {0}, grade text, job text, rooms {0}, smoker {1}, seen {2}"


@pytest.fixture(scope="module")
def sqlite(table: pd.DataFrame) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(f'CREATE TABLE "cli""nic" ({_TYPES.format("real", "integer", "text")})')
    database.executemany(f'INSERT INTO "cli""nic" VALUES ({", ".join("?" * 9)})', numbered_rows(table))
    return database


@pytest.mark.parametrize("case", CASES)
def test_sqlite(case: str, table: pd.DataFrame, sqlite: sqlite3.Connection) -> None:
    sql = export_release(release_of(case), "sql", keep=["id"]).decode()
    compare_sql(release_of(case), table, sqlite.execute(sql).fetchall())


@pytest.fixture(scope="module")
def duck(table: pd.DataFrame) -> Any:
    database = duckdb.connect()
    frame = table.assign(id=range(len(table)))
    database.register("frame", frame)
    database.execute('CREATE TABLE "cli""nic" AS SELECT * REPLACE (CAST(seen AS DATE) AS seen) FROM frame')
    return database


@pytest.mark.parametrize("case", CASES)
def test_duckdb(case: str, table: pd.DataFrame, duck: Any) -> None:
    sql = export_release(release_of(case), "sql", keep=["id"]).decode()
    compare_sql(release_of(case), table, duck.execute(sql).fetchall())


def test_postgresql(table: pd.DataFrame, server: Cluster) -> None:
    import psycopg

    with psycopg.connect(server.new_place(), autocommit=True) as database:
        database.execute(f'CREATE TABLE "cli""nic" ({_TYPES.format("double precision", "boolean", "date")})')
        insert = f'INSERT INTO "cli""nic" VALUES ({", ".join(["%s"] * 9)})'
        database.cursor().executemany(insert, numbered_rows(table))
        for case in CASES:
            sql = export_release(release_of(case), "sql", keep=["id"])
            compare_sql(release_of(case), table, database.execute(sql).fetchall())


def test_command_line_of_the_python_file(table: pd.DataFrame, tmp_path: Path, capsys: Any) -> None:
    release = release_of("two")
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(export_release(release, "python"), "model.py", "exec"), space)
    table.to_csv(tmp_path / "rows.csv", index=False)
    space["main"](tmp_path / "rows.csv")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction,probability_no,probability_yes"
    cells = [line.split(",") for line in lines[1:]]
    assert_same(release, table, [row[0] for row in cells], [row[1:] for row in cells])
