"""Exports, run where they are meant to run: each gives labels, and numbers beside them, in the order of the rows."""

from __future__ import annotations

import datetime
import json
import math
import sqlite3
import sys
import types
from typing import Any

import numpy as np
import pandas as pd

from privlearn import Release
from privlearn.export import Scorecard, export_release, scorecard
from privlearn.export.scorecard import Classes, ListInput
from privlearn.export.standalone import read_cell

Answers = tuple[list[Any], Any]
"""Labels (none of a regression), and probabilities, or else scores; of a regression the predictions."""

TABLE = '"cli""nic"'
_TYPES = "id integer, age {0}, income {0}, hour {0}, grade text, job text, rooms {0}, smoker {1}, seen {2}"
_EPOCH = datetime.date(1970, 1, 1)


def predicted(release: Release, table: Any) -> Answers:
    """Return the release's own predictions."""
    model: Any = release.model
    predictions = model.predict(table)
    if not hasattr(model, "classes"):
        return [], predictions.reshape(len(predictions), -1)
    has_none = (
        model.link == "none" and model.log_odds is None and not (model.decision and model.decision.scores)
    )
    numbers = model.decision_function(table) if has_none else model.predict_proba(table)
    return predictions.tolist(), numbers.reshape(len(predictions), -1)


def run_python(release: Release, table: pd.DataFrame) -> Answers:
    exported = load_python(release)
    found = [exported.predict(row) for row in table.to_dict("records")]
    if "scores" not in found[0]:
        return [], [[row["prediction"]] for row in found]
    numbers = [
        list(row["probabilities"].values()) if "probabilities" in row else row["scores"] for row in found
    ]
    return [row["prediction"] for row in found], numbers


def load_python(release: Release) -> Any:
    """Return the Python file as an imported module."""
    exported = types.ModuleType("exported")
    sys.modules["exported"] = exported  # dataclasses look there
    exec(compile(export_release(release, "python"), "model.py", "exec"), exported.__dict__)
    return exported


def run_onnx(release: Release, table: pd.DataFrame) -> Answers:
    import onnxruntime

    card = scorecard(release)
    running = onnxruntime.InferenceSession(export_release(release, "onnx"))
    names = [output.name for output in running.get_outputs()]
    found = dict(zip(names, running.run(names, _onnx_inputs(card, table)), strict=True))
    assert not found["refused"].any()
    if not isinstance(card.outcome, Classes):
        return [], found["prediction"]
    return found["prediction"][:, 0].tolist(), found.get("probabilities", found.get("scores"))


def _onnx_inputs(card: Scorecard, table: pd.DataFrame) -> dict[str, Any]:
    """Return inputs as the documentation defines them: text, or doubles with NaN where a cell is missing."""
    found: dict[str, Any] = {}
    for column in card.inputs:
        cells = [_plain(cell) for cell in table[column.name]]
        if isinstance(column, ListInput) and isinstance(column.values[0], str):
            found[column.name] = np.array([["" if cell is None else cell] for cell in cells], dtype=object)
            continue
        if column.type == "date":
            cells = [cell and (datetime.date.fromisoformat(cell) - _EPOCH).days for cell in cells]
        found[column.name] = np.array([[math.nan if cell is None else float(cell)] for cell in cells])
    return found


def run_calculator(release: Release, table: pd.DataFrame, page: Any) -> Answers:
    """Run the page as a browser has opened it: its own formula, on cells as its form passes them."""
    card = scorecard(release).model_dump()
    columns = card["inputs"]
    rows = [
        {column["name"]: _finite(read_cell(row[column["name"]], column, card["file"])) for column in columns}
        for row in table.to_dict("records")
    ]
    # As text: the driver takes a second for a hundred nested values.
    found = json.loads(
        page.evaluate("text => JSON.stringify(JSON.parse(text).map(predict))", json.dumps(rows))
    )
    if not isinstance(scorecard(release).outcome, Classes):
        return [], [[row["prediction"]] for row in found]
    return [row["prediction"] for row in found], [row["probabilities"] for row in found]


def _finite(cell: Any) -> Any:
    """JSON has no infinity, and a form takes none: a number beyond every bound."""
    return 1e300 if cell == math.inf else cell


def sqlite_database(table: pd.DataFrame) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE {TABLE} ({_TYPES.format('real', 'integer', 'text')})")
    database.executemany(f"INSERT INTO {TABLE} VALUES ({', '.join('?' * 9)})", _numbered(table))
    return database


def duckdb_database(table: pd.DataFrame) -> Any:
    import duckdb

    database = duckdb.connect()
    database.register("frame", table.assign(id=range(len(table))))
    database.execute(f"CREATE TABLE {TABLE} AS SELECT * REPLACE (CAST(seen AS DATE) AS seen) FROM frame")
    return database


def fill_postgresql(database: Any, table: pd.DataFrame) -> None:
    database.execute(f"CREATE TABLE {TABLE} ({_TYPES.format('double precision', 'boolean', 'date')})")
    database.cursor().executemany(f"INSERT INTO {TABLE} VALUES ({', '.join(['%s'] * 9)})", _numbered(table))


def run_sql(release: Release, database: Any) -> Answers:
    rows = sorted(database.execute(export_release(release, "sql", keep=["id"]).decode()).fetchall())
    if isinstance(scorecard(release).outcome, Classes):
        return [row[1] for row in rows], [row[2:] for row in rows]
    return [], [row[1:] for row in rows]


def _numbered(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    rows = table.astype(object).itertuples(index=False)
    return [(place, *map(_plain, row)) for place, row in enumerate(rows)]


def _plain(cell: Any) -> Any:
    return None if cell is None or cell != cell else cell
