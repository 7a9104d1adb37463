"""OpenTelemetry traces of a server: how long requests, jobs and the database take, and nothing that is private.

Spans leave the holder's machine, so they contain only what `/metrics` and analysts may see anyway:

- Names and attributes come from the lists below. Everything else is removed before a span is sent: other attributes,
events (an exception's event would quote its message), descriptions of errors.

- A job's span ends when others can see its end, after its slot (`server/timing.py`). Its process is not traced: the
time of its result and the number of passes depend on the rows.

- No analyst is in them, not even as a hash, because names can be guessed and hashed.
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
from privlearn.budget.storage.shared import SpanName, set_tracer
from privlearn.server.http.logs import method_label, request_id, route_template
from privlearn.server.job_kinds.job_kind import JOB_KINDS
from privlearn.server.jobs.requests import Job
from privlearn.server.timing import from_text

SPANS = frozenset(["request", "job", "job.waiting", "job.running", *get_args(SpanName)])
_SECONDS_TO_EXPORT = 5.0
_SECONDS_TO_END = 3.0


def _is_text(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
    "http.request.method": _is_text("[A-Z]{3,7}|other"),
    "http.route": _is_text(r"none|/[\w./{}:-]*"),  # a route's template, never the requested path
    "http.response.status_code": lambda value: type(value) is int,
    "privlearn.request": _is_text("[0-9a-f]{16}"),
    "privlearn.job.kind": lambda value: value in JOB_KINDS,
    "privlearn.job.trial": lambda value: type(value) is bool,
    "privlearn.job.outcome": lambda value: value in ("done", "failed"),
}
"""All attributes that a span may have, and a check of each value."""


class AllowlistExporter(SpanExporter):
    """Exports only spans and attributes of the lists above: everything that is sent passes through it.

    ``exporter`` sends the spans.
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
    attributes = span.attributes or {}
    return ReadableSpan(
        span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={
            name: attributes[name]
            for name, fits in ATTRIBUTES.items()
            if name in attributes and fits(attributes[name])
        },
        kind=span.kind,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


class Telemetry:
    """The traces of one server process. Spans that the collector does not accept are dropped; nothing waits for it.

    ``endpoint``: an OTLP/HTTP address: ``https://collector.example/v1/traces``.
    """

    def __init__(self, endpoint: str) -> None:
        resource = Resource(
            {"service.name": "privlearn", "service.version": __version__}
            | {"service.instance.id": secrets.token_hex(8)}
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_SECONDS_TO_EXPORT)
        self._provider.add_span_processor(BatchSpanProcessor(AllowlistExporter(exporter)))
        self._tracer = self._provider.get_tracer("privlearn")

    def start(self) -> None:
        """Trace database accesses of requests, too."""
        set_tracer(self._mark)

    def stop(self) -> None:
        """Send the remaining spans, if the collector accepts them soon."""
        set_tracer(None)
        ending = Thread(target=self._provider.shutdown, name="privlearn-last-spans", daemon=True)
        ending.start()
        ending.join(_SECONDS_TO_END)

    def _mark(self, name: SpanName) -> AbstractContextManager[object]:
        """Return a span for a database access of a request. Workers' accesses would reveal the progress of jobs."""
        return self.span(name) if get_current_span().is_recording() else nullcontext()

    @contextmanager
    def span(self, name: str, kind: SpanKind = SpanKind.INTERNAL) -> Iterator[Any]:
        """Trace a block; its exceptions are not recorded."""
        with self._tracer.start_as_current_span(
            name, kind=kind, record_exception=False, set_status_on_exception=False
        ) as span:
            yield span

    def of_requests(self, app: ASGIApp) -> RequestSpans:
        """Return the middleware; it must be inside of the one that gives requests their ids."""
        return RequestSpans(app, self)

    def job_ended(self, job: Job, claimed: float, failed: bool) -> None:
        """Trace a job whose end may be seen; ``claimed`` is when it was claimed, in seconds since the epoch."""
        requested, started, ended = _nanoseconds(from_text(job.created)), int(1e9 * claimed), time.time_ns()
        started = max(requested, started)
        attributes: dict[str, str | bool] = {
            "privlearn.job.kind": job.kind,
            "privlearn.job.trial": job.trial,
            "privlearn.job.outcome": "failed" if failed else "done",
        }
        whole = self._tracer.start_span("job", context=Context(), start_time=requested, attributes=attributes)
        within = set_span_in_context(whole)
        for name, begin, end in (("job.waiting", requested, started), ("job.running", started, ended)):
            self._tracer.start_span(name, context=within, start_time=begin).end(end)
        whole.end(ended)


class RequestSpans:
    """A span for each request. Trace headers of the caller are ignored, so that callers cannot write to the traces."""

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
                span.set_attribute("http.request.method", method_label(scope))
                span.set_attribute("http.route", route_template(scope))
                span.set_attribute("privlearn.request", request_id(scope))


def _nanoseconds(moment: datetime) -> int:
    return int(1e9 * moment.timestamp())
