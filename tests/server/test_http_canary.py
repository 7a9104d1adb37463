"""A value planted in the records and in requests: it is in no answer, error, log line or metric."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privlearn.data import Schema, read_table, write_table
from privlearn.server.access import Caller, authenticate
from privlearn.server.holder import Owner
from privlearn.server.http import JsonLines
from tests.support.served import Served, serving
from tests.support.service_support import SCHEMA, write_clinic

WORD, NUMBER = "Xylophon-Quirk", 73645.18209
SHOWN = (WORD, "Xylophon", "73645.18", "7.364518", "73,645")
ROW: dict[str, Any] = {"age": NUMBER, "dose": 1.0, "sex": WORD, "note": WORD}
FIELDS = {"time", "level", "logger", "message", "id", "method", "route", "status", "ms", "key", "rows"}


def with_canaries(folder: Path) -> Path:
    """Return a clinic in which an age and a sex are the canaries; the schema lets both pass."""
    owner = write_clinic(folder)
    table = read_table(folder / "clinic.csv").to_pandas()
    table.loc[0, "age"], table.loc[1, "sex"] = NUMBER, WORD
    content = SCHEMA.to_dict()
    content["columns"]["sex"] |= {"unknown": "other"}
    Schema.from_dict(content).save(folder / "clinic.schema.yaml")
    write_table(pa.Table.from_pandas(table, preserve_index=False), folder / "clinic.csv")
    return owner


@dataclass
class Watched:
    """A server, everything that it answered and everything that it logged."""

    served: Served
    log: io.StringIO
    answers: list[str]

    def ask(self, method: str, path: str, by: str = "alice", **content: Any) -> Any:
        answer = getattr(self.served, by).request(method, path, **content)
        self.answers.append(answer.text + str(answer.headers))
        return answer

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    owner = Owner.load(with_canaries(tmp_path_factory.mktemp("clinic")))
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: not record.name.startswith("http"))  # the client's own lines
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with serving(owner) as served:
            found = Watched(served, log, [])
            _ask_everything(found)
            yield found
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _ask_everything(watched: Watched) -> None:
    ask, served = watched.ask, watched.served
    for path in (
        "me",
        "datasets",
        "datasets/clinic",
        "datasets/clinic/budget",
        "jobs",
        "results",
        "results?kind=session",
    ):
        ask("GET", f"/v1/{path}")
    ask(
        "POST",
        "/v1/estimates",
        json={"kind": "session", "dataset": "clinic", "epsilon": 1.0, "learner": WORD},
    )
    session = served.train("session")
    release = served.train("release")
    ask("GET", f"/v1/results/{release}")
    ask("GET", f"/v1/results/{release}/content")
    predictions = f"/v1/sessions/{session}/predictions"
    for body in (ROW, [ROW] * 3, ROW | {"age": WORD}, ROW | {"sex": NUMBER}, {"age": NUMBER}, WORD, [WORD]):
        ask("POST", predictions, json=body)
    for text in (f"age,dose,sex\n{NUMBER},1,{WORD}\n", f"{WORD}\n{NUMBER}\n", f"age,dose,sex\n{WORD},1,2\n"):
        ask("POST", predictions, content=text, headers={"Content-Type": "text/csv"})
    ask("POST", predictions, content=WORD, headers={"Content-Type": f"text/{WORD}"})
    ask("POST", "/v1/jobs", json={"kind": "release", "dataset": WORD, "epsilon": 1.0})
    ask("POST", "/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 1.0, WORD: NUMBER})
    ask("POST", "/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": WORD})
    ask("GET", f"/v1/datasets/{WORD}")
    ask("GET", f"/v1/jobs/{WORD}?wait={WORD}")
    ask("GET", f"/{WORD}?{WORD}={NUMBER}")
    ask("GET", "/v1/me", headers={"Authorization": f"Bearer {WORD}"})
    ask("GET", "/v1/me", headers={"User-Agent": WORD, "Referer": WORD, "X-Request-Id": WORD, "Cookie": WORD})
    ask("DELETE", f"/v1/sessions/{session}")
    ask("GET", "/v1/events", by="holder")
    ask("GET", "/metrics", by="holder")


def test_the_canaries_are_in_the_records(watched: Watched) -> None:
    """Else the other tests would prove nothing."""
    (offered,) = watched.served.app.state.service.datasets(_holder(watched))
    rows = offered.read_rows()
    assert NUMBER in rows["age"].to_pylist()
    assert WORD in rows["sex"].to_pylist()


def _holder(watched: Watched) -> Caller:
    shown = watched.served.holder.headers["Authorization"].removeprefix("Bearer ")
    return authenticate(watched.served.store, shown)


def test_no_answer_shows_them(watched: Watched) -> None:
    assert len(watched.answers) > 30
    for answer in watched.answers:
        assert not [canary for canary in SHOWN if canary in answer]


def test_no_log_line_shows_them(watched: Watched) -> None:
    text = watched.log.getvalue()
    assert not [canary for canary in SHOWN if canary in text]


def test_log_lines_of_requests_hold_nothing_else(watched: Watched) -> None:
    lines = [line for line in watched.lines() if line["logger"] == "privlearn.service.requests"]
    assert len(lines) >= len(watched.answers)
    for line in lines:
        assert set(line) <= FIELDS
        assert line["route"] in {"none"} or line["route"].startswith("/")
    (batch, *_) = [line for line in lines if line.get("rows") == 3]
    assert batch["route"] == "/v1/sessions/{id}/predictions"
    assert len(batch["key"]) == 16


def test_log_lines_hold_no_key(watched: Watched) -> None:
    text = watched.log.getvalue()
    for client in (watched.served.alice, watched.served.holder):
        secret = client.headers["Authorization"].split("_", 2)[2]
        assert secret not in text


def test_an_error_in_the_log_is_its_kind_and_place() -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(JsonLines())
    try:
        raise ValueError(WORD)
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "", 0, "failed", (), (ValueError, error, error.__traceback__)
        )
    handler.handle(record)
    assert WORD not in log.getvalue()
    assert json.loads(log.getvalue())["error"] == "ValueError"
