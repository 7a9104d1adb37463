"""Tables that do not fit: an error that names the column and shows no cell, or a correct encoding."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privlearn.data import Schema, SchemaEncoder
from tests.support.canary import CANARY_NUMBER, CANARY_TEXT
from tests.support.rows import filled

Refused = Callable[..., AbstractContextManager[None]]
A_DAY = datetime.datetime(2001, 2, 3)

BAD_COLUMNS: dict[str, tuple[str, list[Any], str]] = {
    "NaN": ("age", [math.nan, CANARY_NUMBER], "missing: zero"),
    "none": ("age", [None, CANARY_NUMBER], "missing: zero"),
    "all missing": ("age", [None, None], "missing: zero"),
    "text for a number": ("age", [CANARY_TEXT, "3"], "cells that are not numbers"),
    "text among numbers": ("age", [CANARY_NUMBER, CANARY_TEXT], "column 'age'"),
    "date for a number": ("age", [A_DAY, A_DAY], "Convert it to numbers"),
    "list for a number": ("age", [[CANARY_NUMBER], [1]], "nested values"),
    "dict for a number": ("age", [{CANARY_TEXT: 1}, {CANARY_TEXT: 2}], "nested values"),
    "bytes for a number": ("age", [CANARY_TEXT.encode(), b"1"], "Convert it to numbers"),
    "complex number": ("age", [CANARY_NUMBER + 1j, 1], "column 'age'"),
    "unknown category": ("sex", [CANARY_TEXT, "male"], "unknown: zero"),
    "missing category": ("sex", [None, "male"], "missing: zero"),
    "number for a text category": ("sex", [CANARY_NUMBER, 1], "the schema lists text"),
    "bytes for a category": ("sex", [CANARY_TEXT.encode(), b"male"], "the schema lists text"),
    "unknown whole category": ("ward", [CANARY_NUMBER, 1], "unknown: zero"),
    "fraction for a whole category": ("ward", [CANARY_NUMBER + 0.5, 1], "unknown: zero"),
    "text for a whole category": ("ward", [CANARY_TEXT, "1"], "cells that are not whole numbers"),
    "boolean for a whole category": ("ward", [True, False], "the schema lists whole numbers"),
    "text for a boolean": ("smoker", [CANARY_TEXT, "true"], "cells that are not true or false"),
    "number for a boolean": ("smoker", [CANARY_NUMBER, 1], "cells that are not true or false"),
    "number for a text": ("note", [CANARY_NUMBER, 1], "where the schema has text"),
    "missing text": ("note", [None, CANARY_TEXT], "missing: zero"),
    "nested text": ("note", [[CANARY_TEXT], ["b"]], "nested values"),
}


@pytest.fixture
def encoder(schema: Schema) -> SchemaEncoder:
    content = schema.to_dict()
    content["columns"]["note"] = {"type": "text", "features": 16}
    return SchemaEncoder(Schema.from_dict(content))


@pytest.fixture
def table(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {**{name: cells[:2] for name, cells in columns.items()}, "note": ["good words", "more words"]}


@pytest.mark.parametrize(("name", "cells", "message"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
@pytest.mark.parametrize("container", [dict, pd.DataFrame])
def test_a_bad_column_is_named_and_not_shown(
    name: str,
    cells: list[Any],
    message: str,
    container: Any,
    encoder: SchemaEncoder,
    table: Any,
    refused: Refused,
) -> None:
    with refused(f"column {name!r}", message):
        encoder.encode(container({**table, name: cells}))


@pytest.mark.parametrize("name", ["age", "sex", "ward", "note"])
def test_objects_of_polars(name: str, encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    frame = pl.DataFrame(table).with_columns(pl.Series(name, [{CANARY_TEXT}, {1}], dtype=pl.Object))
    with refused():
        encoder.encode(frame)


def test_an_arrow_nan_is_a_missing_cell(encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    """Arrow keeps NaN apart from null; pandas does not."""
    cells = pa.array([CANARY_NUMBER, math.nan], from_pandas=False)
    for name in ("age", "ward"):
        with refused(f"column {name!r}", "missing: zero"):
            encoder.encode(pa.table({**table, name: cells}))
    persons = SchemaEncoder(Schema.from_dict({**encoder.schema.to_dict(), "person": "id"}))
    with refused("column 'id'", "missing cells"):
        persons.person_weights(pa.table({"id": cells}))


def test_text_that_is_not_utf8(encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    raw = pa.array([CANARY_TEXT.encode() + b"\xff", b"b"])
    note = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    with refused("column 'note'", "UTF-8"):
        encoder.encode(pa.table({**table, "note": note}))


def test_text_that_cannot_be_utf8(encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    with refused("column 'note'"):
        encoder.encode({**table, "note": [CANARY_TEXT + "\ud800", "b"]})


def test_numpy_objects(encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    rows = np.array(list(table.values()), dtype=object).T
    rows[0, 0] = CANARY_TEXT
    with refused("column 'age'"):
        encoder.encode(rows)


def test_a_missing_column(encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    del table["ward"]
    with refused("column 'ward' is missing"):
        encoder.encode({**table, CANARY_TEXT: [1, 2]})


def test_repeated_columns(encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    frame = pd.DataFrame(table)
    with refused("column 'sex' occurs twice"):
        encoder.encode(pd.concat([frame, frame[["sex"]]], axis=1))
    arrow = pa.table(table)
    with refused("column 'age' occurs twice"):
        encoder.encode(arrow.append_column("age", arrow["age"]))
    with refused("columns 7 and 8 (counted from 0)"):
        encoder.encode(
            arrow.append_column(CANARY_TEXT, arrow["age"]).append_column(CANARY_TEXT, arrow["age"])
        )


@pytest.mark.parametrize("container", [dict, pd.DataFrame, pl.DataFrame])
def test_no_rows(container: Any, encoder: SchemaEncoder, table: Any, refused: Refused) -> None:
    with refused("no rows"):
        encoder.encode(container({name: [] for name in table}))


def test_one_row(encoder: SchemaEncoder, table: Any) -> None:
    first = filled(encoder.encode({name: cells[:1] for name, cells in table.items()}))
    assert np.array_equal(first, filled(encoder.encode(table))[:1])


@pytest.mark.parametrize(
    "cell", [10**9, 10**40, 10**400, 10.0**300, math.inf, Decimal("1e40"), Decimal("1e400")]
)
def test_a_billion_in_a_bounded_column_is_the_bound(cell: float, encoder: SchemaEncoder, table: Any) -> None:
    beyond = filled(encoder.encode({**table, "age": [cell, -cell]}))
    assert np.array_equal(beyond, filled(encoder.encode({**table, "age": [120, 0]})))


BAD_LABELS: dict[str, tuple[list[Any], str]] = {
    "unseen": (["ill", CANARY_TEXT], "does not list"),
    "missing": (["ill", None], "missing labels"),
    "NaN": (["ill", math.nan], "missing labels"),
    "all missing": ([None, None], "missing labels"),
    "numbers": ([CANARY_NUMBER, 1], "the schema lists text"),
    "mixed": (["ill", CANARY_NUMBER], "target 'outcome'"),
    "dates": ([A_DAY, A_DAY], "the schema lists text"),
    "nested": ([[CANARY_TEXT], ["ill"]], "target"),
}


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
@pytest.mark.parametrize("container", [list, pd.Series, lambda labels: np.array(labels, dtype=object)])
def test_bad_labels(
    labels: Any, message: str, container: Any, encoder: SchemaEncoder, refused: Refused
) -> None:
    with refused("target 'outcome'", message):
        encoder.encode_labels(container(labels))


def test_a_table_of_labels(encoder: SchemaEncoder, refused: Refused) -> None:
    with refused("target 'outcome'"):
        encoder.encode_labels(np.array([[CANARY_TEXT, "ill"]]))


BAD_PERSONS = {
    "missing": [CANARY_TEXT, None],
    "NaN": [CANARY_NUMBER, math.nan],
    "nested": [[CANARY_TEXT], []],
    "fraction": [CANARY_NUMBER + 0.5, 1.0],
    "float beyond 2^53": [2.0**53, CANARY_NUMBER],
    "decimal beyond 2^53": [Decimal(2**53), Decimal(CANARY_NUMBER)],
    "truth": [True, CANARY_TEXT],
    "dates": [A_DAY, A_DAY],
}


@pytest.mark.parametrize("persons", BAD_PERSONS.values(), ids=BAD_PERSONS)
def test_bad_persons(persons: list[Any], refused: Refused) -> None:
    schema = Schema.from_dict({"name": "t", "columns": {"x": {"type": "text"}}, "person": "id"})
    with refused("column 'id'"):
        SchemaEncoder(schema).person_weights({"id": persons, "x": ["w", "w"]})


def test_the_encoder_s_own_text_shows_nothing(encoder: SchemaEncoder, table: Any) -> None:
    encoder.encode({**table, "note": [CANARY_TEXT, CANARY_TEXT]})
    assert CANARY_TEXT not in repr(encoder) + repr(vars(encoder)) + repr(encoder.schema)
