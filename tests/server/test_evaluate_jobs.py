"""A release that the server holds is measured: paid once, shown on a page, fetched and verified."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from markupsafe import Markup

from privlearn import Evaluation, InvalidParameter, Ledger, verify
from privlearn.cli import main
from privlearn.client import Client
from privlearn.server.access import create_key
from privlearn.server.holder import Owner
from privlearn.server.job_kinds import Evaluate
from privlearn.server.jobs import ResultInfo
from tests.support.served import Served, serving
from tests.support.service_support import write_clinic

ANNEX = """
[datasets.annex]
table = "clinic.csv"
schema = "clinic.schema.yaml"
epsilon = 4.0
delta = 1e-5
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a second data set, whose records resemble those of the first."""
    place = write_clinic(tmp_path_factory.mktemp("clinic"))
    share = "[analysts.alice]\nannex = { epsilon = 4.0, delta = 1e-5 }\n"
    place.write_text(place.read_text().replace("[analysts.alice]\n", share) + ANNEX)
    with serving(Owner.load(place)) as running:
        yield running


@pytest.fixture(scope="module")
def release_id(served: Served) -> str:
    return served.train("release", epsilon=0.5)


def key_of(served: Served, name: str = "alice") -> str:
    key: str = getattr(served, name).headers["Authorization"].removeprefix("Bearer ")
    return key


@contextmanager
def browsing(served: Served) -> Iterator[httpx2.Client]:
    """Signed in as a browser is."""
    own = {"Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=served.url, headers=own, timeout=60.0, trust_env=False) as browser:
        browser.post("/sign-in", data={"key": key_of(served)})
        yield browser


def test_through_the_client(served: Served, release_id: str, tmp_path: Path) -> None:
    before = served.spent()[0]
    with Client(served.url, key_of(served)) as client:
        found = client.evaluate("clinic", release_id, epsilon=0.25, by=["sex"])
        assert {kind["name"] for kind in client.kinds()} == {
            "release",
            "session",
            "evaluate",
            "describe",
            "regression",
        }
        release = client.download(release_id)
    assert isinstance(found, Evaluation)
    assert served.spent()[0] == pytest.approx(before + 0.25)
    assert found.about["release_sha256"] == release.digest
    assert found.certificate.records == 300
    assert {result.group for result in found.groups} == {"female", "male"}
    entry = Ledger.open(served.store, "clinic").statement().entries[-1]
    assert entry.purpose == f"evaluate, {release_id} (counts)"
    found.save(tmp_path / "e.privlearn")
    assert verify(tmp_path / "e.privlearn").is_private
    release.with_threshold(found.best_threshold(), found).save(tmp_path / "t.privlearn")
    assert verify(tmp_path / "t.privlearn").is_private


def test_the_job_has_a_page_with_figures(served: Served, release_id: str) -> None:
    body = {"kind": "evaluate", "dataset": "clinic", "epsilon": 0.2, "release": release_id, "by": ["sex"]}
    job = served.finished(served.alice.post("/v1/jobs", json=body).json()["id"])
    with Client(served.url, key_of(served)) as client:
        assert client.result(job["result"]).record["certificate"]["claim"]["epsilon"] == 0.2
    with httpx2.Client(
        base_url=served.url, headers={"Sec-Fetch-Site": "same-origin"}, trust_env=False
    ) as browser:
        browser.post("/sign-in", data={"key": key_of(served)})
        page = browser.get(f"/jobs/{job['id']}").text
    assert "ROC curve" in page
    assert "sex = female" in page
    assert "<style" not in page.split("<main", 1)[1]  # the policy of the pages would refuse it
    assert ' style="' not in page
    assert "Download the result" in page


def test_the_page_is_computed_once(served: Served, release_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(self: Evaluate, result: ResultInfo, content: bytes) -> Markup:
        made.append(result.id)
        return Markup("seconds of work")

    monkeypatch.setattr(Evaluate, "page_part", counted)
    body = {"kind": "evaluate", "dataset": "clinic", "epsilon": 0.1, "release": release_id, "trial": True}
    job = served.finished(served.alice.post("/v1/jobs", json=body).json()["id"])
    with browsing(served) as browser:
        pages = [browser.get(f"/jobs/{job['id']}").text for _ in range(3)]
    assert all("seconds of work" in page for page in pages)
    assert made == [job["id"]]


def test_what_is_refused_costs_nothing(served: Served, release_id: str) -> None:
    before = served.spent()
    with Client(served.url, key_of(served)) as client:
        with pytest.raises(InvalidParameter, match="not a column with a list of values"):
            client.evaluate("clinic", release_id, epsilon=0.1, by=["age"])
        with pytest.raises(Exception, match="no release with this id"):
            client.evaluate("clinic", "0" * 16, epsilon=0.1)
    with (
        Client(served.url, key_of(served, "bob")) as client,
        pytest.raises(Exception, match="no release with this id"),
    ):
        client.evaluate("clinic", release_id, epsilon=0.1)  # another's
    assert served.spent() == before


def test_a_key_measures_no_release_that_it_may_not_see(served: Served, release_id: str) -> None:
    key = create_key(served.store, "analyst", "alice", ["annex"])
    body = {"kind": "evaluate", "dataset": "annex", "epsilon": 0.1, "release": release_id}
    headers = {"Authorization": f"Bearer {key}"}
    for address in ("/v1/jobs", "/v1/estimates"):
        refused = served.alice.post(address, json=body, headers=headers)
        assert refused.status_code == 404
        assert "no release with this id" in refused.text
    assert served.alice.get(f"/v1/results/{release_id}", headers=headers).status_code == 404
    assert served.alice.post("/v1/estimates", json=body).status_code == 200  # with a key for both


def test_a_trial_is_free(served: Served, release_id: str) -> None:
    before = served.spent()
    with Client(served.url, key_of(served)) as client:
        found = client.evaluate("clinic", release_id, epsilon=0.1, trial=True)
    assert served.spent() == before
    assert "made-up rows" in found.about["dataset"]


def test_in_the_shell(
    served: Served,
    release_id: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRIVLEARN_KEY", key_of(served))
    monkeypatch.setenv("PRIVLEARN_SERVER", served.url)
    out = tmp_path / "clinic.evaluation"
    options = ["--epsilon", "0.1", "--by", "sex", "--out", str(out)]
    with pytest.raises(SystemExit) as ended:
        main(["ask", "evaluate", "clinic", release_id, *options])
    assert not ended.value.code
    assert "accuracy" in capsys.readouterr().out
    assert Evaluation.load(out).guarantee.epsilon == 0.1


def test_from_the_page_of_the_release(served: Served, release_id: str) -> None:
    with browsing(served) as browser:
        page = browser.get(f"/releases/{release_id}").text
        assert "<option>clinic</option>" in page
        assert "<option>sex</option>" in page
        assert "<option>age</option>" not in page
        typed = {"dataset": "clinic", "by": "sex", "epsilon": "0.1", "delta": "", "act": "try"}
        typed["once"] = re.findall(r'name="once" value="([0-9a-f]{32})"', page)[0]
        asked = browser.post(f"/releases/{release_id}/evaluate", data=typed)
        assert asked.status_code == 303
        served.finished(asked.headers["location"].removeprefix("/jobs/"))
        assert "Calibration" in browser.get(asked.headers["location"]).text
        wrong = browser.post(f"/releases/{release_id}/evaluate", data=typed | {"epsilon": "much"})
        assert wrong.status_code == 422
        assert "Epsilon: this is not a number" in wrong.text
        again = browser.post(
            f"/releases/{release_id}/evaluate", data=typed | {"dataset": "annex", "delta": "x"}
        )
        assert "<option selected>annex</option>" in again.text  # pressed again, the form asks for the same
        assert "<option selected>sex</option>" in again.text
        foreign = browser.post(f"/releases/{release_id}/evaluate", data=typed | {"once": "mine"})
        assert "not from this server" in foreign.text
