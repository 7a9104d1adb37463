"""Shortcuts of small answers: the same values, refusals and limits as without them."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.data import as_table
from privlearn.server import Refusal
from privlearn.server.access import keys
from privlearn.server.api import sessions as api
from privlearn.server.holder import Limits
from privlearn.server.http import JSON, Malformed, PlainRows, QueuedLines, bodies, read_rows
from privlearn.server.http.capacity import Shared
from privlearn.server.jobs import Predictions, join_predictions, sessions
from tests.support.served import Served, serving
from tests.support.service_support import SCHEMA, load_clinic

ROW: dict[str, Any] = {"age": 30, "dose": 1.5, "sex": "male"}
cells = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
values = st.recursive(
    cells, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def outcome(read: Any, content: bytes) -> Any:
    try:
        return repr(read(content))
    except Malformed as error:
        return f"refused: {error}"


@given(values)
def test_both_readers_of_json_agree(value: Any) -> None:
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert outcome(bodies.read_json, content) == outcome(bodies._read_exactly, content)


@pytest.mark.parametrize(
    "content",
    [
        b'{"age": 1, "age": 2}',
        b'{"rows": [{"age": 1, "age": 2}]}',
        b'[{"age": 1, "age": 2}]',
        b'{"rows": [{"sex": "a:b"}], "rows": []}',
        b'{"age": {"a": 1, "a": 2}}',
        b'{"sex": "\\u0000"}',
        b'{"sex": "\\ud800"}',
        b'{"age": NaN}',
        b'{"age": 1e400}',
        b'{"sex": "\xff"}',
        b"[" * 5000,
        b"1" * 5000,
        b"\xef\xbb\xbf1",
        b"",
    ],
)
def test_the_fast_reader_refuses_what_the_exact_one_refuses(content: bytes) -> None:
    assert outcome(bodies.read_json, content).startswith("refused")


@pytest.mark.parametrize(
    "content", [b"-0", b"1180591620717411303424", b'{"rows": [{"sex": "a:b"}]}', b" [ 1 ] "]
)
def test_odd_numbers_and_texts_are_read_alike(content: bytes) -> None:
    assert outcome(bodies.read_json, content) == outcome(bodies._read_exactly, content)


@given(
    st.fixed_dictionaries({"age": cells, "dose": cells, "sex": cells}),
    st.sampled_from(["{}", "[{}]", '{{"rows": [{}]}}']),
)
def test_a_plain_row_is_what_a_table_would_be(row: dict[str, Any], form: str) -> None:
    try:
        content = (
            form.replace("{}", "%s").replace("{{", "{").replace("}}", "}").encode()
            % json.dumps(row, allow_nan=False).encode()
        )
    except ValueError:  # JSON has no NaN
        return
    try:
        plain = PlainRows(SCHEMA).read(content)
    except Refusal:
        return
    if plain is not None:
        table = read_rows(content, JSON, SCHEMA, 10)
        assert repr(as_table(plain).to_pydict()) == repr(table.to_pydict())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("clinic"))) as running:
        yield running


@pytest.fixture(scope="module")
def session(served: Served) -> str:
    return served.train("session", trial=True)


def ask(served: Served, session: str, rows: int = 1, **options: Any) -> Any:
    return served.alice.post(f"/v1/sessions/{session}/predictions", json={"rows": [ROW] * rows}, **options)


def test_a_small_answer_is_computed_on_the_event_loop(
    served: Served, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no other one is: not a large body, not a session that must be read first."""
    ways: list[str] = []
    for name in ("run_computing", "run_heavy"):
        original = getattr(api, name)

        def noting(*args: Any, name: str = name, original: Any = original) -> Any:
            ways.append(name)
            return original(*args)

        monkeypatch.setattr(api, name, noting)
    service = served.app.state.service
    service._sessions.discard(session)
    first = ask(served, session).json()
    assert ways == ["run_computing"]
    service.session(service_caller(served), session)
    assert ask(served, session).json() == first
    assert ask(served, session, rows=200).status_code == 200
    assert ways == ["run_computing"] * 2


def service_caller(served: Served) -> Any:
    from privlearn.server.access import authenticate

    return authenticate(served.store, served.alice.headers["Authorization"].split()[1])


