"""What jobs have made: releases to be fetched, sessions to be asked, whatever else a kind makes. One result per job,
under the job's id.

A result is written before its cost is committed, so whoever lists results looks at the job too: they are seen once it
is done, and bear the time of that. When a result was written depends on the records.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, insert, select, update

from privlearn.service.jobs.requests import Job, Result, ResultInfo, accepted_in
from privlearn.service.refusals import Conflict, NotFound
from privlearn.service.store.paging import EVERYTHING, Piece
from privlearn.service.store.tables import jobs, results
from privlearn.storage import excluding, reading

_OF_JOB = (
    "kind",
    "fields",
    "analyst",
    "dataset",
    "version",
    "epsilon",
    "delta",
    "neighbours",
    "trial",
    "finished",
)
_SHOWN = (
    *(column for column in results.c if column.name != "content"),
    func.coalesce(func.length(results.c.content), 0).label("size"),
    *(jobs.c[name] for name in _OF_JOB),
)


SESSION = "session"
"""The kind of result that answers questions until it is closed."""


def is_stored(store: str, job: Job) -> bool:
    with reading(store) as connection:
        return connection.scalar(select(results.c.id).where(results.c.id == job.id)) is not None


def store_result(store: str, job: Job, made: Result) -> None:
    """Write it, unless another process that ran the same job was first: then its result stays and ours is dropped."""
    with excluding(store, "results") as connection:
        if connection.scalar(select(results.c.id).where(results.c.id == job.id)) is None:
            facts = {"certificate": made.certificate, "content": made.content, "media_type": made.media_type}
            connection.execute(insert(results).values(id=job.id, **facts))


def find_all(
    store: str,
    analyst: str | None,
    kind: str | None = None,
    piece: Piece = EVERYTHING,
    *,
    only_open: bool = False,
) -> list[ResultInfo]:
    """Of an analyst or of all, of one kind or of all, newest first; of sessions perhaps only those that are open."""
    query = piece.of(_visible(*_SHOWN, analyst=analyst, kind=kind), jobs.c.finished)
    if only_open:  # found among those that are open, not by looking at all that were closed
        one = results.alias()
        open_ones = select(one.c.id).where(one.c.closed.is_(False), one.c.media_type == "")
        query = query.where(jobs.c.id.in_(open_ones))
    with reading(store) as connection:
        return [_as_result(row) for row in connection.execute(query)]


def find(store: str, analyst: str | None, result_id: str, kind: str | None = None) -> ResultInfo:
    """One of an analyst's, or of all: what is another's is not there."""
    return _as_result(_one(store, analyst, result_id, kind, *_SHOWN))


def content_of(store: str, result_id: str) -> bytes:
    """What is fetched, or what a session answers from; empty if there is none. Whose it is, `find` has asked."""
    return bytes(_one(store, None, result_id, None, results.c.content)[0] or b"")


def close_session(store: str, session_id: str) -> None:
    """It answers no more, for good, and what it answered from is freed; its cost stands."""
    with excluding(store, f"session {session_id}") as connection:
        this = update(results).where(results.c.id == session_id, results.c.closed.is_(False))
        if not connection.execute(this.values(closed=True, content=None)).rowcount:
            raise Conflict("this session is closed already")


def _visible(*columns: ColumnElement[Any], analyst: str | None, kind: str | None) -> Select[Any]:
    """Results with their jobs, as far as they may be seen."""
    query = select(*columns).join_from(results, jobs).where(jobs.c.state == "done")
    if analyst is not None:
        query = query.where(jobs.c.analyst == analyst)
    return query if kind is None else query.where(jobs.c.kind == kind)


def _one(
    store: str, analyst: str | None, result_id: str, kind: str | None, *columns: ColumnElement[Any]
) -> Row[Any]:
    with reading(store) as connection:
        query = _visible(*columns, analyst=analyst, kind=kind).where(results.c.id == result_id)
        row: Row[Any] | None = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"there is no such {kind or 'result'}: list yours")
    return row


def _as_result(row: Row[Any]) -> ResultInfo:
    return ResultInfo(
        **accepted_in(row),
        created=row.finished,
        size=row.size,
        media_type=row.media_type,
        closed=bool(row.closed),
        certificate=row.certificate,
    )
