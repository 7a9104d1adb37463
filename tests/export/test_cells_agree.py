"""One grammar of cells: every export reads text as `predict` reads it, and refuses what `predict` refuses."""
# ruff: noqa: RUF001 - digits of other scripts are no digits here

from __future__ import annotations

import csv
import sqlite3
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest

from privlearn import Release, Schema
from privlearn.data import SchemaEncoder
from privlearn.errors import PrivlearnError
from privlearn.export import export_release
from privlearn.release import LinearModel
from tests.support import export_runners
from tests.support.export_cases import exported_releases, with_model

if TYPE_CHECKING:
    from tests.support.postgresql_cluster import Cluster

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "number", "lower": 0, "upper": 120},
    "income": {"type": "number", "lower": 0, "upper": 1e6, "scale": "log"},
    "hour": {"type": "number", "period": 24},
    "seen": {"type": "date", "lower": "2000-01-01", "upper": "2025-01-01"},
    "job": {"type": "category", "values": ["nurse", "NA", "x"], "unknown": "other"},
    "rooms": {"type": "category", "values": [1, 2, 10], "unknown": "zero"},
    "smoker": {"type": "category", "values": [True, False], "unknown": "zero"},
    "grade": {"type": "ordinal", "values": ["never", "often"], "unknown": "refuse"},
}
# fmt: off
NUMBERS = (
    *("50", "3.0", "-50", " 50", "50 ", "\u00a050\t", "+50", "5e1", "5e-1", "50.", ".5", "-.5", "050", "1e5", "-0"),
    *("1e400", "-1e400", "1e-400", "1e99999999999", "0e400", "1e0000000000000000001", "2e308", "1e150", "1e-150"),
    *("0" * 400 + "50", "50." + "0" * 400, "9" * 400, "-" + "9" * 400, "0." + "0" * 400 + "1"),
    *("inf", "-inf", "Infinity", "+INF", "nan", "NaN", "-nan", "+NAN", "", " ", "NA", "null", "NULL", "N/A", "None"),
    *("true", "FALSE", "t", "0x32", "5_0", "٥٠", "½", "²", "５０", "1e", "e5", "-", "+", ".", "--5", "+-5", "5-"),
    *("50%", "5,0", "1.2.3", "1e5e5", "5f", "5 0", "<>", "<5>", "><5", "?", "k.A.", "1e+", "-9", "-9.0", "-09", " -9 "),
)
DATES = (
    *("2010-05-05", "2010-05-05T10:00", "2010-05-05 23:59:59", "2010-05-05 23:59:59.123456", "2010-05-05T10:00Z"),
    *("2010-05-05T10:00:00+02:00", "2010-05-05 10:00:00,5-0530", "2010-05-05 10:00:00+02", " 2010-05-05 "),
    *("2000-02-29", "0001-01-01", "9999-12-31", "1999-12-31", "", "NA"),
    *("20100505", "2010-W18-3", "2010-5-5", "2010-05-05x", "2010-05-05T", "2010-05-05Tabc", "2010-05-05T24:00"),
    *("2010-05-05T10:60", "2010-05-05T10:00:61", "2010-05-05T1:00", "2010-05-05  10:00", "2010-05-05T10:00 Z"),
    *("2010-02-30", "1900-02-29", "2010-13-01", "2010-00-10", "2010-01-00", "0000-01-01", "10000-01-01"),
    *("2010/05/05", "05.05.2010", "２０１０-05-05", "-2010-05-05", "2010-05-05+02:00", "k.A."),
)
TEXTS = ("nurse", "Nurse", "nurse ", " x", "x", "NA", "null", "NaN", "nan", "", " ", "None", "é", "O'x", 'd"q', "?")
TRUTHS = ("true", "TRUE", "False", "1", "0", "1.0", "0.0", " true", "2", "t", "f", "yes", "no", "on", "", "NA")
# fmt: on
CELLS = {
    **dict.fromkeys(("age", "income", "hour", "rooms"), NUMBERS),
    "smoker": TRUTHS,
    "seen": DATES,
    "job": TEXTS,
    "grade": ("never", "often", "Often", "often ", "", "NA"),
}
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "codes": {"missing": ["?", -9], "missing_in": {"seen": ["9999-12-31"], "rooms": [3], "job": ["Nurse"]}},
    "trimmed": {"trim": True, "missing": ["None"]},
}


def release_with(file: dict[str, Any]) -> Release:
    columns = {name: column | {"missing": "zero"} for name, column in COLUMNS.items()}
    target = {"name": "ill", "classes": ["no", "yes"]}
    encoder = SchemaEncoder(
        Schema.from_dict({"name": "t", "columns": columns, "file": file, "target": target})
    )
    weights = np.random.default_rng(0).normal(0.0, 3.0, (1, encoder.dimension))
    model = LinearModel(encoder, weights, np.array(["no", "yes"]), "logistic")
    return with_model(exported_releases()["two"], model)


def rows() -> list[dict[str, str | None]]:
    """Return rows of text with one cell each; the others are missing."""
    nothing: dict[str, str | None] = dict.fromkeys(COLUMNS)
    return [nothing | {name: text} for name, texts in CELLS.items() for text in texts]


@cache
def expected(form: str) -> list[float | None]:
    """Return the probability of each row by the release itself; None where it refuses the row."""
    release = release_with(FORMS[form])
    return [_probability(release, row) for row in rows()]


def _probability(release: Release, row: dict[str, str | None]) -> float | None:
    model: Any = release.model
    try:
        return float(model.predict_proba({name: [cell] for name, cell in row.items()})[0, 1])
    except PrivlearnError:
        return None


