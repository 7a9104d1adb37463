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

from privlearn.data import read_table, write_table
from privlearn.data.schema.schema import Schema
from privlearn.errors import SchemaError
from privlearn.server import telemetry
from privlearn.server.holder.settings import Owner
from privlearn.server.telemetry import ATTRIBUTES, SPANS, AllowlistExporter
from tests.support.otlp_receiver import receiving
from tests.support.served import serving
from tests.support.service_support import SCHEMA, write_clinic
from tests.support.waiting import until

WORD, NUMBER = "Xylophon-Quirk", 73645.18209
SHOWN = (WORD, "Xylophon", "73645.18", "7.364518", "alice", "clinic", "pl_")
SLOT = 1.5


def _owner(folder: Path, endpoint: str) -> Owner:
    """A clinic in which an age and a sex are marked; the schema lets both pass."""
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


def test_a_collector_gets_times_and_no_value(tmp_path: Path) -> None:
    with receiving(tmp_path) as collector:
        with serving(_owner(tmp_path, collector.url)) as served:
            served.train("release")
            ask = served.alice.get
            ask(f"/v1/jobs/{WORD}", headers={"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"})
            ask(f"/{WORD}?{WORD}={NUMBER}", headers={"User-Agent": WORD, "baggage": f"a={WORD}"})
            served.alice.post(
                "/v1/jobs", json={"kind": "release", "dataset": WORD, "epsilon": 1.0, WORD: NUMBER}
            )
            until(
                lambda: '"job"' in collector.text()
            )  # a server that stops on a busy machine may not send it
        spans, text = collector.spans(), collector.text()
    assert [word for word in SHOWN if word in text] == []
    assert "abababab" not in text
    assert {span["name"] for span in spans} == SPANS - {"ledger.write"}  # which a job does in its own process
    assert all(set(_said(span)) <= set(ATTRIBUTES) for span in spans)
    assert all(not {"events", "links", "traceState"} & set(span) for span in spans)
    requests = [span for span in spans if span["name"] == "request"]
    answered = {(_said(span)["http.route"], _said(span)["http.response.status_code"]) for span in requests}
    assert {("/v1/jobs/{id}", "422"), ("none", "404"), ("/v1/jobs", "202")} <= answered
    assert {span["name"] for span in spans if "parentSpanId" not in span} == {"request", "job"}
    _check_job({span["name"]: span for span in spans})


def _check_job(spans: dict[str, dict[str, Any]]) -> None:
    """It is seen to end with its slot, whenever it did."""
    said = {"kind": "release", "trial": False, "outcome": "done"}
    assert _said(spans["job"]) == {f"privlearn.job.{name}": value for name, value in said.items()}
    assert _seconds(spans["job.running"]) >= SLOT
    for part in ("job.waiting", "job.running"):
        assert spans[part]["parentSpanId"] == spans["job"]["spanId"]


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
    with pytest.raises(SchemaError, match="must be https://HOST/v1/traces") as refused:
        Owner.load(path)
    assert "secret" not in str(refused.value)
