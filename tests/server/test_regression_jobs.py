"""A regression table is estimated on a server: paid once, shown on a page, fetched and verified."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from privlearn import Estimates
from privlearn.release import verify_bytes
from privlearn.server.holder import Owner
from tests.support.served import Served, serving
from tests.support.service_support import SCHEMA, write_clinic

NUMBER = next(name for name, column in SCHEMA.columns.items() if column.type == "number")
BODY = {"kind": "regression", "dataset": "clinic", "epsilon": 3.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("clinic")
    with serving(Owner.load(write_clinic(folder, rows=3000))) as running:
        yield running


def test_a_regression_table_is_a_job(served: Served) -> None:
    assert SCHEMA.target is not None
    before = served.spent()[0]
    body = BODY | {"formula": f"{SCHEMA.target.name} ~ {NUMBER}"}
    job = served.finished(served.alice.post("/v1/jobs", json=body).json()["id"])
    assert served.spent()[0] == pytest.approx(before + 3.0)
    content = served.alice.get(f"/v1/results/{job['id']}/content").content
    assert verify_bytes(content).is_private
    assert [row.term for row in Estimates.from_bytes(content).coefficients()] == ["(intercept)", NUMBER]


@pytest.mark.parametrize("formula", ["unknown ~ age", "no formula"])
def test_what_is_refused_costs_nothing(served: Served, formula: str) -> None:
    before = served.spent()
    assert served.alice.post("/v1/jobs", json=BODY | {"formula": formula}).status_code >= 400
    assert served.spent() == before
