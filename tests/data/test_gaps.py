"""Codes for gaps that a schema states are gaps in every table, in memory or in a file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn import InvalidParameter, PrivateLogisticRegression, Release
from privlearn.data import Resolution, Schema, SchemaEncoder, open_records
from privlearn.data.sources import read_block
from privlearn.errors import DataError
from privlearn.export import export_release
from privlearn.release.encoders import base_of, feature_columns
from privlearn.release.refinement import curves

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


INDICATED = Schema.from_dict(
    {
        "name": "t",
        "columns": {
            "crp": {"type": "number", "lower": 0, "upper": 100, "missing": "indicator"},
            "ward": {
                "type": "category",
                "values": ["east", "west"],
                "unknown": "zero",
                "missing": "indicator",
            },
        },
        "target": {"name": "ill", "classes": [0, 1]},
    }
)
GAPS: dict[str, Any] = {"crp": [5, None, 30], "ward": ["east", "south", None]}


@pytest.mark.parametrize("resolution", [None, Resolution(bins=8, bin_share=0.2, grid=4, pair_share=0.2)])
def test_gaps_can_be_a_feature(resolution: Resolution | None) -> None:
    encoder = SchemaEncoder(INDICATED, resolution=resolution)

    def encode(table: dict[str, Any]) -> Any:
        rows: Any = encoder.encode(table)
        return rows if resolution is None else rows.toarray()

    rows = encode(GAPS)
    names = encoder.layout.feature_names
    shown = {name: rows[:, names.index(f"{name} missing")] > 0.0 for name in ("crp", "ward")}
    np.testing.assert_array_equal(shown["crp"], [False, True, False])
    np.testing.assert_array_equal(shown["ward"], [False, True, True])  # a cell outside the list, too
    others = [
        columns == ("crp",) and name != "crp missing"
        for name, columns in zip(names, encoder.layout.feature_columns, strict=True)
    ]
    assert not rows[1, others].any()
    assert np.all(np.linalg.norm(rows, axis=1) <= 1.0)
    np.testing.assert_array_equal(encode({name: cells[1:2] for name, cells in GAPS.items()})[0], rows[1])


def gappy(rows: int, seed: int) -> dict[str, Any]:
    """Return rows in which only a gap says something about the target."""
    source = np.random.default_rng(seed)
    ill = source.integers(0, 2, rows)
    crp = np.where(source.random(rows) < np.where(ill == 1, 0.6, 0.1), np.nan, source.uniform(0, 100, rows))
    return {"crp": crp, "ward": source.choice(["east", "west"], rows), "ill": ill}


def test_a_model_learns_from_gaps_and_is_not_exported() -> None:
    settings: dict[str, Any] = {"schema": INDICATED, "epsilon": 4.0, "delta": 1e-6, "random_state": 0}
    release = PrivateLogisticRegression(**settings).fit(gappy(3000, 0)).release_
    test = gappy(2000, 1)
    assert np.mean(release.model.predict(test) == test["ill"]) > 0.7
    with pytest.raises(
        InvalidParameter, match="crp, ward: columns with missing: indicator cannot be exported"
    ):
        export_release(release, "json")
    assert (
        Release.from_bytes(release.to_bytes()).model.predict(test).tolist()
        == release.model.predict(test).tolist()
    )


@pytest.mark.parametrize("records", [300, 30_000])  # centred rows; then bins and pairs
def test_refined_curves_leave_the_feature_of_gaps(records: int) -> None:
    settings: dict[str, Any] = {"schema": INDICATED, "epsilon": 4.0, "delta": 1e-6, "random_state": 0}
    release = PrivateLogisticRegression(**settings).fit(gappy(records, 0)).release_
    encoder: Any = release.model.encoder
    owners = feature_columns(encoder)
    found = [
        index
        for curve in curves(encoder, "crp")
        for index in (*curve.indices, curve.line)
        if index is not None
    ]
    base = base_of(encoder)
    assert isinstance(base, SchemaEncoder)
    gap = base.layout.feature_names.index("crp missing")
    assert sorted(found) == [
        index for index, columns in enumerate(owners) if "crp" in columns and index != gap
    ]
