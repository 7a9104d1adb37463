"""Load on loopback: a session's predictions a second, beside a bare FastAPI endpoint that calls scikit-learn.

    PRIVLEARN_DATA=... python benchmarks/service.py [--seconds 5] [--rounds 3] [--connections 1 4] [--linear]

Adult; `privlearn serve` with a session of mechanism "model", RBF kernel on 300 public points. Beside it, under the same
uvicorn settings, an endpoint of ten lines around a pipeline of encoder, Nystroem(300) and LinearSVC. Both are asked in
turns, by the same prepared requests over kept connections, so that what else the machine does hits both; the ratios are
of one run. The last column is a server's time on processors per answer, which a busy machine changes least (only Linux
tells it). Function release, for information: a new point is drawn, written and synced before its answer leaves.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, repeat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
POINTS, BATCH, SMALL = 300, 1000, 2000
SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
OWNER = """
[server]
port = {port}

[limits]
requests_per_minute = 100000000

[datasets.adult]
table = "adult.parquet"
schema = "{schema}"
epsilon = 10.0
delta = 1e-4
learners = {{ rbf = {{ model = "svm", kernel = "rbf" }}, linear = {{ model = "svm" }} }}

[datasets.small]
table = "small.parquet"
schema = "{schema}"
epsilon = 10.0
delta = 1e-4
learners = {{ rbf = {{ model = "svm", kernel = "rbf" }}, linear = {{ model = "svm" }} }}

