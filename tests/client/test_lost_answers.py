"""A request for a job whose answer is lost: whoever asked is told that it may have arrived, and how to ask again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from privlearn.client import Client, Unreachable
from privlearn.errors import PrivlearnError
from privlearn.parties import listen

KEY = "pl_0123456789abcdef_" + "0" * 64


@contextmanager
def taking_requests(answer: bytes) -> Iterator[str]:
    """Run a server that reads each request and sends this."""
    with listen("127.0.0.1", 0) as listener:
        listener.listen()

        def take() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line:
                    line.recv(65_536)
                    line.sendall(answer)

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def told(url: str, idempotency_key: str | None = None) -> str:
    with Client(url, KEY, timeout=0.1) as client, pytest.raises(PrivlearnError) as lost:
        client.ask("release", "census", epsilon=1.0, idempotency_key=idempotency_key)
    return str(lost.value)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"])
def test_a_job_may_have_arrived(answer: bytes) -> None:
    with taking_requests(answer) as url:
        message = told(url, idempotency_key="mine")
        assert "may have arrived" in message
        assert "idempotency key mine " in message
        assert "idempotency key " in told(url)  # one that was made for it can be used, too


def test_a_job_that_was_never_sent_has_not_arrived() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    assert "may have arrived" not in told(f"http://127.0.0.1:{port}")


def test_what_only_reads_says_nothing_of_it() -> None:
    with (
        taking_requests(b"") as url,
        Client(url, KEY, timeout=0.1) as client,
        pytest.raises(Unreachable) as lost,
    ):
        client.datasets()
    assert "may have arrived" not in str(lost.value)
