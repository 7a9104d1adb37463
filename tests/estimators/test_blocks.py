"""Rows that come in blocks are learnt from as if they were in memory: the same promise, and the same minimiser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privlearn.estimators.reading as inputs
from privlearn import PrivateGridSearch, PrivateLogisticRegression, PrivateRegressor, PrivateSVC, Schema
from privlearn.data import census_schema, open_records, simulated_census, write_table
from privlearn.data.encoding import packed_cells
from privlearn.data.sources import EncodedRows, RowSource, passes
from privlearn.errors import DataError

ROWS = 3000
TABLE = simulated_census(ROWS, seed=3)
HOURS = Schema.from_dict(
    census_schema().to_dict()
    | {
        "columns": {
            name: column for name, column in census_schema().to_dict()["columns"].items() if name != "hours"
        },
        "target": {"name": "hours", "lower": 0, "upper": 80},
    }
)
LEARNERS: dict[str, Any] = {
    "logistic": PrivateLogisticRegression(schema=census_schema()),
    "svm": PrivateSVC(schema=census_schema(), loss="huber_hinge"),
    "hinge": PrivateSVC(schema=census_schema(), loss="hinge"),
    "kernel": PrivateSVC(schema=census_schema(), kernel="rbf", gamma=2.0, fourier_pairs=50),
    "regression": PrivateRegressor(schema=HOURS),
}


@pytest.fixture
def in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RowSource[Any]:
    """Everything small: blocks of a file, cells and margins in files of their own, vectors never all at once."""
    monkeypatch.setattr("privlearn.data.sources.files.BLOCK", 700)
    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 1000)
    monkeypatch.setattr(passes, "MEMORY_LIMIT", 1000)
    monkeypatch.setattr(inputs, "IN_MEMORY", 0)
    write_table(TABLE, tmp_path / "rows.parquet")
    return open_records(tmp_path / "rows.parquet", census_schema())


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_release(name: str, in_blocks: RowSource[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    learner = LEARNERS[name].set_params(epsilon=15.0, delta=1e-5, random_state=5, tolerance=1e-9)
    streamed = learner.fit(in_blocks).release_
    monkeypatch.undo()
    whole = learner.fit(TABLE).release_
    assert streamed.certificate.to_dict() == whole.certificate.to_dict()
    np.testing.assert_allclose(streamed.model.coefficients, whole.model.coefficients, atol=1e-6)


def test_rows_are_not_all_expanded_at_once(in_blocks: RowSource[Any]) -> None:
    work = LEARNERS["logistic"].set_params(epsilon=1.0, delta=1e-5).prepare(in_blocks, None, private=True)
    assert isinstance(work.rows.features, EncodedRows)
    assert work.rows.features.shape[0] == ROWS


def test_record_batches_that_come_once() -> None:
    learner = LEARNERS["logistic"].set_params(epsilon=15.0, delta=1e-5, random_state=5, tolerance=1e-9)
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=700))
    streamed = learner.fit(reader).coefficients_
    np.testing.assert_allclose(streamed, learner.fit(TABLE).coefficients_, atol=1e-6)
    with pytest.raises(DataError, match=r"no rows|have been read"):
        learner.fit(reader)


def test_a_search_in_blocks(in_blocks: RowSource[Any]) -> None:
    learner = PrivateLogisticRegression(schema=census_schema())
    search = PrivateGridSearch(
        learner, {"regularization": [0.001, 0.1]}, epsilon=20.0, delta=1e-5, random_state=1
    )
    assert search.fit(in_blocks).score(TABLE) > 0.7
