"""Every verb over HTTP, with real trainings."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from privlearn import __version__
from privlearn.estimators.forecast import synthetic_table
from privlearn.release import Release
from privlearn.server.http import ARROW, CSV, JSON, write_arrow
from tests.support.served import Served, serving
from tests.support.service_support import SCHEMA, load_clinic

ROWS = synthetic_table(SCHEMA, 20, seed=3).drop_columns(["outcome"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(
        load_clinic(tmp_path_factory.mktemp("clinic"), epsilon=100.0, dataset="accept_weak_privacy = true")
    ) as running:
        yield running


@pytest.fixture(scope="module")
def session(served: Served) -> str:
    return served.train("session")


def csv_bytes(table: pa.Table) -> bytes:
    text = io.BytesIO()
    arrow_csv.write_csv(table, text)
    return text.getvalue()


def asked(served: Served, session: str, body: bytes, kind: str, **headers: str) -> Any:
    sent = {"Content-Type": kind, **headers}
    return served.alice.post(f"/v1/sessions/{session}/predictions", content=body, headers=sent)


def test_keys_say_whose_they_are(served: Served) -> None:
    assert served.alice.get("/v1/me").json() | {"key": ""} == {
        "key": "",
        "role": "analyst",
        "person": "alice",
        "analyst": "alice",
        "datasets": ["clinic"],
    }
    assert served.holder.get("/v1/me").json()["role"] == "holder"


def test_a_data_set_shows_its_public_side_alone(served: Served) -> None:
    (found,) = served.alice.get("/v1/datasets").json()
    assert found == served.alice.get("/v1/datasets/clinic").json()
    assert found["schema"] == SCHEMA.to_dict()
    assert found["records"] == 300
    assert set(found["learners"]) == {"logistic", "kernel"}
    public = {
        "name",
        "records",
        "budget",
        "composition",
        "schema",
        "learners",
        "approval",
        "retired",
        "version",
    }
    assert set(found) == public


def test_an_estimate_is_free(served: Served) -> None:
    before = served.spent()
    found = served.alice.post(
        "/v1/estimates", json={"kind": "session", "dataset": "clinic", "epsilon": 1.0, "learner": "kernel"}
    )
    assert found.status_code == 200
    assert found.json()["guarantee"]["epsilon"] == 1.0
    assert served.spent() == before


@pytest.mark.parametrize("kind", [JSON, CSV, ARROW])
def test_synthetic_rows_in_every_kind(served: Served, kind: str) -> None:
    path = "/v1/datasets/clinic/synthetic?rows=5&seed=9"
    found = served.alice.get(path, headers={"Accept": kind})
    assert found.headers["content-type"].startswith(kind)
    expected = synthetic_table(SCHEMA, 5, 9)
    if kind == JSON:
        assert found.json() == {"rows": expected.to_pylist()}
    elif kind == CSV:
        assert found.content == csv_bytes(expected)
    else:
        assert pa.ipc.open_stream(found.content).read_all().equals(expected)


def test_a_session_answers_alike_in_every_kind(served: Served, session: str) -> None:
    bodies = {JSON: None, CSV: csv_bytes(ROWS), ARROW: write_arrow(ROWS)}
    by_json = served.alice.post(f"/v1/sessions/{session}/predictions", json={"rows": ROWS.to_pylist()}).json()
    assert set(by_json["predictions"]) <= {"healthy", "ill"}
    assert [score > 0 for score in by_json["scores"]] == [label == "ill" for label in by_json["predictions"]]
    for kind in (CSV, ARROW):
        assert asked(served, session, bodies[kind], kind, Accept=JSON).json() == by_json  # type: ignore[arg-type]
        same_kind = asked(served, session, bodies[kind], kind)  # type: ignore[arg-type]
        assert same_kind.headers["content-type"].startswith(kind)
    table = pa.ipc.open_stream(asked(served, session, bodies[ARROW], ARROW).content).read_all()  # type: ignore[arg-type]
    chances = ["probability_healthy", "probability_ill"]
    assert table.column_names == ["prediction", "score", *chances, "source"]
    assert table["score"].to_pylist() == by_json["scores"]
    assert table["probability_ill"].to_pylist() == by_json["probabilities"]["ill"]
    likely = [chance > 0.5 for chance in by_json["probabilities"]["ill"]]
    assert likely == [label == "ill" for label in by_json["predictions"]]


def test_one_row_a_list_and_an_object_are_the_same(served: Served, session: str) -> None:
    row = ROWS.to_pylist()[0]
    path = f"/v1/sessions/{session}/predictions"
    answers = [served.alice.post(path, json=body).json() for body in (row, [row], {"rows": [row]})]
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]["predictions"]) == 1


def test_columns_that_the_schema_does_not_list_are_not_read(served: Served, session: str) -> None:
    row = ROWS.to_pylist()[0]
    path = f"/v1/sessions/{session}/predictions"
    more = served.alice.post(path, json=row | {"outcome": "nonsense", "other": [1]})
    assert more.json() == served.alice.post(path, json=row).json()


def test_a_session_is_described_and_closed_for_good(served: Served) -> None:
    session = served.train("session", trial=True)
    found = served.alice.get(f"/v1/results/{session}").json()
    assert found["state"] == "open"
    assert found["trial"] is True
    assert served.alice.delete(f"/v1/sessions/{session}").status_code == 204
    assert served.alice.get(f"/v1/results/{session}").json()["state"] == "closed"
    again = served.alice.post(f"/v1/sessions/{session}/predictions", json=ROWS.to_pylist())
    assert again.status_code == 409
    assert served.alice.delete(f"/v1/sessions/{session}").status_code == 409


def test_a_kernel_machine_answers_too(served: Served) -> None:
    session = served.train("session", trial=True, learner="kernel", mechanism="function_release", delta=1e-6)
    path = f"/v1/sessions/{session}/predictions"
    first = served.alice.post(path, json=ROWS.to_pylist()).json()
    second = served.alice.post(path, json=ROWS.to_pylist()).json()
    assert first["scores"] == second["scores"]


def test_a_trial_is_free(served: Served) -> None:
    before = served.spent()
    release = served.train("release", trial=True)
    assert served.alice.get(f"/v1/results/{release}").json()["trial"] is True
    assert served.spent() == before


def test_a_release_is_paid_once_fetched_and_verified(served: Served) -> None:
    before = served.spent()[0]
    body, key = {"dataset": "clinic", "epsilon": 0.25, "learner": "logistic"}, {"Idempotency-Key": "one"}
    first = served.alice.post("/v1/jobs", json={"kind": "release"} | body, headers=key).json()
    assert (
        served.alice.post("/v1/jobs", json={"kind": "release"} | body, headers=key).json()["id"]
        == first["id"]
    )
    other = served.alice.post("/v1/jobs", json={"kind": "release"} | body | {"epsilon": 0.5}, headers=key)
    assert other.status_code == 409
    release = served.finished(first["id"])["result"]
    assert served.spent() == (before + 0.25, 0.0)
    file = served.alice.get(f"/v1/results/{release}/content")
    assert Release.from_bytes(file.content).certificate.guarantee.epsilon == 0.25
    listed = served.alice.get("/v1/results").json()
    assert [found["size"] for found in listed if found["id"] == release] == [len(file.content)]
    octets = {"Content-Type": "application/octet-stream"}
    proven = served.bob.post("/v1/verify", content=file.content, headers=octets).json()
    assert proven["is_private"] is True
    assert proven["recomputed"]["epsilon"] <= 0.25
    changed = file.content[:-1] + bytes([file.content[-1] ^ 1])
    assert served.bob.post("/v1/verify", content=changed, headers=octets).status_code == 422


@pytest.mark.parametrize("kind", [JSON, CSV, ARROW])
def test_public_points_make_a_kernel_model(served: Served, kind: str) -> None:
    request = {"dataset": "clinic", "epsilon": 0.5, "learner": "kernel", "trial": True}
    if kind == JSON:
        asked = served.alice.post(
            "/v1/jobs", json={"kind": "release"} | request | {"public_points": ROWS.to_pylist()}
        )
    else:
        body = csv_bytes(ROWS) if kind == CSV else write_arrow(ROWS)
        form = {
            "request": '{"kind":"release","dataset":"clinic","epsilon":0.5,"learner":"kernel","trial":true}'
        }
        asked = served.alice.post("/v1/jobs", data=form, files={"points": ("points", body, kind)})
    assert asked.status_code == 202, asked.text
    release = served.finished(asked.json()["id"])["result"]
    model = Release.from_bytes(served.alice.get(f"/v1/results/{release}/content").content).model
    assert len(model.arrays()["public_points"]) == ROWS.num_rows


def test_public_points_can_be_made_from_the_schema(served: Served) -> None:
    request = {
        "dataset": "clinic",
        "epsilon": 0.5,
        "learner": "kernel",
        "public_points": "schema",
        "trial": True,
    }
    asked = served.alice.post("/v1/jobs", json={"kind": "release"} | request)
    assert asked.status_code == 202, asked.text
    release = served.finished(asked.json()["id"])["result"]
    made = Release.from_bytes(served.alice.get(f"/v1/results/{release}/content").content)
    assert made.certificate.encoding["points_made"].endswith("seed 0")
    for wrong in ("rows", 5, [{"age": 40}, 5]):
        refused = served.alice.post("/v1/jobs", json={"kind": "release"} | request | {"public_points": wrong})
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("public_points: must be a list of rows, each an object")


def test_others_see_nothing_of_it(served: Served, session: str) -> None:
    """What belongs to somebody else is answered, word for word, like what does not exist."""
    evaluation = {"kind": "evaluate", "dataset": "clinic", "release": "ID", "epsilon": 0.1}
    for method, path, body in (
        ("GET", "/v1/jobs/ID", None),
        ("GET", "/v1/jobs/ID?wait=1", None),
        ("DELETE", "/v1/jobs/ID", None),
        ("GET", "/v1/results/ID", None),
        ("GET", "/v1/results/ID/content", None),
        ("DELETE", "/v1/sessions/ID", None),
        ("POST", "/v1/sessions/ID/predictions", ROWS.to_pylist()),
        ("POST", "/v1/estimates", evaluation),
        ("POST", "/v1/jobs", evaluation),
    ):
        of_alice, of_nobody = (
            served.bob.request(
                method,
                path.replace("ID", id),
                json=body | {"release": id} if isinstance(body, dict) else body,
            )
            for id in (session, "0" * 16)
        )
        assert (of_alice.status_code, of_alice.json()) == (404, of_nobody.json()), path
    for path in (f"/v1/results/{session}", f"/v1/jobs/{session}"):
        assert served.holder.get(path).status_code == 200
    assert served.bob.get("/v1/results").json() == []


def test_the_budget_names_own_costs_and_the_holder_all(served: Served, session: str) -> None:
    of_alice = served.alice.get("/v1/datasets/clinic/budget").json()
    assert session in {entry["reservation"] for entry in of_alice["entries"]}
    assert of_alice["share"]["total"]["epsilon"] == 100.0
    of_bob = served.bob.get("/v1/datasets/clinic/budget").json()
    assert of_bob["entries"] == []
    assert of_bob["spent"] == of_alice["spent"]
    of_holder = served.holder.get("/v1/datasets/clinic/budget").json()
    assert of_holder["share"] is None
    assert session in {entry["reservation"] for entry in of_holder["entries"]}


def test_what_does_not_fit_is_refused_at_once(served: Served) -> None:
    before = served.spent()
    refused = served.bob.post("/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 26.0})
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:privlearn:budget-exceeded"
    assert served.spent() == before


def test_the_log_is_the_holders(served: Served, session: str) -> None:
    assert served.alice.get("/v1/events").status_code == 403
    lines = served.holder.get("/v1/events", params={"limit": 1000}).json()
    assert session in {line["details"].get("job") for line in lines}
    older = served.holder.get("/v1/events", params={"before": lines[0]["id"], "limit": 1}).json()
    assert older == lines[1:2]


def test_metrics_are_the_holders(served: Served, session: str) -> None:
    assert served.alice.get("/metrics").status_code == 403
    served.alice.post(f"/v1/sessions/{session}/predictions", json=ROWS.to_pylist())
    text = served.holder.get("/metrics").text
    assert (
        'privlearn_requests_total{method="POST",route="/v1/sessions/{id}/predictions",status="200"}' in text
    )
    assert 'privlearn_budget_epsilon{dataset="clinic",part="total"} 100.0' in text
    assert 'privlearn_jobs{state="failed"} 0.0' in text
    (count,) = [line for line in text.splitlines() if line.startswith("privlearn_predictions_total")]
    assert float(count.split()[1]) >= ROWS.num_rows


def test_a_server_that_ends_lets_nobody_wait(served: Served) -> None:
    job = served.alice.post(
        "/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.1, "trial": True}
    ).json()
    served.app.state.stopping = True
    try:
        found = served.alice.get(f"/v1/jobs/{job['id']}", params={"wait": 30})
        assert found.status_code == 200
        ready = served.alice.get("/readyz")
        assert ready.status_code == 503
        assert served.alice.get("/healthz").text == "ok\n"
    finally:
        served.app.state.stopping = False
    assert served.alice.get("/readyz").status_code == 200


def test_the_interface_describes_itself(served: Served) -> None:
    description = served.alice.get("/v1/openapi.json").json()
    assert description["info"]["version"] == __version__
