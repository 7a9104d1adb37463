"""The console's changes as forms: asked twice, from this site alone, by the holder alone; and over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest

from privlearn.server.access import authenticate, list_keys
from privlearn.server.store.events import events
from tests.server.pages.test_pages import browsing, key_of, text_of
from tests.support.console_support import load_console
from tests.support.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_console(tmp_path_factory.mktemp("console")), training=False) as running:
        yield running


@pytest.fixture
def holder(served: Served) -> Iterator[httpx2.Client]:
    with browsing(served, "holder") as client:
        yield client


def hidden(answer: httpx2.Response) -> dict[str, str]:
    """Return the hidden fields of a question, and the answer that confirms it."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', answer.text)) | {"sure": "yes"}


def carry_out(client: httpx2.Client, address: str, **typed: str) -> httpx2.Response:
    question = client.post(address, data=typed)
    assert question.status_code == 200, text_of(question)
    return client.post(address, data=hidden(question))


def count(served: Served) -> int:
    return len(events(served.store, 1000))


def test_nothing_is_done_before_the_second_press(served: Served, holder: httpx2.Client) -> None:
    before = count(served)
    question = holder.post("/add-analyst", data={"name": "dora", "title": "<b>Dora</b>"})
    assert "&lt;b&gt;Dora&lt;/b&gt;" in question.text
    assert count(served) == before
    assert holder.get("/analysts/dora").status_code == 404
    unanswered = holder.post("/add-analyst", data={**hidden(question), "sure": ""})
    assert "This will be done" in text_of(unanswered)
    assert count(served) == before
    done = holder.post("/add-analyst", data=hidden(question))
    assert done.headers["location"] == "/analysts/dora"
    assert count(served) == before + 1
    again = holder.post("/add-analyst", data=hidden(question))
    assert again.status_code == 422
    assert "already" in text_of(again)


def test_a_second_page_that_was_not_made_here_does_nothing(served: Served, holder: httpx2.Client) -> None:
    before = count(served)
    made_up = holder.post("/add-analyst", data={"name": "eve", "title": "", "sure": "yes", "once": "x"})
    assert made_up.status_code == 422
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    forged = holder.post("/add-analyst", data={"name": "eve", "sure": "yes"}, headers=elsewhere)
    assert forged.status_code == 403
    assert count(served) == before


ADDRESSES = (
    "/analysts",
    "/analysts/alice",
    "/add-analyst",
    "/analysts/alice/shares/clinic",
    "/issue-key",
    "/add-dataset",
    "/console/clinic/refresh",
)


def test_the_console_is_the_holders(served: Served) -> None:
    with browsing(served, "alice") as alice:
        for address in ADDRESSES:
            assert alice.get(address).status_code == 403, address
            assert alice.post(address).status_code in (403, 405), address
    for verb in ("analysts", "keys", "sources"):
        assert served.alice.get(f"/v1/{verb}").status_code == 403
    assert served.alice.post("/v1/analysts", json={"name": "eve"}).status_code == 403


def test_what_the_file_declares_is_shown_with_the_reason(holder: httpx2.Client) -> None:
    page = holder.get("/analysts/alice")
    assert "which takes precedence: change the analyst and those shares there" in text_of(page)
    assert "/analysts/alice/shares/clinic" not in page.text
    refused = holder.get("/analysts/alice/disable")
    assert refused.status_code == 409
    assert "Change it there" in text_of(refused)
    assert "retired = true" in text_of(holder.get("/console/clinic"))


def test_a_key_is_shown_once_and_pressed_once(served: Served, holder: httpx2.Client) -> None:
    question = holder.post("/issue-key", data={"of": "alice", "expires": "2099-01-31"})
    shown = holder.post("/issue-key", data=hidden(question))
    (key,) = re.findall(r"pl_[0-9a-f]{16}_[\w-]{43}", shown.text)
    assert authenticate(served.store, key).analyst == "alice"
    assert shown.headers["cache-control"] == "no-store"
    reloaded = holder.post("/issue-key", data=hidden(question))
    assert "shown once" in text_of(reloaded)
    assert key not in reloaded.text
    assert key.split("_", 2)[2] not in holder.get("/keys").text
    ends = {info.caller.key_id: info.expires for info in list_keys(served.store)}
    assert ends[key.split("_")[1]].startswith("2099-02-01T00:00")