[analysts.alice]
adult = {{ epsilon = 10.0, delta = 1e-4 }}
small = {{ epsilon = 10.0, delta = 1e-4 }}
"""


# --- the bare endpoint ---


def fit_bare(train: pa.Table, target: str, linear: bool = False) -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import LinearSVC

    frame = train.drop_columns([target]).to_pandas()
    encoder = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude=np.number),
        ),
    )
    lifted = () if linear else (Nystroem(n_components=POINTS, gamma=0.05, random_state=0),)
    model = make_pipeline(encoder, *lifted, LinearSVC())
    return model.fit(frame, train[target].to_pylist())


# --- requests over kept connections ---


@dataclass
class Question:
    """A prepared request: all bytes, so that asking costs the load's side little."""

    url: str
    kind: str
    body: bytes
    key: str = ""

    def raw(self) -> bytes:
        where = urlsplit(self.url)
        access = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        head = (
            f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\n{access}Content-Type: {self.kind}\r\n"
            f"Accept: {self.kind}\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body


@dataclass
class Load:
    """Answers and their seconds."""

    seconds: list[float] = field(default_factory=list)
    elapsed: float = 0.0
    processor: float = 0.0  # seconds of the server

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.elapsed

    def percentiles(self) -> list[float]:
        return [1000 * float(value) for value in np.percentile(self.seconds, [50, 95, 99])]


def ask_for(questions: Iterator[Question], connections: int, seconds: float, load: Load) -> None:
    """Ask over each connection again as soon as it is answered.

    One thread serves all connections in the order in which they are ready: threads would compete for the interpreter,
    and their waiting would be measured as the server's.
    """
    began = time.perf_counter()
    with selectors.DefaultSelector() as ready:
        for _ in range(connections):
            Connection(ready, questions, load).ask()
        while ready.get_map():
            for key, _ in ready.select():
                key.data.proceed(time.perf_counter() < began + seconds)
    load.elapsed += time.perf_counter() - began


class Connection:
    """A kept connection: it sends a request, reads the answer, and asks again."""

    def __init__(self, ready: selectors.BaseSelector, questions: Iterator[Question], load: Load) -> None:
        self._ready, self._questions, self._load = ready, questions, load
        self._next = next(questions)
        where = urlsplit(self._next.url)
        self._line = socket.create_connection((where.hostname, where.port))
        self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._line.setblocking(False)
        ready.register(self._line, selectors.EVENT_READ, self)

    def ask(self) -> None:
        self._unsent = memoryview(self._next.raw())
        self._answer, self._length = bytearray(), -1
        self._began = time.perf_counter()
        self._send()

    def proceed(self, go_on: bool) -> None:
        """Send or read what the socket is ready for; after an answer ask again, or end."""
        if self._unsent:
            self._send()
            return
        received = self._line.recv(1 << 20)
        if not received:
            raise RuntimeError("the server has ended a connection")
        self._answer += received
        if not self._is_complete():
            return
        self._load.seconds.append(time.perf_counter() - self._began)
        if go_on:
            self._next = next(self._questions)
            self.ask()
        else:
            self._ready.unregister(self._line)
            self._line.close()

    def _send(self) -> None:
        with suppress(BlockingIOError):
            self._unsent = self._unsent[self._line.send(self._unsent) :]
        events = selectors.EVENT_WRITE if self._unsent else selectors.EVENT_READ
        if self._ready.get_key(self._line).events != events:
            self._ready.modify(self._line, events, self)

    def _is_complete(self) -> bool:
        if self._length < 0 and (end := self._answer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._answer[:end]).lower()
            self._length = end + 4 + int(head.partition(b"content-length:")[2].split()[0])
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise RuntimeError(repr(bytes(self._answer[:600])))
        return 0 <= self._length <= len(self._answer)


# --- the two servers ---


def processor_seconds(process: int) -> float:
    """That a process has had so far, without its children."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return float("nan")
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(command: list[str], url: str, **environment: str) -> Iterator[int]:
    """The server's process."""
    import httpx2

    process = subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                httpx2.get(url, trust_env=False)
                break
            except httpx2.TransportError:
                time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def arrow_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def bodies(rows: pa.Table) -> dict[str, bytes]:
    return {JSON: json.dumps({"rows": rows.to_pylist()}).encode(), ARROW: arrow_bytes(rows)}


@dataclass
class Side:
    """One of the two: what it is asked, and its process."""

    question: Question
    process: int


def compare(title: str, sides: dict[str, Side], connections: int, rounds: int, seconds: float) -> None:
    loads = {name: Load() for name in sides}
    for side in sides.values():
        ask_for(repeat(side.question), connections, 0.5, Load())  # warm
    for _ in range(rounds):
        for name, side in sides.items():
            loads[name].processor -= processor_seconds(side.process)
            ask_for(repeat(side.question), connections, seconds, loads[name])
            loads[name].processor += processor_seconds(side.process)
    ratio = loads["privlearn"].rate / loads["bare"].rate
    show(title, connections, "privlearn", loads["privlearn"], f"{ratio:.2f}")
    show(title, connections, "bare", loads["bare"])


def function_release(client: Any, base: str, rows: pa.Table, key: str, seconds: float) -> None:
    """New points, one by one and in batches; then the same again, from what is written."""
    session = client.open_session("small", epsilon=1.0, delta=1e-5, mechanism="function_release")
    url = f"{base}/v1/sessions/{session.id}/predictions"
    start = 0
    for size in (1, 100):
        new, again = Load(), Load()
        batches = (rows.slice(start + size * number, size) for number in count())
        ask_for((Question(url, ARROW, arrow_bytes(batch), key) for batch in batches), 1, seconds, new)
        ask_for(repeat(Question(url, ARROW, arrow_bytes(rows.slice(start, size)), key)), 1, seconds, again)
        show(f"function release, {size} new", 1, "privlearn", new)
        show(f"function release, {size} known", 1, "privlearn", again)
        start += size * (len(new.seconds) + 2)


def show(title: str, connections: int, server: str, load: Load, ratio: str = "") -> None:
    times = " / ".join(f"{value:.2f}" for value in load.percentiles())
    each = f"{1000 * load.processor / len(load.seconds):.2f}" if load.processor else ""
    print(
        f"| {title} | {connections} | {server} | {load.rate:.1f} | {times} | {ratio} | {each} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4])
    parser.add_argument(
        "--linear", action="store_true", help="a linear model on both sides, without a kernel"
    )
    parser.add_argument("--function-release", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    import joblib
    import pyarrow.parquet as parquet

    from privlearn import Schema
    from privlearn.client import Client
    from privlearn.data.datasets import load_adult
    from privlearn.server.access.keys import create_key
    from privlearn.server.holder.settings import Owner
    from privlearn.server.store.store import open_store

    schema = Schema.load(SCHEMA)
    table = load_adult()
    table = table.take(np.random.default_rng(0).permutation(table.num_rows))
    cut = int(0.8 * table.num_rows)
    train, points, test = table.slice(0, cut), table.slice(cut, POINTS), table.slice(cut + POINTS)
    features = list(schema.columns)
    parquet.write_table(train, folder / "adult.parquet")
    parquet.write_table(train.slice(0, SMALL), folder / "small.parquet")
    port, bare_port = free_port(), free_port()
    (folder / "owner.toml").write_text(OWNER.format(port=port, schema=SCHEMA))
    key = create_key(open_store(Owner.load(folder / "owner.toml")), "analyst", "alice")
    assert schema.target is not None
    target = schema.target.name
    joblib.dump(fit_bare(train.select([*features, target]), target, options.linear), folder / "bare.joblib")

    base, bare = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{bare_port}"
    serve = [sys.executable, "-m", "privlearn", "serve", str(folder / "owner.toml")]
    uvicorn = [sys.executable, "-m", "uvicorn", "--app-dir", str(Path(__file__).parent), "bare_endpoint:app"]
    uvicorn += ["--port", str(bare_port), "--no-access-log", "--log-level", "warning"]
    with (
        running(serve, f"{base}/healthz") as own_process,
        running(uvicorn, f"{bare}/docs", BARE_MODEL=str(folder / "bare.joblib")) as bare_process,
    ):
        client = Client(base, key)
        shape: dict[str, Any] = {"learner": "linear"} if options.linear else {"learner": "rbf"}
        shape |= {} if options.linear else {"public_points": points.select(features)}
        session = client.open_session("adult", epsilon=1.0, delta=1e-5, **shape)
        url = f"{base}/v1/sessions/{session.id}/predictions"
        print(
            "| asked | connections | server | answers per second | ms: p50 / p95 / p99 | ratio | ms of a processor |"
        )
        print("|---|---|---|---|---|---|---|")
        for rows in (1, BATCH):
            for kind, body in bodies(test.select(features).slice(0, rows)).items():
                name = "JSON" if kind == JSON else "Arrow"
                sides = {
                    "privlearn": Side(Question(url, kind, body, key), own_process),
                    "bare": Side(Question(f"{bare}/{name.lower()}", kind, body), bare_process),
                }
                for connections in options.connections:
                    compare(f"{rows} rows, {name}", sides, connections, options.rounds, options.seconds)
        if options.function_release:
            function_release(client, base, test.select(features), key, options.seconds)


if __name__ == "__main__":
    main()
