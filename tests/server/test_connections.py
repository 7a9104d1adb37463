"""Connections: half-sent heads, long heads, and more of them than allowed."""

from __future__ import annotations

import asyncio
import socket
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from privlearn.server.http import GuardedConnection
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

LIMITS = "\n[limits]\nconnections = 12\nheader_seconds = 4\nheader_kilobytes = 4\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("clinic"), server=LIMITS), training=False) as running:
        yield running


def connect(served: Served, sent: bytes) -> socket.socket:
    where = urlsplit(served.url)
    line = socket.create_connection((where.hostname, where.port), timeout=30)
    line.sendall(sent)
    return line


def answer(line: socket.socket) -> bytes:
    """Until the server closes the connection."""
    received = b""
    while piece := line.recv(65_536):
        received += piece
    return received


def until_ok(line: socket.socket) -> bytes:
    """Return all output up to the answer of /healthz."""
    received = b""
    while not received.endswith(b"ok\n"):
        piece = line.recv(65_536)
        assert piece, received
        received += piece
    return received


def test_a_head_that_does_not_arrive_is_given_up(server: Served) -> None:
    with connect(server, b"GET /healthz HTTP/1.1\r\nX-A: ") as line:
        began = time.monotonic()
        for _ in range(3):  # byte by byte it takes no longer
            time.sleep(0.2)
            line.sendall(b"a")
        told = answer(line)
        assert told.startswith(b"HTTP/1.1 408 ")
        assert b"did not arrive in time" in told
        assert time.monotonic() - began < 30


def test_a_connection_that_says_nothing_is_given_up(server: Served) -> None:
    with connect(server, b"") as line:
        assert answer(line).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("ended", [True, False])
def test_a_head_that_is_too_long_is_refused(server: Served, ended: bool) -> None:
    """Whether it comes whole or never ends."""
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 5000
    with connect(server, head + (b"\r\n\r\n" if ended else b"")) as line:
        told = answer(line)
        assert told.startswith(b"HTTP/1.1 431 ")
        assert b"too long" in told


def test_a_kept_connection_may_ask_again(server: Served) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(server, b"") as line:
        for _ in range(3):
            time.sleep(0.4)
            line.sendall(request)
            assert until_ok(line).startswith(b"HTTP/1.1 200 ")


def test_a_body_that_was_refused_unread_is_no_head(server: Served) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n\r\n"
    with connect(server, head) as line:
        assert line.recv(65_536).startswith(b"HTTP/1.1 401 ")
        line.sendall(b"x" * 20_000 + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP/1.1 200 " in until_ok(line)


HALF_A_BODY = (
    b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 50\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\nkey="
)


@pytest.mark.parametrize("half", [b"GET /healthz HTTP/1.1\r\nX-A: ", HALF_A_BODY])
def test_half_sent_requests_shut_nobody_out(server: Served, half: bytes) -> None:
    with ExitStack() as lines:
        for _ in range(40):
            lines.enter_context(connect(server, half))
        began = time.monotonic()
        assert httpx2.get(f"{server.url}/healthz", trust_env=False).status_code == 200
        assert time.monotonic() - began < 3.5  # it has not waited until they were given up


def test_requests_sent_ahead_of_an_answer_are_not_kept(server: Served) -> None:
    """Thousands of them fit into one packet: the first is answered, and the connection ends."""
    with connect(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000) as line:
        try:
            told = answer(line)
        except ConnectionResetError:  # what was thrown away was still on its way
            return
    assert told.count(b"HTTP/1.1 ") == 1
    assert told.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("after", [b"GET /healthz HTTP/1.1\r\nX-A: " + b"a" * 9000, b"\0\0\0"])
def test_what_follows_a_whole_request_does_not_take_its_answer(server: Served, after: bytes) -> None:
    """Neither a long head nor nonsense: whoever has asked must learn what became of it."""
    with connect(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + after) as line:
        told = answer(line)
    assert told.startswith(b"HTTP/1.1 200 ")
    assert told.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("around", [b"0\r\nX: ", b"0\r\nX: y\r\n", b"1;"])
def test_what_comes_around_a_body_is_no_longer_than_a_head(server: Served, around: bytes) -> None:
    """Trailers and extensions of chunks: endless ones would be kept until the body's time is over."""
    head = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nTransfer-Encoding: chunked\r\n"
    with connect(server, head + b"Content-Type: application/x-www-form-urlencoded\r\n\r\n" + around) as line:
        time.sleep(0.2)
        line.sendall(b"a" * 5000)
        assert answer(line).startswith(b"HTTP/1.1 431 ")


def test_a_body_in_tiny_chunks_is_read(server: Served) -> None:
    head = (
        b"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    )
    key = server.alice.headers["Authorization"].encode()
    with connect(server, head + b"Authorization: " + key + b"\r\n\r\n") as line:
        line.sendall(b"1\r\na\r\n" * 3000 + b"0\r\n\r\n")
        assert not answer(line).startswith(b"HTTP/1.1 431 ")


def test_who_goes_away_within_a_body_is_no_failure_of_the_server(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise a caller could fill the log with errors, and ring the bell of whoever counts status 500."""
    caplog.set_level("INFO", "privlearn.service")
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
    key = server.alice.headers["Authorization"].encode()
    connect(server, head + b"Authorization: " + key + b"\r\n\r\n{").close()
    deadline = time.monotonic() + 10
    while not caplog.records and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [record.fields["status"] for record in caplog.records] == [499]  # type: ignore[attr-defined]


OWN = {"refuse", "limits"}
"""Public names of `GuardedConnection` that are not uvicorn's."""


def test_uvicorn_is_a_release_that_these_tests_have_run_with() -> None:
    """`GuardedConnection` extends a class of uvicorn that is not public. Raise the pin only after these tests pass."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    required = [name for name in project["project"]["optional-dependencies"]["service"] if "uvicorn" in name]
    assert required == ["uvicorn>=0.49,<0.50"]
    assert version("uvicorn").startswith("0.49.")


def test_every_method_that_is_overridden_is_one_of_uvicorns() -> None:
    overridden = {name for name in vars(GuardedConnection) if not name.startswith("_")} - OWN
    assert len(overridden) == 11
    for name in overridden:
        assert hasattr(HttpToolsProtocol, name), name
    assert issubclass(HttpToolsProtocol, asyncio.Protocol)
    used = {"more_body", "response_complete", "keep_alive"}  # of a request and its answer
    assert used <= set(RequestResponseCycle.__init__.__code__.co_names)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: 127.0.0.1:8383\r\n\r\n", b" 200 "),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: LOCALHOST\r\n\r\n", b" 200 "),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: [::1]:8383\r\n\r\n", b" 200 "),
        (b"GET /healthz HTTP/1.1\r\n\r\n", b" 400 "),
        (
            b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
            b" 400 ",
        ),
        (b'GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: localhost"><script>\r\n\r\n', b" 400 "),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: rebound.example\r\n\r\n", b" 421 "),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: [0::1]\r\n\r\n", b" 200 "),
        (b"GET / HTTP/1.1\r\nConnection: close\r\nHost: [::::]\r\n\r\n", b" 400 "),
        (b"GET /healthz\r\n\r\n", b" 400 "),
    ],
)
def test_a_request_names_this_server_once(server: Served, head: bytes, status: bytes) -> None:
    """A page of another site whose name leads to this machine gets no answer; nor does HTTP/0.9, which has no name."""
    with connect(server, head) as line:
        assert status in answer(line).partition(b"\r\n")[0] + b" "
