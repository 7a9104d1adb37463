"""Codes for gaps that a schema states are gaps in every table, in memory or in a file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn import PrivateLogisticRegression
from privlearn.data import Schema, SchemaEncoder, open_records
from privlearn.data.sources import read_block
from privlearn.errors import DataError

SCHEMA = Schema.from_dict(
    {
        "name": "t",
        "columns": {
            "crp": {"type": "number", "lower": 0, "upper": 100, "missing": "zero"},
            "ward": {"type": "category", "values": ["east", "west"], "missing": "zero"},
        },
        "target": {"name": "ill", "classes": [0, 1]},
        "file": {"missing": ["k.A."], "missing_in": {"crp": [-9]}},
    }
)
CELLS: dict[str, Any] = {"crp": [5, -9, 30], "ward": ["east", "k.A.", "west"], "ill": [0, 1, 1]}
PLAIN = SCHEMA.model_copy(update={"file": type(SCHEMA.file)()})


def _expected() -> Any:
    gaps = {"crp": [5, None, 30], "ward": ["east", None, "west"]}
    return SchemaEncoder(PLAIN).encode(gaps)


@pytest.mark.parametrize(
    "crp",
    [
        np.array([5.0, -9.0, 30.0]),
        pa.array([5, -9, 30], pa.int16()),
        pa.array([Decimal("5.0"), Decimal("-9.0"), Decimal("30.0")]),
        pa.array([5, -9, 30]).dictionary_encode(),
        [5, "k.A.", 30.0],
        [5, -9, Decimal(30)],
    ],
    ids=["floats", "integers", "decimals", "dictionary", "with text", "of several types"],
)
def test_a_table_in_memory_has_gaps_as_a_file_has(crp: Any) -> None:
    rows = SchemaEncoder(SCHEMA).encode({"crp": crp, "ward": CELLS["ward"]})
    np.testing.assert_array_equal(rows, _expected())


def test_a_single_row_has_them_too() -> None:
    row = SchemaEncoder(SCHEMA).encode({"crp": [-9], "ward": ["k.A."]})
    np.testing.assert_array_equal(row, _expected()[1:2])


def test_a_model_of_a_table_is_that_of_its_file(tmp_path: Path) -> None:
    lines = [f"{crp},{ward},{ill}" for crp, ward, ill in zip(*CELLS.values(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["crp,ward,ill", *lines * 20]))
    table = {name: cells * 20 for name, cells in CELLS.items()}
    sources = (table, pa.table(table), open_records(tmp_path / "t.csv", SCHEMA))
    models = [PrivateLogisticRegression(schema=SCHEMA, epsilon=np.inf).fit(rows) for rows in sources]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coefficients_, models[0].coefficients_)


def test_what_cannot_be_read_does_not_become_a_gap() -> None:
    with pytest.raises(DataError):
        SchemaEncoder(SCHEMA).encode({"crp": [object(), -9, 3], "ward": CELLS["ward"]})


def test_other_columns_stay_as_they_are() -> None:
    table = pa.table({"age": [-9], "crp": pa.array([True])})
    assert read_block(table, ["age"], SCHEMA).column(0).to_pylist() == [-9]
    assert read_block(table, ["crp"], SCHEMA).column(0).to_pylist() == [1.0]
