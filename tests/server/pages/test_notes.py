"""What an analyst says of a request goes with it, and what is hardly private is marked wherever it is listed."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from privlearn import Ledger
from privlearn.server.pages import new_form_token
from privlearn.server.store.events import events
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

NOTE = "the yearly report, <table 3>"
FORM = {"face": "release", "learner": "logistic", "epsilon": "0.1", "delta": "0", "act": "pay"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    owner = load_clinic(tmp_path_factory.mktemp("clinic"), epsilon=100.0)
    clinic = owner.datasets["clinic"].model_copy(update={"accept_weak_privacy": True})
    with serving(owner.model_copy(update={"datasets": owner.datasets | {"clinic": clinic}})) as running:
        for client in (running.alice, running.holder):
            key = client.headers["Authorization"].split()[1]
            client.headers["Sec-Fetch-Site"] = "same-origin"
            assert client.post("/sign-in", data={"key": key}).status_code == 303
        yield running


def test_a_note_goes_with_its_request(served: Served) -> None:
    made = served.train("release", note=NOTE)
    assert served.alice.get(f"/v1/jobs/{made}").json()["note"] == NOTE
    entry = Ledger.open(served.store, "clinic").statement().entries[-1]
    assert (entry.reservation, entry.note) == (made, NOTE)
    assert any(event.details.get("note") == NOTE for event in events(served.store))
    for page in (f"/jobs/{made}", "/desk/clinic"):
        assert "the yearly report, &lt;table 3&gt;" in served.alice.get(page).text
    assert "the yearly report, &lt;table 3&gt;" in served.holder.get("/console/clinic").text


def test_a_note_is_typed_on_the_form(served: Served) -> None:
    answer = served.alice.post("/desk/clinic/train", data=FORM | {"note": NOTE, "once": new_form_token()})
    assert answer.status_code == 303
    served.finished(answer.headers["location"].rpartition("/")[2])
    assert "the yearly report, &lt;table 3&gt;" in served.alice.get(answer.headers["location"]).text


@pytest.mark.parametrize("note", ["x" * 201, "two\nlines", "\u2028"])
def test_a_note_is_one_short_line(served: Served, note: str) -> None:
    spent = served.spent()
    body = {"dataset": "clinic", "epsilon": 0.5, "note": f"a{note}a"}
    assert served.alice.post("/v1/jobs", json={"kind": "release"} | body).status_code == 422
    refused = served.alice.post(
        "/desk/clinic/train", data=FORM | {"note": f"a{note}a", "once": new_form_token()}
    )
    assert refused.status_code == 422
    assert "Note must be one line" in refused.text
    assert served.spent() == spent


def pages_of(served: Served, made: str) -> list[tuple[httpx2.Client, str]]:
    pages = [(served.alice, page) for page in (f"/jobs/{made}", "/desk", "/desk/clinic", "/releases")]
    return pages + [(served.holder, page) for page in ("/console", "/console/clinic", "/releases")]


def test_a_weak_promise_is_marked_where_it_is_listed(served: Served) -> None:
    strong = served.train("release", epsilon=0.5)
    assert not any(
        "hardly private</span>" in client.get(page).text for client, page in pages_of(served, strong)
    )
    weak = served.train("release", epsilon=21.0)
    assert all("hardly private</span>" in client.get(page).text for client, page in pages_of(served, weak))
