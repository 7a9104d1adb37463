"""Whatever is sent, the answer is a 4xx with a reason, nothing is spent, and no cell comes back."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from privlearn.server.http import ARROW, CSV, JSON, Limiter, write_arrow
from privlearn.server.http.bodies import read_json
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

CANARY = "Xylophon-Quirk"
ROW: dict[str, Any] = {"age": 30, "dose": 1.0, "sex": "male"}
TABLE = pa.table({"age": [30.0], "dose": [1.0], "sex": ["male"]})
HEADER = b"age,dose,sex\n"
NO_DAY = pa.array([2**31 - 1], pa.int32()).view(pa.date32())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("clinic"))) as running:
        yield running


@pytest.fixture(scope="module")
def session(served: Served) -> str:
    return served.train("session", trial=True)


def row_with(**cells: Any) -> bytes:
    return json.dumps(ROW | cells).encode()


def compressed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def parquet_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def out_of_bounds() -> bytes:
    """Return a text column whose offsets point far outside of its text."""
    good, text = write_arrow(TABLE), struct.pack("<ii", 0, 4) + b"male"
    assert good.count(text) == 1
    return good.replace(text, struct.pack("<ii", 0, 1 << 30) + b"male")


def shared_text(kind: pa.DataType, text: bytes) -> bytes:
    """Return a text that the cells of a thousand rows refer to."""
    rows = 1000
    if kind == pa.string():
        cells = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), [text.decode()])
    else:
        head = text.ljust(12, b"\0") if len(text) <= 12 else struct.pack("<4sii", text[:4], 0, 0)
        views = (struct.pack("<i", len(text)) + head) * rows
        cells = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(views), pa.py_buffer(text)])
    return write_arrow(pa.table({"age": [1.0] * rows, "dose": [1.0] * rows, "sex": cells}))


def endless() -> bytes:
    """Return a column without content that claims 10^12 rows."""
    few, many = struct.pack("<q", 77_777), struct.pack("<q", 1 << 40)
    return write_arrow(pa.table({"age": pa.nulls(77_777)})).replace(few, many)


DEEP = b"[" * 100_000 + b"]" * 100_000
BODIES: dict[str, tuple[str, bytes]] = {
    "empty": (JSON, b""),
    "not JSON": (JSON, b"{"),
    "NaN": (JSON, b'{"age": NaN, "dose": 1, "sex": "male"}'),
    "Infinity": (JSON, b'{"age": -Infinity, "dose": 1, "sex": "male"}'),
    "name twice": (JSON, b'{"age": 1, "age": 2, "dose": 1, "sex": "male"}'),
    "nested deeply": (JSON, DEEP),
    "object nested deeply": (JSON, b'{"rows":' * 100_000 + b"1" + b"}" * 100_000),
    "integer of many digits": (JSON, b'{"age": ' + b"9" * 50_000 + b', "dose": 1, "sex": "male"}'),
    "half a character": (JSON, rb'{"age": 1, "dose": 1, "sex": "\ud800"}'),
    "UTF-16": (JSON, json.dumps(ROW).encode("utf-16")),
    "Latin-1": (JSON, '{"age": 1, "dose": 1, "sex": "ä"}'.encode("latin-1")),
    "byte order mark": (JSON, b"\xef\xbb\xbf" + json.dumps(ROW).encode()),
    "NUL": (JSON, b"\0" + json.dumps(ROW).encode()),
    "number": (JSON, b"1"),
    "text": (JSON, b'"age"'),
    "null": (JSON, b"null"),
    "no rows": (JSON, b"[]"),
    "rows of rows": (JSON, b"[[1, 2, 3]]"),
    "rows is no list": (JSON, b'{"rows": {"age": 1}}'),
    "one row is a number": (JSON, json.dumps([ROW, 7]).encode()),
    "column missing": (JSON, b'{"age": 1, "sex": "male"}'),
    "text for a number": (JSON, row_with(age=CANARY)),
    "list for a cell": (JSON, row_with(age=[1])),
    "object for a cell": (JSON, row_with(sex={"$ne": CANARY})),
    "number for text": (JSON, row_with(sex=7364518209)),
    "unknown category": (JSON, row_with(sex=CANARY)),
    "missing cell": (JSON, row_with(age=None)),
    "too many rows": (JSON, json.dumps([ROW] * 10_001).encode()),
    "empty CSV": (CSV, b""),
    "CSV without rows": (CSV, HEADER),
    "CSV of other columns": (CSV, b"name\n" + CANARY.encode()),
    "CSV without a column": (CSV, b"age,dose\n1,2\n"),
    "CSV with a column twice": (CSV, b"age,age,dose,sex\n1,1,2,male\n"),
    "CSV with short lines": (CSV, HEADER + b"1,2\n" + CANARY.encode()),
    "CSV with text for a number": (CSV, HEADER + CANARY.encode() + b",2,male\n"),
    "CSV in Latin-1": (CSV, HEADER + "1,2,mäle\n".encode("latin-1")),
    "CSV with NUL": (CSV, HEADER + b"1,2,\0\n"),
    "CSV in gzip": (CSV, b"\x1f\x8b\x08\x00" + b"\0" * 50),
    "CSV with too many rows": (CSV, HEADER + b"1,2,male\n" * 10_001),
    "CSV with one endless line": (CSV, b"x" * 3_000_000),
    "Arrow without a byte": (ARROW, b""),
    "Arrow cut off": (ARROW, write_arrow(TABLE)[:-100]),
    "Arrow of nonsense": (ARROW, b"\xff" * 1000),
    "Arrow with a wrong length": (ARROW, flipped(write_arrow(TABLE), 4)),
    "Arrow pointing outside": (ARROW, out_of_bounds()),
    "Arrow compressed": (ARROW, compressed(pa.table({"age": pa.nulls(1), "dose": [0.0], "sex": ["m"]}))),
    "Arrow with endless rows": (ARROW, endless()),
    "Arrow with a name that is not UTF-8": (ARROW, write_arrow(TABLE).replace(b"age", b"\xff\xfe\xfd")),
    "Arrow with a day that does not exist": (ARROW, write_arrow(TABLE.set_column(0, "age", NO_DAY))),
    "Arrow with nested cells": (ARROW, write_arrow(TABLE.set_column(0, "age", pa.array([[[1.0]]])))),
    "Arrow with a column twice": (ARROW, write_arrow(pa.table([[1.0], [1.0]], ["age", "age"]))),
    "Arrow file instead of stream": (ARROW, b"ARROW1\0\0" + write_arrow(TABLE)),
    "Parquet as Arrow": (ARROW, parquet_bytes(TABLE)),
}


def check_refusal(answer: httpx2.Response) -> None:
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["type"].startswith("urn:privlearn:")
    assert len(problem["detail"]) > 10
    assert CANARY not in answer.text
    assert "7364518209" not in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("name", BODIES)
def test_rows_that_cannot_be_answered(served: Served, session: str, name: str) -> None:
    kind, body = BODIES[name]
    before = served.spent()
    answer = served.alice.post(
        f"/v1/sessions/{session}/predictions", content=body, headers={"Content-Type": kind}
    )
    check_refusal(answer)
    assert served.spent() == before


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()], ids=str)
def test_text_that_many_cells_refer_to_is_not_written_out(served: Served, session: str, kind: Any) -> None:
    """Half a megabyte would become half a gigabyte; short text in the same form is read."""
    path = f"/v1/sessions/{session}/predictions"
    headers = {"Content-Type": ARROW}
    answer = served.alice.post(path, content=shared_text(kind, b"word " * 100_000), headers=headers)
    check_refusal(answer)
    assert answer.status_code == 413
    assert served.alice.post(path, content=shared_text(kind, b"male"), headers=headers).status_code == 200


@pytest.mark.parametrize(
    "kind",
    ["", "application/x-parquet", "application/vnd.apache.parquet", "text/html", "application/json; charset=utf-16",
     "x" * 5000, "application/jsonx", "multipart/form-data"],
    ids=["none", "parquet", "Apache parquet", "HTML", "UTF-16", "long", "almost JSON", "form"],
)  # fmt: skip
def test_other_kinds_are_not_read(served: Served, session: str, kind: str) -> None:
    path = f"/v1/sessions/{session}/predictions"
    answer = served.alice.post(path, content=json.dumps(ROW), headers={"Content-Type": kind})
    check_refusal(answer)
    assert answer.status_code == 415


def test_packed_bodies_are_not_unpacked(served: Served, session: str) -> None:
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    answer = served.alice.post(f"/v1/sessions/{session}/predictions", content=b"\x1f\x8b", headers=headers)
    check_refusal(answer)
    assert answer.status_code == 415


@pytest.mark.parametrize("accept", ["image/png", "text/html;q=1, application/json;q=0", ";;;,,"])
def test_answers_that_are_not_offered(served: Served, session: str, accept: str) -> None:
    path = f"/v1/sessions/{session}/predictions"
    answer = served.alice.post(path, json=ROW, headers={"Accept": accept})
    if accept == ";;;,,":  # says nothing, so anything will do
        assert answer.status_code == 200
    else:
        check_refusal(answer)
        assert answer.status_code == 406


GOOD = {"dataset": "clinic", "epsilon": 0.5}
RELEASE = json.dumps({"kind": "release"} | GOOD)
REQUESTS: dict[str, Any] = {
    "no data set": {"epsilon": 0.5},
    "no epsilon": {"dataset": "clinic"},
    "epsilon below 0": GOOD | {"epsilon": -1.0},
    "epsilon 0": GOOD | {"epsilon": 0},
    "epsilon in words": GOOD | {"epsilon": "0.5"},
    "epsilon true": GOOD | {"epsilon": True},
    "epsilon beyond numbers": GOOD | {"epsilon": 1e300},
    "delta of 1": GOOD | {"delta": 1.0},
    "SQL in the data set": GOOD | {"dataset": "clinic'; DROP TABLE jobs; --"},
    "path in the data set": GOOD | {"dataset": "../../etc/passwd"},
    "NUL in the data set": GOOD | {"dataset": "clinic\0"},
    "long data set": GOOD | {"dataset": "x" * 100_000},
    "SQL in the learner": GOOD | {"learner": "logistic' OR '1'='1"},
    "path in the learner": GOOD | {"learner": "../logistic"},
    "unknown member": GOOD | {"budget": 1e9},
    "list": [GOOD],
    "trial in words": GOOD | {"trial": "yes"},
    "mechanism of another": GOOD | {"mechanism": "none"},
    "points of nothing": GOOD | {"public_points": []},
    "points of numbers": GOOD | {"public_points": [1, 2]},
    "points without columns": GOOD | {"public_points": [{"age": 1}]},
    "text for a point's number": GOOD | {"learner": "kernel", "public_points": [ROW | {"age": CANARY}]},
    "too many points": GOOD | {"learner": "kernel", "public_points": [ROW] * 10_001},
    "more than there is": GOOD | {"epsilon": 4.5},
    "more delta than there is": GOOD | {"delta": 0.1},
}


def _of_kind(kind: str, body: Any) -> Any:
    return {"kind": kind} | body if isinstance(body, dict) else body


@pytest.mark.parametrize("kind", ["release", "session"])
@pytest.mark.parametrize("name", REQUESTS)
def test_trainings_that_cannot_be_done(served: Served, name: str, kind: str) -> None:
    before, jobs = served.spent(), len(served.alice.get("/v1/jobs").json())
    check_refusal(served.alice.post("/v1/jobs", json=_of_kind(kind, REQUESTS[name])))
    assert served.spent() == before
    assert len(served.alice.get("/v1/jobs").json()) == jobs


@pytest.mark.parametrize(
    "member",
    [
        rb'"learner": "\ud800"', rb'"learner": "\udc00\ud800"', rb'"learner": "\u0000"', rb'"\ud800": 1',
        rb'"public_points": [{"sex": ["\ud800"]}]', b'"delta": 1e999', b'"public_points": [{"age": -1e999}]',
    ],
)  # fmt: skip
def test_characters_and_numbers_that_nothing_could_hold(served: Served, member: bytes) -> None:
    body = b'{"kind": "session", "dataset": "clinic", "epsilon": 0.5, "trial": true, %b}' % member
    answer = served.alice.post("/v1/jobs", content=body, headers={"Content-Type": JSON})
    check_refusal(answer)
    assert answer.status_code == 400


def test_whole_characters_may_be_escaped() -> None:
    assert read_json(rb'{"\ud83d\ude00": "\\ud800 \u00e9"}') == {"\U0001f600": "\\ud800 \u00e9"}


@pytest.mark.parametrize(
    "form",
    [
        {"data": {"request": "{}"}},
        {"files": {"points": ("p", b"", CSV)}},
        {"data": {"request": RELEASE}, "files": {"points": ("p", HEADER, "application/x-parquet")}},
        {"data": {"request": RELEASE}, "files": {"points": ("../p", b"\xff", ARROW)}},
        {"data": {"request": "{"}, "files": {"points": ("p", HEADER, CSV)}},
        {"data": {"request": RELEASE}, "files": [("points", ("p", HEADER, CSV)), ("q", ("q", b"", CSV))]},
        {"content": b"--x\r\nnonsense", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
        {"content": b"", "headers": {"Content-Type": "multipart/form-data"}},
    ],
    ids=["no file", "no request", "Parquet", "bad Arrow", "bad JSON", "two files", "no end", "no boundary"],
)  # fmt: skip
def test_forms_that_cannot_be_read(served: Served, form: Any) -> None:
    before = served.spent()
    check_refusal(served.alice.post("/v1/jobs", **form))
    assert served.spent() == before


@pytest.mark.parametrize(
    "key", ["x" * 201, "a b", "ä".encode(), b"\x01"], ids=["long", "blank", "umlaut", "control"]
)
def test_idempotency_keys_that_cannot_be_kept(served: Served, key: Any) -> None:
    try:
        answer = served.alice.post(
            "/v1/jobs", json={"kind": "release"} | GOOD | {"trial": True}, headers={"Idempotency-Key": key}
        )
    except (httpx2.LocalProtocolError, httpx2.RemoteProtocolError):
        return  # not even HTTP
    assert 400 <= answer.status_code < 500


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sessions/..%2f..%2fetc%2fpasswd",
        "/v1/sessions/%00",
        "/v1/sessions/0' OR '1'='1",
        "/v1/jobs/" + "0" * 5000,
        "/v1/jobs/%F0%9F%92%A5",
        "/v1/jobs/%ff%fe",
        "/v1/jobs/0000000000000000?wait=1e9",
        "/v1/jobs/0000000000000000?wait=nan",
        "/v1/jobs?dataset=" + "x" * 100,
        "/v1/results/0000000000000000/content",
        "/v1/results?kind=%00",
        "/v1/results?kind=" + "x" * 21,
        "/v1/results/0000000000000000/../../me/",
        "/v1/datasets/..%2f",
        "/v1/datasets/%00",
        "/v1/datasets/clinic%00",
        "/v1/datasets/clinic'--/budget",
        "/v1/datasets/clinic/synthetic?rows=1000000000",
        "/v1/datasets/clinic/synthetic?rows=0",
        "/v1/datasets/clinic/synthetic?rows=1&seed=-1",
        "/v1/datasets/clinic/synthetic?rows=abc",
        "/v1/events?limit=100000000",
        "/v1/events?before=99999999999999999999",
        "/v1",
        "/v2/me",
        "/.git/config",
    ],
)  # fmt: skip
def test_addresses_that_lead_nowhere(served: Served, path: str) -> None:
    answer = served.holder.get(path)
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text
    if path.startswith("/v1/"):
        check_refusal(answer)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "OPTIONS", "PROPFIND"])
def test_methods_that_nobody_offers(served: Served, method: str) -> None:
    check_refusal(served.alice.request(method, "/v1/me"))


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Basic YTpi", "Bearer pl_0_0", "Bearer ' OR 1=1 --", "Bearer " + "x" * 10_000,
     "Bearer pl_" + "0" * 16 + "_" + "A" * 43],
    ids=["empty", "scheme", "basic", "short", "SQL", "long", "unknown"],
)  # fmt: skip
def test_keys_that_open_nothing(served: Served, header: str) -> None:
    served.app.state.limiter = Limiter(6000, 10)  # attempts of other tests do not count
    answer = httpx2.get(f"{served.url}/v1/me", headers={"Authorization": header}, trust_env=False)
    check_refusal(answer)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert len(header) < 10 or header not in answer.text


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"{}", b"{" * 100_000, b"\xff" * 1000])
def test_files_that_are_no_releases(served: Served, content: bytes) -> None:
    octets = {"Content-Type": "application/octet-stream"}
    check_refusal(served.alice.post("/v1/verify", content=content, headers=octets))
