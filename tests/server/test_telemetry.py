"""Traces tell how long things take, and nothing that is in the records or in requests."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode

from privlearn.data import Schema, read_table, write_table
from privlearn.errors import SchemaError
from privlearn.server import telemetry
from privlearn.server.holder import Owner
from privlearn.server.telemetry import ATTRIBUTES, SPANS, AllowlistExporter
from tests.support.otlp_receiver import Received, receiving
from tests.support.served import Served, serving
from tests.support.service_support import SCHEMA, write_clinic

WORD, NUMBER = "Xylophon-Quirk", 73645.18209
SHOWN = (WORD, "Xylophon", "73645.18", "7.364518", "alice", "clinic", "pl_")
SLOT = 1.5
EXPECTED_SPANS = SPANS - {
    "ledger.write"
}  # a job writes to the ledger in its own process, which is not traced
EXPECTED_ANSWERS = {("/v1/jobs/{id}", "422"), ("none", "404"), ("/v1/jobs", "202")}


def _owner(folder: Path, endpoint: str) -> Owner:
    """Return a clinic in which an age and a sex are marked; the schema lets both pass."""
    path = write_clinic(folder)
    text = path.read_text().replace("training_seconds = 0.01", f"training_seconds = {SLOT}")
    path.write_text(f'{text}\n[telemetry]\nendpoint = "{endpoint}"\n')
    table = read_table(folder / "clinic.csv").to_pydict()
    table["age"][0], table["sex"][1] = NUMBER, WORD
    content = SCHEMA.to_dict()
    content["columns"]["sex"] |= {"unknown": "other"}
    Schema.from_dict(content).save(folder / "clinic.schema.yaml")
    write_table(read_table(folder / "clinic.csv").from_pydict(table), folder / "clinic.csv")
    return Owner.load(path)


def _said(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span.get("attributes", [])}


def _seconds(span: dict[str, Any]) -> float:
    return (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e9


def _request_everything(served: Served) -> None:
    served.train("release")
    ask = served.alice.get
    ask(f"/v1/jobs/{WORD}", headers={"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"})
    ask(f"/{WORD}?{WORD}={NUMBER}", headers={"User-Agent": WORD, "baggage": f"a={WORD}"})
    served.alice.post("/v1/jobs", json={"kind": "release", "dataset": WORD, "epsilon": 1.0, WORD: NUMBER})


def _answers(spans: list[dict[str, Any]]) -> set[tuple[str, str]]:
    requests = [_said(span) for span in spans if span["name"] == "request"]
    return {(said["http.route"], said["http.response.status_code"]) for said in requests}


def _is_complete(spans: list[dict[str, Any]]) -> bool:
    return {span["name"] for span in spans} >= EXPECTED_SPANS and _answers(spans) >= EXPECTED_ANSWERS


def _trace(served: Served, collector: Received) -> None:
    """Request everything again until all spans have arrived: a server drops spans that it cannot send in time."""
    for _ in range(5):
        _request_everything(served)
        end = time.monotonic() + 20.0
        while time.monotonic() < end:
            if _is_complete(collector.spans()):
                return
            time.sleep(0.1)
    raise AssertionError("some spans did not arrive in five attempts")


def test_a_collector_gets_times_and_no_value(tmp_path: Path) -> None:
    with receiving(tmp_path) as collector:
        with serving(_owner(tmp_path, collector.url)) as served:
            _trace(served, collector)
        spans, text = collector.spans(), collector.text()
    assert [word for word in SHOWN if word in text] == []
    assert "abababab" not in text
    assert {span["name"] for span in spans} == EXPECTED_SPANS
    assert all(set(_said(span)) <= set(ATTRIBUTES) for span in spans)
    assert all(not {"events", "links", "traceState"} & set(span) for span in spans)
    assert {span["name"] for span in spans if "parentSpanId" not in span} == {"request", "job"}
    _check_jobs(spans)


def _check_jobs(spans: list[dict[str, Any]]) -> None:
    """A job is seen to end with its slot, whenever it did."""
    said = {"kind": "release", "trial": False, "outcome": "done"}
    jobs = [span for span in spans if span["name"] == "job"]
    for job in jobs:
        assert _said(job) == {f"privlearn.job.{name}": value for name, value in said.items()}
    for part in ("job.waiting", "job.running"):
        parents = {span["parentSpanId"] for span in spans if span["name"] == part}
        assert parents & {job["spanId"] for job in jobs}
    assert all(_seconds(span) >= SLOT for span in spans if span["name"] == "job.running")


class _Kept(SpanExporter):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


def test_the_fence_takes_off_what_is_not_listed() -> None:
    kept, provider = _Kept(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(AllowlistExporter(kept)))
    tracer = provider.get_tracer("privlearn")
    with suppress(ValueError), tracer.start_as_current_span("request") as span:
        span.set_attribute("age", NUMBER)
        span.set_attribute("http.route", f"/v1/jobs/{WORD} {NUMBER}?")
        span.set_attribute("http.response.status_code", NUMBER)
        span.set_attribute("privlearn.job.kind", WORD)
        span.set_attribute("privlearn.request", "0123456789abcdef")
        span.add_event(WORD, {"cell": NUMBER})
        span.set_status(Status(StatusCode.ERROR, WORD))
        raise ValueError(WORD)
    with tracer.start_as_current_span(WORD):
        pass
    (sent,) = kept.spans
    assert dict(sent.attributes or {}) == {"privlearn.request": "0123456789abcdef"}
    assert (sent.events, sent.links, sent.status.description) == ((), (), None)
    assert WORD not in sent.to_json()


def test_a_collector_that_hangs_keeps_nobody_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_SECONDS_TO_END", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        traces = telemetry.Telemetry(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces")
        traces.start()
        began = time.monotonic()
        for _ in range(3000):  # more than may wait
            with traces.span("request"):
                pass
        traces.stop()
        assert time.monotonic() - began < 9.0  # its exporter alone would wait 10 seconds


@pytest.mark.parametrize(
    "endpoint",
    ["http://collector.example/v1/traces", "https://u:secret@collector.example/v1/traces", "collector:4318"],
)
def test_endpoints_that_are_refused(tmp_path: Path, endpoint: str) -> None:
    path = write_clinic(tmp_path)
    path.write_text(f'{path.read_text()}\n[telemetry]\nendpoint = "{endpoint}"\n')
    with pytest.raises(SchemaError, match="must be https://HOST/") as refused:
        Owner.load(path)
    assert "secret" not in str(refused.value)
