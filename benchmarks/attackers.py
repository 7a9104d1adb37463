"""The attackers of `benchmarks/attacks.py`: each gets the server and may remark on it."""

from __future__ import annotations

import json
import random
import resource
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from attacks import Target

ARROW = "application/vnd.apache.arrow.stream"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
MEGABYTE = 1 << 20
ROWS = 10_000


def at_once(count: int, act: Callable[[], object]) -> None:
    threads = [threading.Thread(target=act) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- bodies that grow in memory ---


def columns(**changed: pa.Array) -> dict[str, pa.Array]:
    """Of rows that the session would answer, some of them put in place of the right ones."""
    numbers = {"age": 30.0, "hours": 40.0, "education_years": 12.0, "capital_income": 0.0}
    texts = {"occupation": "office", "region": "north", "sex": "male"}
    honest = {name: pa.array(np.full(ROWS, value)) for name, value in numbers.items()}
    honest |= {name: pa.array([text] * ROWS) for name, text in texts.items()}
    return honest | changed


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def arrow_bombs(target: Target) -> str:
    """A few bytes that would be gigabytes: dictionaries, runs, views, compression, and 60,000 columns."""
    long = "x" * 300_000
    zeros = pa.array(np.zeros(ROWS, dtype=np.int32))
    runs = pa.array([ROWS], type=pa.int32())
    of_text = pa.DictionaryArray.from_arrays(zeros, pa.array([long]))
    odd: dict[str, pa.Array] = {
        "dictionary of text": of_text,
        "dictionary of binary": pa.DictionaryArray.from_arrays(zeros, pa.array([long.encode()])),
        "of large binary": pa.DictionaryArray.from_arrays(
            zeros, pa.array([long.encode()], pa.large_binary())
        ),
        "runs of text": pa.RunEndEncodedArray.from_arrays(runs, pa.array([long])),
        "struct": pa.StructArray.from_arrays([of_text], ["a"]),
        "binary view": pa.array([long.encode()] * 50 + [b"x"] * (ROWS - 50), pa.binary_view()),
        "list": pa.array([[1]] * ROWS),
    }
    bodies = [stream(pa.table(columns(occupation=array))) for array in odd.values()]
    bodies += [stream(pa.table(columns(extra=array))) for array in odd.values()]
    bodies.append(stream(pa.table(columns(age=pa.RunEndEncodedArray.from_arrays(runs, pa.array([30.0]))))))
    bodies += [stream(pa.table(columns()), compression) for compression in ("lz4", "zstd")]
    bodies.append(stream(pa.table({f"c{i}": pa.array([1.0]) for i in range(60_000)})))
    for body in bodies:
        target.attack("POST", predictions(target), "alice", body, {"Content-Type": ARROW})
    return ""


def predictions(target: Target) -> str:
    return f"/v1/sessions/{target.session}/predictions"


def flood(path: str, kind: str, piece: bytes, *, before: bytes = b"", after: bytes = b"") -> Any:
    """Eight bodies of 31 megabytes at once, then eight just below the limit; ``path`` with a session's place in it."""

    def attack(target: Target) -> str:
        who = "alice" if path.startswith("/v1") else ""
        headers = {"Content-Type": kind, "Sec-Fetch-Site": "same-origin"}
        for megabytes in (31.0, 7.9):
            size = int(megabytes * MEGABYTE)
            body = before + piece * (size // len(piece)) + after
            where = path.format(session=target.session)
            at_once(8, partial(target.attack, "POST", where, who, body, headers))
        return ""

    return attack


JSON, CSV, BYTES = "application/json", "text/csv", "application/octet-stream"
PREDICTIONS, SIGN_IN = "/v1/sessions/{session}/predictions", "/sign-in"
URLENCODED, MULTIPART = FORM["Content-Type"], "multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n'
FLOODS = {
    "sign-in, form": flood(SIGN_IN, URLENCODED, b"a&"),
    "sign-in, line ends": flood(SIGN_IN, MULTIPART, b"\r\n", before=PART, after=b"\r\n--b--\r\n"),
    "sign-in, headers": flood(SIGN_IN, MULTIPART, b"A: b\r\n", before=b"--b\r\n"),
    "JSON objects": flood(PREDICTIONS, JSON, b"{},", before=b"[", after=b"{}]"),
    "JSON lists": flood(PREDICTIONS, JSON, b"[],", before=b"[", after=b"[]]"),
    "JSON, estimate": flood("/v1/estimates", JSON, b"{},", before=b"[", after=b"{}]"),
    "JSON, points": flood(
        "/v1/jobs",
        JSON,
        b"{},",
        before=b'{"kind":"session","dataset":"census","epsilon":0.1,"public_points":[',
        after=b"{}]}",
    ),
    "CSV rows": flood(PREDICTIONS, CSV, b"1\n", before=b"age\n"),
    "CSV columns": flood(PREDICTIONS, CSV, b"abcdef,", after=b"a\n"),
    "verify": flood("/v1/verify", BYTES, b"{},", before=b'{"a":[', after=b"{}]}"),
}


def honest_batches(target: Target) -> str:
    """The largest batches that are allowed, as many as there can be."""
    row = {name: column[0].as_py() for name, column in columns().items()}
    body = json.dumps({"rows": [row] * ROWS}).encode()
    at_once(16, lambda: target.attack("POST", predictions(target), "alice", body, {"Content-Type": JSON}))
    at_once(16, lambda: target.attack("GET", "/v1/datasets/census/synthetic?rows=10000", "alice"))
    return f"{len(body) / MEGABYTE:.1f} MB each"


# --- connections ---


def long_header(target: Target) -> str:
    """150 megabytes of one header."""
    sent = 0
    with socket.create_connection(("127.0.0.1", target.port), timeout=20) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        with suppress(OSError):
            for _ in range(150):
                line.sendall(b"a" * MEGABYTE)
                sent += 1
            line.sendall(b"\r\n\r\n")
        target.statuses[_status(line)] += 1
    return f"{sent} MB taken"


def half_sent(target: Target) -> str:
    """1,030 connections that begin a request and do not go on, some of them byte by byte."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    lines = []
    for _ in range(1030):
        line = socket.create_connection(("127.0.0.1", target.port), timeout=5)
        line.sendall(b"GET /v1/me HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        lines.append(line)
    for _ in range(15):
        time.sleep(1.0)
        for line in lines[::2]:
            with suppress(OSError):
                line.sendall(b"a")
    for line in lines:
        line.settimeout(0.001)
        target.statuses[_status(line)] += 1
        line.close()
    return ""


def pipelined(target: Target) -> str:
    """40 connections without a key that send ten thousand requests each before the first answer."""
    asked = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    lines = [socket.create_connection(("127.0.0.1", target.port), timeout=5) for _ in range(40)]
    for line in lines:
        line.setblocking(False)
        with suppress(OSError):
            line.send(asked * 10_000)
    time.sleep(2.0)
    for line in lines:
        target.statuses[_status(line)] += 1
        line.close()
    return ""


def _status(line: socket.socket) -> str:
    try:
        head = line.recv(64)
    except TimeoutError:
        return "held"
    except OSError:
        return "closed"
    return head[9:12].decode() if head else "closed"


# --- more than one's share ---


def long_polls(target: Target) -> str:
    """600 of one key, for a job that waits behind others."""
    job = {"kind": "release", "dataset": "census", "learner": "logistic", "epsilon": 0.001}
    ids = [json.loads(target.attack("POST", "/v1/jobs", "alice", job)).get("id") for _ in range(60)]
    waiting = [each for each in ids if each][-1]
    at_once(600, lambda: target.attack("GET", f"/v1/jobs/{waiting}?wait=10", "alice"))
    return ""


def estimates(target: Target) -> str:
    """Eight connections that ask for estimates, each time with another delta."""
    _, head = _signed_in(target)
    until = time.monotonic() + 15.0

    def estimate() -> None:
        while time.monotonic() < until:
            delta = random.uniform(1e-7, 9e-6)
            asked = f"face=session&learner=smooth&epsilon=0.5&delta={delta}"
            target.attack("GET", f"/desk/census/train?{asked}", "", None, head)

    at_once(8, estimate)
    return ""


def _signed_in(target: Target) -> tuple[int, dict[str, str]]:
    import http.client

    line = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
    line.request("POST", "/sign-in", f"key={target.keys['alice']}", FORM)
    answer = line.getresponse()
    return answer.status, {"Cookie": str(answer.headers["set-cookie"]).split(";")[0]}


def many_trainings(target: Target) -> str:
    """230 tiny ones of one analyst; then bob asks for one."""
    job = {"kind": "release", "dataset": "census", "learner": "logistic", "epsilon": 0.001}
    for _ in range(230):
        target.attack("POST", "/v1/jobs", "alice", job)
    began = time.monotonic()
    status, content = target.call("POST", "/v1/jobs", "bob", job | {"epsilon": 0.05, "delta": 1e-8})
    asked = json.loads(content)
    while asked.get("state") in ("waiting", "running") and time.monotonic() - began < 60:
        asked = json.loads(target.call("GET", f"/v1/jobs/{asked['id']}?wait=20", "bob")[1])
    return f"bob's own ({status}) was {asked.get('state')} after {time.monotonic() - began:.1f} s"


def growing_trial(target: Target) -> str:
    """A trial session asked for 6,000 new points, which nobody pays."""
    session = target.trained(
        "session", learner="smooth", epsilon=1.0, delta=1e-6, trial=True, mechanism="function_release"
    )
    before, draw = target.resident(), random.Random(5)
    for _ in range(6):
        rows = [_random_row(draw) for _ in range(1000)]
        target.attack("POST", f"/v1/sessions/{session}/predictions", "alice", {"rows": rows})
    return f"{(target.resident() - before) / 1e6:+.0f} MB"


def _random_row(draw: random.Random) -> dict[str, Any]:
    numbers = {"age": (18, 90), "hours": (0, 80), "education_years": (6, 22), "capital_income": (0, 1e6)}
    texts = {"occupation": "office", "region": "north", "sex": "male"}
    return {name: draw.uniform(*bounds) for name, bounds in numbers.items()} | texts


Attack = Callable[["Target"], str]
ATTACKS: dict[str, Attack] = {
    "Arrow bombs": arrow_bombs,
    **FLOODS,
    "honest batches": honest_batches,
    "long header": long_header,
    "half-sent headers": half_sent,
    "pipelined requests": pipelined,
    "estimates": estimates,
    "growing trial": growing_trial,
    "long polls": long_polls,
    "many trainings": many_trainings,
}