@pytest.mark.parametrize(
    ("address", "typed", "field"),
    [
        ("/issue-key", {"of": "alice", "expires": "tomorrow"}, "expires"),
        ("/add-analyst", {"name": "a b"}, "name"),
        ("/analysts/alice/shares/nothing", {"epsilon": "1", "delta": "0"}, ""),
        (
            "/add-dataset",
            {"name": "x", "table": "exports/ward.csv", "schema": "", "epsilon": "1_0"},
            "epsilon",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    holder: httpx2.Client, address: str, typed: dict[str, str], field: str
) -> None:
    answer = holder.post(address, data={"delta": "1e-6", "expected_records": "", **typed})
    assert answer.status_code in (404, 422)
    assert not field or f'id="{field}-wrong"' in answer.text


def test_the_same_over_http(served: Served) -> None:
    holder = served.holder
    assert holder.post("/v1/analysts", json={"name": "fay", "title": "Fay"}).status_code == 201
    sources = holder.get("/v1/sources").json()
    assert "exports/ward.csv" in sources["tables"]
    wanted = {
        "name": "ward",
        "table": "exports/ward.csv",
        "schema": "exports/ward.schema.yaml",
        "epsilon": 2.0,
    }
    assert holder.post("/v1/datasets", json={**wanted, "table": "exports/../secret.csv"}).status_code == 404
    added = holder.post("/v1/datasets", json=wanted)
    assert (added.status_code, added.json()["version"], added.json()["records"]) == (201, 1, 200)
    given = holder.put("/v1/analysts/fay/shares/ward", json={"epsilon": 1.0})
    assert given.json()["shares"] == {"ward": {"epsilon": 1.0, "delta": 0.0, "declared": False}}
    issued = holder.post("/v1/keys", json={"analyst": "fay", "expires": "2099-01-31"}).json()
    fay = {"Authorization": f"Bearer {issued['key']}"}
    assert httpx2.get(f"{served.url}/v1/me", headers=fay, trust_env=False).json()["datasets"] == ["ward"]
    rotated = holder.post(
        f"/v1/keys/{issued['id']}/rotation", json={"expires": "2099-06-30", "overlap_hours": 0.0}
    )
    assert rotated.status_code == 201
    assert httpx2.get(f"{served.url}/v1/me", headers=fay, trust_env=False).status_code == 401
    other = holder.post(
        "/v1/datasets/ward/versions",
        json={"table": "exports/2027/ward.csv", "schema": "exports/other.schema.yaml"},
    )
    assert other.status_code == 409
    version = holder.post("/v1/datasets/ward/versions", json={"table": "exports/2027/ward.csv"})
    assert (version.json()["version"], version.json()["records"]) == (2, 230)
    assert holder.post("/v1/datasets/ward/retirement", json={"reason": "over"}).json()["retired"]
    asked = {"dataset": "ward", "epsilon": 0.5, "learner": "logistic"}
    new = {"Authorization": f"Bearer {rotated.json()['key']}"}
    refused = httpx2.post(
        f"{served.url}/v1/jobs", json={"kind": "release"} | asked, headers=new, trust_env=False
    )
    assert (refused.status_code, "retired" in refused.json()["detail"]) == (422, True)
    assert holder.delete("/v1/analysts/fay/shares/ward").status_code == 204
    for half, status in (
        ({"title": "F", "disabled": False}, 409),
        ({"title": "a\tb", "disabled": True}, 422),
    ):
        assert holder.patch("/v1/analysts/fay", json=half).status_code == status
        assert {"name": "fay", "title": "Fay", "disabled": False}.items() <= _fay(holder).items()
    assert holder.patch("/v1/analysts/fay", json={"disabled": True}).json()["disabled"]
    assert holder.delete(f"/v1/keys/{rotated.json()['id']}").status_code == 409  # revoked with its analyst
    assert 'privlearn_budget_epsilon{dataset="ward",part="total"} 2.0' in holder.get("/metrics").text


def _fay(holder: httpx2.Client) -> dict[str, object]:
    return next(one for one in holder.get("/v1/analysts").json() if one["name"] == "fay")


def test_a_holder_cannot_lock_themselves_out(served: Served, holder: httpx2.Client) -> None:
    own = authenticate(served.store, key_of(served, "holder")).key_id
    assert carry_out(holder, f"/keys/{own}/revoke").status_code == 409
    assert holder.get("/keys").status_code == 200
