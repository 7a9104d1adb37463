"""Pages of sessions: predictions for a file or for one point, the certificate, and closing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from privlearn.data.schema.file_format import FileFormat
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.csv_files import upload_format
from privlearn.errors import DataError, InvalidParameter, SessionError
from privlearn.release.base_certificate import BaseCertificate
from privlearn.release.certificate import Certificate
from privlearn.release.session_certificate import SessionCertificate
from privlearn.server.http.bodies import content_of
from privlearn.server.http.media_types import CSV, JSON, read_rows, reading
from privlearn.server.job_kinds.training import OPEN_SESSION
from privlearn.server.jobs.requests import Predictions, ResultInfo
from privlearn.server.pages.columns import FieldView, field_views, point_of
from privlearn.server.pages.formatting import as_sentence
from privlearn.server.pages.page import Before, Form, PageId, Visit, download, page_router
from privlearn.server.pages.result_page import results_of
from privlearn.server.pages.signing import RowsForm, Visitor
from privlearn.server.refusals import Conflict, TooLarge
from privlearn.server.service import Service
from privlearn.server.store.log_file import escape_formula

router = page_router()

_UNUSABLE = (Conflict, DataError, InvalidParameter, SessionError, TooLarge)


@router.get("/sessions")
def sessions(visit: Visitor, before: Before) -> Response:
    return visit.render("sessions.html", sessions=results_of(visit, OPEN_SESSION.name, before))


@router.get("/sessions/{id}")
def session(visit: Visitor, id: PageId) -> Response:
    return _page(visit, visit.service.session(visit.caller, id))


@router.post("/sessions/{id}/file")
async def ask_file(visit: Visitor, id: PageId, form: RowsForm) -> Response:
    """Return the rows of a CSV file with a prediction for each."""
    content = await run_in_threadpool(content_of, form, "rows")
    async with reading(visit.request, content, CSV):
        return await visit.run_heavy(_ask_file, id, content)


@router.post("/sessions/{id}/point")
async def ask_point(visit: Visitor, id: PageId, form: Form) -> Response:
    return await visit.run_heavy(_ask_point, id, form)


def _ask_file(visit: Visit, id: str, content: bytes) -> Response:
    service = visit.service
    found = service.session(visit.caller, id)
    try:
        schema = _schema(service, found)
        form = upload_format(content, schema)
        rows = read_rows(content, CSV, schema, service.owner.limits.batch_rows, form)
        lines = _read_lines(content, rows.num_rows, form)
        answers = _predict(visit, found, rows)
    except _UNUSABLE as error:
        return _page(visit, found, errors={"rows": as_sentence(error)})
    return download(_with_predictions(lines, answers, form), CSV, f"predictions-{id[:8]}.csv")


def _ask_point(visit: Visit, id: str, form: FormData) -> Response:
    found = visit.service.session(visit.caller, id)
    schema = _schema(visit.service, found)
    fields = field_views(schema, {name: text for name, text in form.items() if isinstance(text, str)})
    rows, errors = point_of(schema, fields)
    if errors:
        return _page(visit, found, fields, errors)
    try:
        answers = _predict(visit, found, rows)
    except _UNUSABLE as error:
        return _page(visit, found, fields, {"": as_sentence(error)})
    return _page(visit, found, fields, answers=answers)


@router.post("/sessions/{id}/close")
def close(visit: Visitor, id: PageId) -> Response:
    visit.service.close_session(visit.caller, id)
    return RedirectResponse(f"/sessions/{id}", 303)


@router.get("/sessions/{id}/certificate")
def certificate(visit: Visitor, id: PageId) -> Response:
    content = json.dumps(visit.service.session(visit.caller, id).certificate, indent=1)
    return download(content.encode() + b"\n", JSON, f"session-{id[:8]}.json")


def _page(
    visit: Visit,
    found: ResultInfo,
    fields: list[FieldView] | None = None,
    errors: Mapping[str, str] | None = None,
    answers: Predictions | None = None,
) -> Response:
    schema = _schema(visit.service, found)
    assert schema.target is not None  # nothing is trained without one
    return visit.render(
        "session.html",
        422 if errors else 200,
        session=found,
        fields=field_views(schema, {}) if fields is None else fields,
        errors=errors or {},
        answer=None if answers is None else answers.predictions[0],
        explained="" if answers is None else _explain(answers),
        target=schema.target.name,
        unit=schema.target.unit or "",
        batch_rows=visit.service.owner.limits.batch_rows,
        may_ask=found.state == "open" and found.analyst == visit.caller.name,
        certificate=_read(found),
        commands=_commands(str(visit.request.base_url), found.id),
    )


def _schema(service: Service, found: ResultInfo) -> Schema:
    return service.catalog.find(found.dataset).schema


def _predict(visit: Visit, found: ResultInfo, rows: pa.Table) -> Predictions:
    answers = visit.service.predict(visit.caller, found, rows)
    visit.request.app.state.metrics.count_predictions(rows.num_rows)
    return answers


def _read_lines(content: bytes, rows: int, form: FileFormat) -> list[list[str]]:
    """Return every cell of the file unchanged, also of columns that are not in the schema."""
    try:
        text = content.decode(form.encoding).removeprefix("\ufeff")
        lines = [line for line in csv.reader(io.StringIO(text), delimiter=form.delimiter) if line]
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"the file is not CSV in {form.encoding} throughout. Save it again as such") from None
    if len(lines) != rows + 1:
        raise DataError("the file cannot be divided into lines. Save it again as plain CSV")
    return lines


def _with_predictions(lines: list[list[str]], answers: Predictions, form: FileFormat) -> bytes:
    """Return the file, in UTF-8, with prediction and class probabilities (if any) at the end of each row."""
    header, *rows = lines
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", delimiter=form.delimiter)
    likely = answers.probabilities
    writer.writerow(map(escape_formula, [*header, "prediction", *(f"probability_{name}" for name in likely)]))
    columns = (answers.predictions, *likely.values())
    added = zip(*(_cells(column.tolist(), form.decimal) for column in columns), strict=True)
    writer.writerows(map(escape_formula, [*row, *answer]) for row, answer in zip(rows, added, strict=True))
    return text.getvalue().encode("utf-8" if form.encoding == "utf-8" else "utf-8-sig")


def _cells(values: list[Any], decimal: str) -> list[Any]:
    """Return numbers with the file's decimal sign, and other values unchanged."""
    if decimal == ".":
        return values
    return [str(value).replace(".", decimal) if isinstance(value, float) else value for value in values]


