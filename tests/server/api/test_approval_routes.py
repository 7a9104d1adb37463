"""Approval over HTTP and on pages: who sees what, what the analyst reads, and that nothing typed becomes markup."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from privlearn.cli import app
from privlearn.client import Client, RemoteJob, TrainingFailed
from privlearn.server.access import create_key
from privlearn.server.pages import new_form_token
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

WORDS: dict[str, Any] = {"purpose": "<b>a score</b> for the ward", "legal_basis": "=consent of <all>"}
ESCAPED = ("&lt;b&gt;a score&lt;/b&gt; for the ward", "=consent of &lt;all&gt;")
BODY = {"dataset": "clinic", "epsilon": 0.5, "kind": "release"} | WORDS
FORM = {"face": "release", "learner": "logistic", "epsilon": "0.5", "delta": "0", "act": "pay"}
OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    owner = load_clinic(
        tmp_path_factory.mktemp("clinic"), epsilon=100.0, dataset="approval = { above = 0.4 }"
    )
    with serving(owner, training=False) as running:
        yield running


@pytest.fixture(scope="module", params=["approver", "auditor"])
def reader(served: Served, request: pytest.FixtureRequest) -> Iterator[httpx2.Client]:
    yield from signed_in(served, request.param, f"{request.param[:3]}")


@pytest.fixture(scope="module")
def bea(served: Served) -> Iterator[httpx2.Client]:
    yield from signed_in(served, "approver", "bea")


@pytest.fixture(scope="module")
def alice(served: Served) -> Iterator[httpx2.Client]:
    yield from signed_in(served, "analyst", "alice")


def signed_in(served: Served, role: Any, person: str) -> Iterator[httpx2.Client]:
    """Return a client with a key for programs and a browser's cookie."""
    key = create_key(served.store, role, person)
    headers = {"Authorization": f"Bearer {key}"} | OWN
    with httpx2.Client(base_url=served.url, headers=headers, trust_env=False, timeout=60) as client:
        assert client.post("/sign-in", data={"key": key}).status_code == 303
        yield client


def ask(served: Served, **changes: Any) -> str:
    answer = served.alice.post("/v1/jobs", json=BODY | changes)
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting_for_approval"), answer.text
    return str(answer.json()["id"])


def test_the_data_set_says_what_waits(served: Served) -> None:
    described = served.alice.get("/v1/datasets/clinic").json()
    assert described["approval"] == {"above": 0.4, "days": 14.0}
    missing = served.alice.post("/v1/jobs", json=BODY | {"purpose": " "})
    assert missing.status_code == 422
    assert "purpose is required" in missing.text
    both = served.alice.post("/v1/jobs", json=BODY | {"purpose": "", "legal_basis": ""})
    assert "purpose and legal_basis are required" in both.text


def test_a_long_poll_ends_with_the_decision(served: Served, bea: httpx2.Client) -> None:
    job = ask(served)
    answers: list[dict[str, Any]] = []
    poll = threading.Thread(
        target=lambda: answers.append(served.alice.get(f"/v1/jobs/{job}", params={"wait": 30}).json())
    )
    poll.start()
    time.sleep(0.2)
    declined = bea.post(f"/v1/approvals/{job}", json={"decision": "decline", "reason": "too much"})
    poll.join()
    assert (declined.status_code, answers[0]["state"], answers[0]["stage"]) == (200, "declined", "finished")
    assert answers[0]["failure"] == "declined by bea: too much; nothing was spent"
    assert (answers[0]["decided_by"], answers[0]["decision"]) == ("bea", "too much")
    assert served.alice.delete(f"/v1/jobs/{job}").status_code == 409


def test_the_client(served: Served) -> None:
    keys = [create_key(served.store, "analyst", "alice"), create_key(served.store, "approver", "carl")]
    with Client(served.url, keys[0]) as analyst, Client(served.url, keys[1]) as approver:
        job = analyst.ask("release", "clinic", epsilon=0.5, **WORDS)
        assert approver.approvals()[0]["id"] == job.id
        case = approver.approval(job.id)
        assert case["estimate"]["verdict"]
        assert (case["share"]["left"]["epsilon"], case["left"]["epsilon"], case["is_own"]) == (
            100,
            100,
            False,
        )
        assert approver.decide(job.id, "decline", "no")["state"] == "declined"
        with pytest.raises(TrainingFailed, match="declined by carl: no"):
            job.wait()
        waiting: RemoteJob = analyst.ask("release", "clinic", epsilon=0.5, **WORDS)
        assert waiting.record["stage"] == "waiting for approval"
        assert waiting.cancel().record["state"] == "failed"


