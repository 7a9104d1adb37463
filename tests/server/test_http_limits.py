"""How often, how much, and what every answer bears."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from privlearn.server import TooMany
from privlearn.server.http import Limiter
from privlearn.server.http.limits import ALWAYS, WITH_TLS
from privlearn.server.token_buckets import Buckets
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

LIMITS = "\n[limits]\nbody_megabytes = 1\nbatch_rows = 5\nbody_seconds = 1\n"
NO_KEY = "Bearer pl_" + "0" * 16 + "_" + "A" * 43


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("clinic"), server=LIMITS), training=False) as running:
        yield running


@pytest.fixture
def served(server: Served) -> Served:
    """Serve with full buckets."""
    server.app.state.limiter = Limiter(requests_per_minute=6000, sign_ins_per_minute=10)
    return server


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_empties_and_refills() -> None:
    clock = Clock()
    buckets = Buckets(per_minute=60, burst=3, clock=clock)
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    assert buckets.take("b")
    clock.now += 1.0
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    clock.now += 1000.0
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]


def test_the_number_of_buckets_is_bounded() -> None:
    buckets = Buckets(per_minute=1, burst=1, clock=Clock())
    for number in range(10_001):
        buckets.take(str(number))
    assert not buckets.take("10000")
    assert buckets.take("0")


def test_a_bucket_counts_right_among_threads() -> None:
    buckets = Buckets(per_minute=1e-9, burst=500, clock=Clock())
    taken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: taken.extend([buckets.take("a") for _ in range(200)]))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 500


def test_one_key_cannot_use_up_anothers_requests() -> None:
    limiter = Limiter(requests_per_minute=6, sign_ins_per_minute=1)
    limiter.count("a")
    with pytest.raises(TooMany, match="Wait"):
        limiter.count("a")
    limiter.count("b")


def test_requests_of_a_key_are_counted(served: Served) -> None:
    served.app.state.limiter = Limiter(requests_per_minute=12, sign_ins_per_minute=10)
    answers = [served.alice.get("/v1/me").status_code for _ in range(3)]
    assert answers == [200, 200, 429]
    assert served.bob.get("/v1/me").status_code == 200
    assert served.alice.get("/healthz").status_code == 200


def test_attempts_of_an_address_are_counted(served: Served) -> None:
    served.app.state.limiter = Limiter(requests_per_minute=6000, sign_ins_per_minute=3)
    headers = {"Authorization": NO_KEY}
    with httpx2.Client(base_url=served.url, headers=headers, trust_env=False) as stranger:
        answers = [stranger.get("/v1/me").status_code for _ in range(5)]
        assert answers == [401, 401, 401, 429, 429]
        assert "Retry-After" in stranger.get("/v1/me").headers
    assert served.alice.get("/v1/me").status_code == 200  # from the same address


def test_a_valid_key_is_no_attempt(served: Served) -> None:
    served.app.state.limiter = Limiter(requests_per_minute=6000, sign_ins_per_minute=1)
    assert [served.alice.get("/v1/me").status_code for _ in range(5)] == [200] * 5


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_not_waited_for(served: Served, announced: bool) -> None:
    """Whether its length is announced or it comes in pieces: answered before it has all been sent."""
    where = urlsplit(served.url)
    framing = f"Content-Length: {1 << 40}" if announced else "Transfer-Encoding: chunked"
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: {served.alice.headers['Authorization']}\r\n{framing}\r\n\r\n"
    )
    piece = b"x" * 65_536
    with socket.create_connection((where.hostname, where.port), timeout=60) as line:
        line.sendall(head.encode())
        if not announced:
            for _ in range(17):  # one more than a megabyte
                line.sendall(b"10000\r\n" + piece + b"\r\n")
        answer = b""
        while b"megabytes" not in answer:
            received = line.recv(65_536)
            assert received, answer
            answer += received
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


def test_a_body_below_the_limit_is_read(served: Served) -> None:
    answer = served.alice.post(
        "/v1/jobs", json={"kind": "release", "dataset": "x" * 1_000_000, "epsilon": 1.0}
    )
    assert answer.status_code == 422


def test_a_body_that_never_comes_is_given_up(served: Served) -> None:
    where = urlsplit(served.url)
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: {served.alice.headers['Authorization']}\r\nContent-Length: 10\r\n\r\n{{"
    )
    with socket.create_connection((where.hostname, where.port), timeout=60) as line:
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 408 ")


def test_strangers_are_refused_before_their_body_is_read(served: Served) -> None:
    where = urlsplit(served.url)
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Length: 1000\r\n\r\n"
    with socket.create_connection((where.hostname, where.port), timeout=60) as line:
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/me", "/v1/nothing", "/v1/openapi.json", "/nothing"])
def test_every_answer_bears_the_headers(served: Served, path: str) -> None:
    answer = served.alice.get(path)
    for name, value in ALWAYS.items():
        assert answer.headers[name] == value
    assert "server" not in answer.headers
    assert "Strict-Transport-Security" not in answer.headers
    assert len(answer.headers["x-request-id"]) == 16


def test_nothing_may_come_from_elsewhere() -> None:
    policy = ALWAYS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert WITH_TLS["Strict-Transport-Security"].startswith("max-age=")


def test_an_unforeseen_error_shows_its_id_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("Xylophon-Quirk")

    monkeypatch.setattr(served.app.state.service, "jobs", fail)
    answer = served.alice.get("/v1/jobs")
    assert answer.status_code == 500
    assert "Xylophon" not in answer.text
    assert "ZeroDivision" not in answer.text
    request_id = answer.headers["x-request-id"]
    assert answer.json()["instance"] == f"urn:privlearn:request:{request_id}"
    (line,) = [record.fields for record in caplog.records if record.name.endswith("failures")]  # type: ignore[attr-defined]
    assert line["id"] == request_id
    assert line["error"] == "ZeroDivisionError"
    assert any(place.endswith("in fail") for place in line["frames"])
    assert "Xylophon" not in caplog.text + str(line)
