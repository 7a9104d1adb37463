"""Lists in pages: everything once, nobody else's, over HTTP, by the client and on the pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from privlearn.client import Client
from privlearn.client import client as client_module
from privlearn.server.access import create_key
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

COUNT = 3
LISTS = ("/v1/jobs", "/v1/results", "/v1/results?kind=session", "/v1/results?kind=release")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("paging"))) as server:
        for kind in ("release", "session"):
            for _ in range(COUNT):
                server.train(kind, trial=True)
        for _ in range(COUNT):
            server.train("release", epsilon=0.01)
        yield server


@pytest.mark.parametrize("address", LISTS)
@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_every_item_is_on_one_page(served: Served, address: str, limit: int) -> None:
    joint = "&" if "?" in address else "?"
    whole = [item["id"] for item in served.alice.get(f"{address}{joint}limit=1000").json()]
    assert len(whole) >= COUNT
    seen: list[str] = []
    following: str | None = f"{address}{joint}limit={limit}"
    while following is not None:
        answer = served.alice.get(following)
        assert len(answer.json()) <= limit
        seen += [item["id"] for item in answer.json()]
        following = answer.links.get("next", {}).get("url")
    assert seen == whole
    assert served.bob.get(address).json() == []


def test_a_list_says_what_it_cannot_take(served: Served) -> None:
    for wrong in ("limit=0", "limit=1001", "before=x", "before=%00"):
        assert served.alice.get(f"/v1/jobs?{wrong}").status_code == 422
    assert served.alice.get("/v1/jobs?before=0000000000000000").json() == []


def test_entries_of_a_budget_come_in_pages(served: Served) -> None:
    address = "/v1/datasets/clinic/budget"
    whole = served.holder.get(address).json()["entries"]
    assert len(whole) == COUNT
    newest = served.alice.get(address, params={"limit": 2})
    assert newest.json()["entries"] == whole[-2:]
    assert served.alice.get(newest.links["next"]["url"]).json()["entries"] == whole[-4:-2]
    assert served.bob.get(address).json()["entries"] == []


def test_the_client_turns_the_pages(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 2)
    with Client(served.url, create_key(served.store, "analyst", "alice")) as client:
        assert len(client.releases()) == 2 * COUNT
        assert len(client.sessions()) == COUNT
        assert len(client.results()) == len(client.jobs()) == 3 * COUNT
        whole = client.budget("clinic")["entries"]
        assert client.budget("clinic", before=whole[1]["reservation"])["entries"] == whole[:1]


def test_a_lowest_price_is_the_holders(tmp_path: Path) -> None:
    owner = load_clinic(tmp_path)
    dataset = owner.datasets["clinic"].model_copy(update={"least_epsilon": 0.2})
    strict = owner.model_copy(update={"datasets": owner.datasets | {"clinic": dataset}})
    with serving(strict, training=False) as server:
        for address in ("/v1/jobs", "/v1/estimates"):
            body = {"kind": "release", "dataset": "clinic", "epsilon": 0.19}
            refused = server.alice.post(address, json=body)
            assert refused.status_code == 422
            assert "at least 0.2, the data set's minimum" in refused.json()["detail"]
        assert (
            server.alice.post(
                "/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.2}
            ).status_code
            == 202
        )
