"""OpenTelemetry traces of a server: how long requests, jobs and the database take, and nothing that is private.

Spans leave the holder's machine, so they say no more than `/metrics` and analysts may know already:

- Names and attributes come from the lists below. Whatever else a span holds is taken off before it is sent: other
  attributes, events (an exception's would quote its message), descriptions of errors.
- A training's span ends when others see its end, after its slot (`service/timing.py`). What its process does meanwhile
  is not traced: when it has its result, and how often it went through the rows, follow from the rows.
- No analyst is in them, not even as a hash: whoever knows the names can hash them.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from threading import Thread
from typing import Any, get_args

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, get_current_span, set_span_in_context
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn._version import __version__
from privlearn.service.http.logs import known_method, request_id, route_template
from privlearn.service.job_kinds.job_kind import JOB_KINDS
from privlearn.service.jobs.requests import Job
from privlearn.service.timing import from_text
from privlearn.tracing import Mark, mark_with

SPANS = frozenset(["request", "job", "job.waiting", "job.running", *get_args(Mark)])
_SECONDS_TO_EXPORT = 5.0
_SECONDS_TO_END = 3.0


def _is_text(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
    "http.request.method": _is_text("[A-Z]{3,7}|other"),
    "http.route": _is_text(r"none|/[\w./{}:-]*"),  # a template of ours, never an address as it was asked for
    "http.response.status_code": lambda value: type(value) is int,
    "privlearn.request": _is_text("[0-9a-f]{16}"),
    "privlearn.job.kind": lambda value: value in JOB_KINDS,
    "privlearn.job.trial": lambda value: type(value) is bool,
    "privlearn.job.outcome": lambda value: value in ("done", "failed"),
}
"""All that a span may say beside its name and its times, and what it may look like."""


class OnlyListed(SpanExporter):
    """Lets spans of the lists pass, and of those nothing else: the fence around all that is sent.

    Parameters
    ----------
    exporter : SpanExporter
        What sends them.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([_bare(span) for span in spans if span.name in SPANS])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _bare(span: ReadableSpan) -> ReadableSpan:
    said = span.attributes or {}
    return ReadableSpan(
        span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={
            name: said[name] for name, fits in ATTRIBUTES.items() if name in said and fits(said[name])
        },
        kind=span.kind,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


class Telemetry:
    """The traces of one server process; one that nobody receives is dropped, and nobody waits for it.

    Parameters
    ----------
    endpoint : str
        Where OTLP is taken over HTTP: ``https://collector.example/v1/traces``.
    """

    def __init__(self, endpoint: str) -> None:
        resource = Resource(
            {"service.name": "privlearn", "service.version": __version__}
            | {"service.instance.id": secrets.token_hex(8)}
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_SECONDS_TO_EXPORT)
        self._provider.add_span_processor(BatchSpanProcessor(OnlyListed(exporter)))
        self._tracer = self._provider.get_tracer("privlearn")

    def start(self) -> None:
        """Mark what requests do with the store, too."""
        mark_with(self._mark)

    def stop(self) -> None:
        """Send what is left, if the collector takes it soon."""
        mark_with(None)
        ending = Thread(target=self._provider.shutdown, name="privlearn-last-spans", daemon=True)
        ending.start()
        ending.join(_SECONDS_TO_END)

    def _mark(self, name: Mark) -> AbstractContextManager[object]:
        """Inside a request alone: what workers do with the store tells how far their trainings are."""
        return self.span(name) if get_current_span().is_recording() else nullcontext()

    @contextmanager
    def span(self, name: str, kind: SpanKind = SpanKind.INTERNAL) -> Iterator[Any]:
        """A block; what it raises is none of the span's business."""
        with self._tracer.start_as_current_span(
            name, kind=kind, record_exception=False, set_status_on_exception=False
        ) as span:
            yield span

    def of_requests(self, app: ASGIApp) -> RequestSpans:
        """A middleware, inside of that which gives requests their ids."""
        return RequestSpans(app, self)

    def job_ended(self, job: Job, claimed: float, failed: bool) -> None:
        """A job whose end may be seen by now; ``claimed`` is when it was taken up, in seconds of the wall clock."""
        asked, taken_up, ended = _nanoseconds(from_text(job.created)), int(1e9 * claimed), time.time_ns()
        taken_up = max(asked, taken_up)
        facts: dict[str, str | bool] = {
            "privlearn.job.kind": job.kind,
            "privlearn.job.trial": job.trial,
            "privlearn.job.outcome": "failed" if failed else "done",
        }
        whole = self._tracer.start_span("job", context=Context(), start_time=asked, attributes=facts)
        within = set_span_in_context(whole)
        for name, begin, end in (("job.waiting", asked, taken_up), ("job.running", taken_up, ended)):
            self._tracer.start_span(name, context=within, start_time=begin).end(end)
        whole.end(ended)


class RequestSpans:
    """A span for each request, around all that is done for it. Whatever trace a caller claims to be part of is ignored:
    strangers do not write into the holder's traces."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app, self._telemetry = app, telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._telemetry.span("request", SpanKind.SERVER) as span:

            async def noting_status(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            try:
                await self._app(scope, receive, noting_status)
            finally:
                span.set_attribute("http.request.method", known_method(scope))
                span.set_attribute("http.route", route_template(scope))
                span.set_attribute("privlearn.request", request_id(scope))


def _nanoseconds(moment: datetime) -> int:
    return int(1e9 * moment.timestamp())
