"""One analyst cannot take the server from the others: long polls, unpaid points, bombs in bodies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
import pytest

from privlearn.server.http import ARROW, CSV, JSON, memory_to_read
from privlearn.server.jobs import queue
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

LIMITS = "\n[limits]\nlong_polls = 3\ntrial_points = 20\nsession_points = 30\npoints_per_day = 40\n"
ROWS = 10_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("clinic"), server=LIMITS, rows=100)) as running:
        yield running


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve jobs that never end."""
    owner = load_clinic(tmp_path_factory.mktemp("idle"), server=LIMITS)
    with serving(owner, training=False) as running:
        yield running


def waiting_job(served: Served) -> str:
    return str(
        served.alice.post("/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.01}).json()[
            "id"
        ]
    )


def test_so_many_requests_of_one_analyst_may_wait(idle: Served) -> None:
    job = waiting_job(idle)
    statuses: list[int] = []

    def poll() -> None:
        key = idle.alice.headers["Authorization"]
        with httpx2.Client(base_url=idle.url, headers={"Authorization": key}, trust_env=False) as client:
            statuses.append(client.get(f"/v1/jobs/{job}?wait=3", timeout=60).status_code)

    threads = [threading.Thread(target=poll) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 3 + [429] * 5
    assert idle.alice.get(f"/v1/jobs/{job}?wait=0.1").status_code == 200  # places are given back
    assert idle.alice.get(f"/v1/jobs/{job}").status_code == 200


def test_who_waits_for_a_job_looks_at_what_others_have_found(
    idle: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds at once, each with a look into the database of its own, kept /healthz waiting for seconds."""
    job = waiting_job(idle)
    assert idle.alice.get(f"/v1/jobs/{job}?wait=0.001").status_code == 200
    watched = idle.app.state.service._watched_jobs
    monkeypatch.setattr(watched, "_seconds", 60.0)
    monkeypatch.setattr(queue, "find", None)
    assert idle.alice.get(f"/v1/jobs/{job}?wait=0.001").status_code == 200


def test_a_waiting_job_is_cancelled_on_its_page(idle: Served) -> None:
    job = waiting_job(idle)
    own = {"Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=idle.url, headers=own, follow_redirects=True, trust_env=False) as client:
        client.post("/sign-in", data={"key": idle.alice.headers["Authorization"].split()[1]})
        assert "Cancel this job" in client.get(f"/jobs/{job}").text
        answer = client.post(f"/jobs/{job}/cancel")
        assert "cancelled by alice; nothing was spent" in answer.text
        assert "Cancel this job" not in answer.text


def points(start: int, count: int) -> dict[str, Any]:
    return {"rows": [{"age": start + i, "dose": 1.0, "sex": "male"} for i in range(count)]}


def opened(served: Served, **request: Any) -> str:
    kernel = {"learner": "kernel", "delta": 1e-6, "mechanism": "function_release"}
    return f"/v1/sessions/{served.train('session', **kernel, **request)}/predictions"


def test_sessions_answer_so_many_different_points(served: Served) -> None:
    """The same ones again as often as one likes; a session on made-up rows fewer; an analyst so many in a day."""
    trial = opened(served, trial=True)
    assert served.alice.post(trial, json=points(0, 15)).status_code == 200
    refused = served.alice.post(trial, json=points(10, 15))
    assert refused.status_code == 413
    assert "answers 20 different points, and 15 are used" in refused.text
    assert served.alice.post(trial, json=points(5, 15)).status_code == 200
    assert served.alice.post(trial, json=points(0, 20)).status_code == 200
    paid = opened(served)
    assert served.alice.post(paid, json=points(0, 15)).status_code == 200
    quota = served.alice.post(paid, json=points(15, 10))
    assert quota.status_code == 429
    assert "only 40 new points are allowed within a day" in quota.text
    assert served.alice.post(paid, json=points(0, 15)).status_code == 200


def test_sessions_that_take_much_memory_are_let_go(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = served.app.state.service._sessions
    monkeypatch.setattr("privlearn.server.jobs.sessions.MAX_MEMORY", 1)
    made = [served.train("session", trial=True) for _ in range(2)]
    for session in made * 2:
        answer = served.alice.post(f"/v1/sessions/{session}/predictions", json=points(0, 1))
        assert answer.status_code == 200
        assert list(sessions._cached) == [session]


def test_a_closed_session_is_freed(served: Served) -> None:
    session = served.train("session", trial=True)
    assert served.alice.delete(f"/v1/sessions/{session}").status_code == 204
    shown = served.alice.get(f"/v1/results/{session}").json()
    assert shown["size"] == 0
    assert shown["certificate"]
    answer = served.alice.post(f"/v1/sessions/{session}/predictions", json=points(0, 1))
    assert answer.status_code == 409


def stream(**changed: pa.Array) -> bytes:
    plain = {
        "age": pa.array(np.full(ROWS, 30.0)),
        "dose": pa.array(np.ones(ROWS)),
        "sex": pa.array(["male"] * ROWS),
    }
    table = pa.table(plain | changed)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def bombs() -> dict[str, pa.Array]:
    """Return columns of a megabyte or less that would expand to gigabytes."""
    long, zeros = b"x" * 400_000, pa.array(np.zeros(ROWS, dtype=np.int32))
    runs = pa.array([ROWS], type=pa.int32())
    text = pa.DictionaryArray.from_arrays(zeros, pa.array([long.decode()]))
    return {
        "dictionary of text": text,
        "dictionary of binary": pa.DictionaryArray.from_arrays(zeros, pa.array([long])),
        "dictionary of large binary": pa.DictionaryArray.from_arrays(
            zeros, pa.array([long], pa.large_binary())
        ),
        "runs": pa.RunEndEncodedArray.from_arrays(runs, pa.array([long.decode()])),
        "struct": pa.StructArray.from_arrays([text], ["a"]),
        "list": pa.array([[1]] * ROWS),
    }


@pytest.mark.parametrize("name", list(bombs()))
def test_an_arrow_bomb_is_refused_or_not_read(served: Served, name: str) -> None:
    session = served.train("session", trial=True)
    where, kind = f"/v1/sessions/{session}/predictions", {"Content-Type": ARROW}
    pool = pa.default_memory_pool()
    allowed = max(pool.max_memory(), pool.bytes_allocated() + (64 << 20))  # the peak is of the whole process
    refused = served.alice.post(where, content=stream(sex=bombs()[name]), headers=kind)
    assert refused.status_code in (413, 422), refused.text
    unused = served.alice.post(where, content=stream(extra=bombs()[name]), headers=kind)
    assert unused.status_code == 200
    assert pool.max_memory() <= allowed


@pytest.mark.parametrize(
    ("kind", "piece"),
    [(JSON, b"{},"), (JSON, b"[],"), (JSON, b'{"a":1},'), (JSON, b"1.5,"), (JSON, b'"ab",')],
)
def test_the_memory_of_a_body_is_known_before_it_is_read(kind: Any, piece: bytes) -> None:
    import tracemalloc

    body = b"[" + piece * 20_000 + piece[:-1] + b"]"
    tracemalloc.start()
    value = json.loads(body)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(value) == 20_001
    assert taken <= memory_to_read(body, kind, 1 << 40) <= 8 * taken


def test_rows_as_they_are_sent_take_little() -> None:
    rows = [{"age": 39.0, "workclass": "State-gov", "hours": 40, "country": "United-States"}] * 10_000
    body = json.dumps({"rows": rows}).encode()
    assert memory_to_read(body, JSON, 1 << 40) < 20e6
    assert memory_to_read(b"1,2,3\n" * 10_000, CSV, 1 << 40) < 2e6


def test_a_body_that_would_grow_is_refused_before_it_is_read(served: Served) -> None:
    session = served.train("session", trial=True)
    body = b"[" + b"{}," * 1_000_000 + b"{}]"
    headers = {"Content-Type": JSON}
    answer = served.alice.post(f"/v1/sessions/{session}/predictions", content=body, headers=headers)
    assert answer.status_code == 413
    assert "memory to read bodies" in answer.text


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=b"])
def test_strangers_send_small_forms_only(served: Served, kind: str) -> None:
    headers = {"Content-Type": kind, "Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=served.url, trust_env=False) as stranger:
        assert stranger.post("/sign-in", content=b"a&" * 50_000, headers=headers).status_code == 413


def test_a_form_with_endless_headers_is_the_senders_mistake(served: Served) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=served.url, trust_env=False) as stranger:
        answer = stranger.post("/sign-in", content=b"--b\r\n" + b"A: b\r\n" * 5000, headers=headers)
    assert answer.status_code == 400