def _explain(answers: Predictions) -> str:
    score, source = answers.scores[0], answers.sources[0]
    meter_text = f"score {score:.3g}; " if np.ndim(score) == 0 else ""
    likely = [f"{name} {column[0]:.3g}" for name, column in answers.probabilities.items()]
    meter_text += f"probabilities: {', '.join(likely)}; " if likely else ""
    origin = _SOURCES.get(source, "noise and the private function")
    whole = f"{meter_text}answered from {origin}. Asking again gives the same answer."
    return whole[0].upper() + whole[1:]


_SOURCES = {
    "model": "the session's private model",
    "guess": "its public part",
    "exhausted": "its public part alone",
}


def _read(found: ResultInfo) -> BaseCertificate:
    """Read the session's certificate; a session that answers from a model has the certificate of a release."""
    kind: type[BaseCertificate] = Certificate if found.mechanism == "model" else SessionCertificate
    return kind.from_dict(found.certificate)


def _commands(address: str, session: str) -> str:
    server = address.rstrip("/")
    return f"""\
privlearn ask --server {server} predict {session} new.csv --out predictions.csv
privlearn ask --server {server} certificate {session} --out session.json
privlearn verify session.json

from privlearn.client import Client            # in Python
Client("{server}").session("{session}").predict(table)"""
