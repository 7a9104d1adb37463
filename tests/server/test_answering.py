"""A session that answers from a model says the same of a point, asked alone or among others."""

from __future__ import annotations

import numpy as np
import pytest

from privlearn.estimators.forecast import synthetic_table
from privlearn.server.jobs.sessions import FromModel
from tests.support.release_files import release_file
from tests.support.service_support import SCHEMA

ROWS = synthetic_table(SCHEMA, 20, seed=99).drop_columns(["outcome"])


@pytest.mark.parametrize("name", ["fourier", "landmarks", "logistic", "multinomial", "regression"])
def test_a_point_alone_and_among_others(name: str) -> None:
    answering = FromModel(release_file(name).read_bytes())
    together = answering.predict(ROWS, None)
    alone = [answering.predict(ROWS.slice(place, 1), None) for place in range(ROWS.num_rows)]
    scores = np.concatenate([answer.scores for answer in alone])
    assert scores == pytest.approx(together.scores, rel=1e-9, abs=1e-12)
    if name != "regression":
        assert (
            np.concatenate([answer.predictions for answer in alone]).tolist() == together.predictions.tolist()
        )