def test_the_lean_route_checks_like_every_other(served: Served, session: str) -> None:
    ask(served, session)
    path = f"/v1/sessions/{session}/predictions"
    no_key = {"Authorization": "Basic x"}
    assert served.alice.post(path, json=ROW, headers=no_key).status_code == 401
    assert served.alice.post(path, json=ROW, headers={"Authorization": "Bearer pl_x"}).status_code == 401
    assert served.bob.post(path, json=ROW).status_code == 404
    assert served.holder.post(path, json=ROW).status_code == 403
    assert served.alice.post(path, content=b"x", headers={"Content-Type": "text/html"}).status_code == 415
    assert served.alice.post(path, json=ROW, headers={"Accept": "text/html"}).status_code == 406
    assert served.alice.post(path, json=ROW | {"age": "Xyz"}).status_code == 422
    assert served.alice.post(path, json={"rows": []}).status_code == 422
    refused = served.alice.post(path, content=b'{"age": 1, "age": 2}', headers={"Content-Type": JSON})
    assert (refused.status_code, refused.headers["Content-Type"]) == (400, "application/problem+json")
    assert refused.headers["X-Frame-Options"] == "DENY"
    assert len(refused.headers["X-Request-Id"]) == 16
    assert served.alice.get(path).status_code == 405
    assert served.alice.post(path.replace(session, "0" * 16), json=ROW).status_code == 404
    figures = served.holder.get("/metrics").text
    assert 'route="/v1/sessions/{id}/predictions",status="200"' in figures


@pytest.mark.parametrize(("learner", "parts"), [("logistic", 1), ("kernel", 3)])
def test_a_batch_in_parts_has_the_answers_of_one(
    served: Served, monkeypatch: pytest.MonkeyPatch, learner: str, parts: int
) -> None:
    session = served.train("session", trial=True, learner=learner)
    joined: list[int] = []
    monkeypatch.setattr(sessions, "MIN_SPLIT_ROWS", 1)
    monkeypatch.setattr(sessions, "CORES", 3)
    monkeypatch.setattr(
        sessions, "join_predictions", lambda found: joined.append(len(found)) or join_predictions(found)
    )
    in_parts = ask(served, session, rows=200).json()
    monkeypatch.setattr(sessions, "CORES", 1)
    whole = ask(served, session, rows=200).json()
    assert joined == [parts, 1]
    assert in_parts["predictions"] == whole["predictions"]
    assert in_parts["scores"] == pytest.approx(whole["scores"], rel=1e-12)


def test_parts_are_joined_in_order() -> None:
    parts = [
        Predictions(np.array([n]), np.array([[n, n]]), np.array(["model"]), {"a": np.array([n / 2])})
        for n in range(3)
    ]
    joined = join_predictions(parts)
    assert joined.predictions.tolist() == [0, 1, 2]
    assert joined.scores.shape == (3, 2)
    assert joined.probabilities["a"].tolist() == [0.0, 0.5, 1.0]
    assert isinstance(pa.array(joined.sources.tolist()), pa.Array)


def test_errors_are_written_at_once_and_other_lines_soon() -> None:
    stream = io.StringIO()
    handler = QueuedLines(stream)
    log = logging.Logger("test")
    log.addHandler(handler)
    log.info("first")
    log.error("second")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["first", "second"]
    log.info("third")
    while "third" not in stream.getvalue():
        time.sleep(0.01)
    log.info("fourth")
    handler.close()
    assert stream.getvalue().count("\n") == 4


def test_one_request_looks_session_and_key_up_before_they_expire(
    served: Served, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all requests of that moment would wait for the database, once a second."""
    service, caller = served.app.state.service, service_caller(served)
    key, clock = served.alice.headers["Authorization"].split()[1], [time.monotonic()]
    monkeypatch.setattr("privlearn.server.timing.time.monotonic", lambda: clock[0])
    service.session(caller, session)
    assert keys.look_up_caller(served.store, key) == caller
    clock[0] += 0.7
    assert service.known_session(caller, session) is None
    assert service.known_session(caller, session).id == session
    service.session(caller, session)
    clock[0] += 0.4
    assert service.known_session(caller, session).id == session
    clock[0] += 2.0
    assert [keys.cached_caller(served.store, key) for _ in range(2)] == [None, caller]


def test_requests_of_one_moment_share_a_look_up() -> None:
    shared, calls = Shared(Limits()), list[int]()

    async def look_up() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        if len(calls) == 2:
            raise KeyError
        return 7

    async def ask_together() -> list[Any]:
        asked = [asyncio.create_task(shared.run_once("key", look_up)) for _ in range(5)]
        await asyncio.sleep(0)
        asked[0].cancel()  # its client left
        return await asyncio.gather(*asked, return_exceptions=True)

    async def ask_twice() -> None:
        assert (await ask_together())[1:] == [7] * 4
        assert [type(one) for one in (await ask_together())[1:]] == [KeyError] * 4

    asyncio.run(ask_twice())
    assert len(calls) == 2
    assert not shared._looking_up