def test_the_shell(served: Served) -> None:
    key = create_key(served.store, "approver", "dora")

    def shell(*words: str) -> str:
        told = CliRunner().invoke(app, ["ask", "--server", served.url, *words], env={"PRIVLEARN_KEY": key})
        assert told.exit_code == 0, told.output
        return told.output

    first, second = ask(served), ask(served)
    assert second in shell("approvals")
    assert f"Job {first} of alice is approved." in shell("approve", first)
    assert f"Job {second} of alice is declined." in shell("decline", second, "--reason", "no")


def test_others_are_refused(served: Served, bea: httpx2.Client) -> None:
    job = ask(served)
    decision = {"decision": "approve"}
    for client in (served.alice, served.bob, served.holder):
        assert client.post(f"/v1/approvals/{job}", json=decision).status_code == 403
    for client in (served.alice, served.bob):
        assert client.get("/v1/approvals").status_code == 403
        assert client.get(f"/v1/approvals/{job}").status_code == 403
    assert bea.post(f"/v1/approvals/{'0' * 16}", json=decision).status_code == 404
    assert bea.post(f"/v1/approvals/{job}", json={"decision": "maybe"}).status_code == 422


def test_readers_see_requests_and_change_nothing(served: Served, reader: httpx2.Client) -> None:
    job = ask(served)
    role = reader.get("/v1/me").json()["role"]
    assert reader.get(f"/v1/jobs/{job}").json()["purpose"] == WORDS["purpose"]
    assert reader.get("/v1/datasets/clinic/budget").json()["total"]["epsilon"] == 100
    assert reader.get("/v1/approvals").json()[0]["id"] == job
    for address in ("/v1/jobs", "/v1/estimates"):
        assert reader.post(address, json=BODY).status_code == 403
    assert reader.delete(f"/v1/jobs/{job}").status_code == 404
    assert reader.get("/metrics").status_code == 403
    assert reader.get("/v1/results").json() == []
    pages = {"/approvals": 200, "/requests": 200, f"/approvals/{job}": 200, f"/jobs/{job}": 200}
    more = 200 if role == "auditor" else 403
    pages |= {"/v1/events": more, "/log": more, "/log.csv": more, "/console": more, "/console/clinic": more}
    pages |= {"/keys": 403, "/desk": 403, "/desk/clinic/train": 403}
    assert {page: reader.get(page).status_code for page in pages} == pages
    assert "Cancel this job" not in reader.get(f"/jobs/{job}").text
    assert ("Approve</button>" in reader.get(f"/approvals/{job}").text) == (role == "approver")


def test_what_was_typed_is_text(served: Served, bea: httpx2.Client) -> None:
    job = ask(served)
    for client, page in ((bea, f"/approvals/{job}"), (bea, "/approvals"), (bea, "/requests")):
        text = client.get(page).text
        assert all(words in text for words in ESCAPED)
        assert "<b>a score" not in text
    declined = bea.post(
        f"/approvals/{job}", data={"decision": "decline", "reason": "=1+1 <i>\r\nsecond line"}
    )
    assert declined.status_code == 303
    assert "=1+1 &lt;i&gt; second line" in bea.get(f"/jobs/{job}").text
    assert served.alice.get(f"/v1/jobs/{job}").json()["decision"] == "=1+1 <i> second line"


def test_no_cell_of_the_log_is_a_formula(served: Served, reader: httpx2.Client) -> None:
    if reader.get("/log.csv").status_code == 200:
        rows = list(csv.reader(reader.get("/log.csv").text.splitlines()))
        assert any("=consent" in cell for row in rows for cell in row)
        assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_the_form(served: Served, alice: httpx2.Client, bea: httpx2.Client) -> None:
    shown = alice.get("/desk/clinic/train", params=FORM).text
    assert "Above epsilon 0.4 a second person must approve it, within 14 days" in shown
    assert "Ask for approval: epsilon 0.5" in shown
    refused = alice.post("/desk/clinic/train", data=FORM | {"once": new_form_token(), "purpose": "a score"})
    assert refused.status_code == 422
    assert "Legal basis is required" in refused.text
    answer = alice.post("/desk/clinic/train", data=FORM | WORDS | {"once": new_form_token()})
    page = alice.get(answer.headers["location"]).text
    assert "Waiting for approval" in page
    assert all(words in page for words in ESCAPED)
    job = answer.headers["location"].rpartition("/")[2]
    for data in ({"decision": "decline"}, {"decision": ""}, {"reason": "pressed nothing"}):
        assert bea.post(f"/approvals/{job}", data=data).status_code == 422
    forged = bea.post(
        f"/approvals/{job}", data={"decision": "approve"}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert forged.status_code == 403
    assert bea.post(f"/approvals/{job}", data={"decision": "approve"}).status_code == 303
    assert "Waiting for its turn" in alice.get(f"/jobs/{job}").text
    again = bea.post(f"/approvals/{job}", data={"decision": "decline", "reason": "no"})
    assert again.status_code == 422
    assert "bea has decided" in again.text