def assert_same(form: str, found: list[float | None]) -> None:
    pairs = zip(rows(), expected(form), found, strict=True)
    different = [
        ({name: text for name, text in row.items() if text is not None}, one, other)
        for row, one, other in pairs
        if one != pytest.approx(other, abs=1e-9)
    ]
    assert different == []


def test_the_cells_are_read_and_refused() -> None:
    outcomes = [outcome is None for outcome in expected("plain")]
    assert 100 < sum(outcomes) < len(outcomes) - 100


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_the_python_file(form: str) -> None:
    exported = export_runners.load_python(release_with(FORMS[form]))

    def predicted(row: dict[str, Any]) -> float | None:
        try:
            return float(exported.predict(row)["probabilities"]["yes"])
        except ValueError:
            return None

    assert_same(form, [predicted(row) for row in rows()])


@pytest.mark.parametrize("form", FORMS)
def test_files_of_the_python_file_and_of_predict(form: str, tmp_path: Path) -> None:
    """Cells in a CSV file, one record each, whose empty cells are gaps."""
    from privlearn.data.sources import open_rows

    release = release_with(FORMS[form])
    exported, model = export_runners.load_python(release), release.model
    encoder: Any = model.encoder
    found: list[float | None] = []
    for row in rows():
        path = tmp_path / "rows.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([list(row), ["" if cell is None else cell for cell in row.values()]])
        found.append(_from_file(exported, path))
        try:
            (block,) = open_rows(path, encoder.schema.model_copy(update={"target": None})).blocks()
            own: float | None = float(model.predict_proba(block)[0, 1])  # type: ignore[union-attr]
        except PrivlearnError:
            own = None
        assert own == pytest.approx(found[-1], abs=1e-9), row
    assert_same(form, found)


def _from_file(exported: Any, path: Path) -> float | None:
    try:
        ((_, row),) = exported.read_rows(str(path), exported.MODEL)
        return float(exported.predict(row)["probabilities"]["yes"])
    except ValueError:
        return None


def _ask(database: Any, mark: str, form: str) -> list[float | None]:
    database.execute("DROP TABLE IF EXISTS texts")
    database.execute(f"CREATE TABLE texts (id integer, {', '.join(f'{name} text' for name in COLUMNS)})")
    insert = f"INSERT INTO texts VALUES ({', '.join([mark] * (1 + len(COLUMNS)))})"
    for index, row in enumerate(rows()):
        database.execute(insert, (index, *row.values()))
    query = export_release(release_with(FORMS[form]), "sql", table="texts", keep=["id"]).decode()
    return [row[3] for row in sorted(database.execute(query).fetchall())]


@pytest.mark.parametrize("form", FORMS)
def test_sqlite(form: str) -> None:
    assert_same(form, _ask(sqlite3.connect(":memory:"), "?", form))


@pytest.mark.parametrize("form", FORMS)
def test_duckdb(form: str) -> None:
    assert_same(form, _ask(duckdb.connect(), "?", form))


@pytest.mark.parametrize("form", FORMS)
def test_postgresql(form: str, server: Cluster) -> None:
    import psycopg

    with psycopg.connect(server.new_place(), autocommit=True) as database:
        assert_same(form, _ask(database, "%s", form))


def test_small_and_large_typed_numbers_do_not_end_a_query_of_postgresql(server: Cluster) -> None:
    import psycopg

    release, typed = release_with({}), [1e-320, 1e-300, 1e-170, 1e-150, -1e-200, 1e150, 1e300, -1e308, 0.1]
    with psycopg.connect(server.new_place(), autocommit=True) as database:
        types = {"age": "double precision", "income": "double precision", "hour": "double precision"}
        columns = ", ".join(f"{name} {types.get(name, 'text')}" for name in COLUMNS)
        database.execute(f"CREATE TABLE typed (id integer, {columns})")
        for index, value in enumerate(typed):
            insert = "INSERT INTO typed (id, age, income, hour) VALUES (%s, %s, %s, %s)"
            database.execute(insert, (index, value, value, value))
        query = export_release(release, "sql", table="typed", keep=["id"]).decode()
        found = [row[3] for row in sorted(database.execute(query).fetchall())]
    rows = dict.fromkeys(COLUMNS, [None] * len(typed)) | dict.fromkeys(types, typed)
    model: Any = release.model
    np.testing.assert_allclose(found, model.predict_proba(rows)[:, 1], atol=1e-9)


def test_codes_for_gaps_that_are_numbers_or_text_in_memory() -> None:
    import onnxruntime

    release = release_with(FORMS["codes"])
    typed = {"age": -9.0, "rooms": 3.0, "hour": 5.0}
    row: dict[str, Any] = dict.fromkeys(COLUMNS) | typed
    model: Any = release.model
    own = model.predict_proba({name: [cell] for name, cell in row.items()})[0, 1]
    missing = model.predict_proba({name: [5.0 if name == "hour" else None] for name in COLUMNS})[0, 1]
    assert own == pytest.approx(missing, abs=1e-12)
    assert export_runners.load_python(release).predict(row)["probabilities"]["yes"] == pytest.approx(
        own, abs=1e-9
    )
    inputs = {name: np.array([[typed.get(name, np.nan)]]) for name in COLUMNS}
    inputs |= {"job": np.array([["?"]], dtype=object), "grade": np.array([["?"]], dtype=object)}
    running = onnxruntime.InferenceSession(export_release(release, "onnx"))
    assert running.run(["probabilities"], inputs)[0][0, 1] == pytest.approx(own, abs=1e-9)
