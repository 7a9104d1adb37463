"""A data set is described on a server: paid once, shown on a page, fetched and verified."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from privlearn.release import verify_bytes
from privlearn.server.holder import Owner
from privlearn.statistics.description import Description
from tests.support.served import Served, serving
from tests.support.service_support import write_clinic


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(Owner.load(write_clinic(tmp_path_factory.mktemp("clinic")))) as running:
        yield running


def test_a_description_is_a_job(served: Served) -> None:
    before = served.spent()[0]
    fields = {"correlations": False, "crosses": [["sex", "outcome"]]}
    body = {"kind": "describe", "dataset": "clinic", "epsilon": 0.5} | fields
    job = served.finished(served.alice.post("/v1/jobs", json=body).json()["id"])
    assert served.spent()[0] == pytest.approx(before + 0.5)
    content = served.alice.get(f"/v1/results/{job['id']}/content").content
    assert verify_bytes(content).is_private
    description = Description.from_bytes(content)
    assert description.certificate.records == 300
    assert description.about["crosses"] == [["sex", "outcome"]]
    key = served.alice.headers["Authorization"].removeprefix("Bearer ")
    own = {"Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=served.url, headers=own, timeout=60.0, trust_env=False) as browser:
        browser.post("/sign-in", data={"key": key})
        page = browser.get(f"/jobs/{job['id']}").text
    assert "approximate count" in page
    assert ' style="' not in page  # the policy of the pages would refuse it
    assert "What that guarantees" in page
    assert "false alarms" in page


def test_what_is_refused_costs_nothing(served: Served) -> None:
    before = served.spent()
    body = {"kind": "describe", "dataset": "clinic", "epsilon": 1000.0}
    assert served.alice.post("/v1/jobs", json=body).status_code >= 400
    body = {"kind": "describe", "dataset": "clinic", "epsilon": 0.1, "columns": ["age"]}
    assert served.alice.post("/v1/jobs", json=body).status_code >= 400
    assert served.spent() == before
