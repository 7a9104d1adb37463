"""A session that answers from a model says the same of a point, asked alone or among others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from privlearn.service.jobs.answering import FromModel
from tests.support.old_stores import EXPECTED, FIXTURES

ROWS = pa.table(EXPECTED["releases"]["rows"])


@pytest.mark.parametrize("name", ["fourier", "landmarks", "logistic", "multinomial", "regression"])
def test_a_point_alone_and_among_others(name: str) -> None:
    answering = FromModel((FIXTURES / f"{name}.privlearn").read_bytes())
    together = answering.predict(ROWS, None)
    alone = [answering.predict(ROWS.slice(place, 1), None) for place in range(ROWS.num_rows)]
    scores = np.concatenate([answer.scores for answer in alone])
    assert scores == pytest.approx(together.scores, rel=1e-9, abs=1e-12)
    if name != "regression":
        assert (
            np.concatenate([answer.predictions for answer in alone]).tolist() == together.predictions.tolist()
        )
