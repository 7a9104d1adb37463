"""Results of jobs: releases, sessions, and what other kinds produce. One result per job, under the job's id.

A result is written before its cost is committed, so lists join the job's row: a result is visible once its job is
done, and has the time of that. The time at which it was written depends on the records.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, insert, select, update

from privlearn.budget.storage import excluding, reading
from privlearn.server.jobs.requests import Job, Result, ResultInfo, request_columns
from privlearn.server.refusals import Conflict, NotFound
from privlearn.server.store.tables import EVERYTHING, ListPage, jobs, results

_JOB_COLUMNS = (
    *("kind", "fields", "analyst", "dataset", "version"),
    *("epsilon", "delta", "neighbours", "trial", "finished"),
)
_COLUMNS = (
    *(column for column in results.c if column.name != "content"),
    func.coalesce(func.length(results.c.content), 0).label("size"),
    *(jobs.c[name] for name in _JOB_COLUMNS),
)


def is_stored(store: str, job: Job) -> bool:
    """Return whether the job's result is stored."""
    with reading(store) as connection:
        return connection.scalar(select(results.c.id).where(results.c.id == job.id)) is not None


def store_result(store: str, job: Job, result: Result) -> None:
    """Store a result. If another process that ran the same job was first, its result stays and this one is dropped."""
    with excluding(store, "results") as connection:
        if connection.scalar(select(results.c.id).where(results.c.id == job.id)) is None:
            values: dict[str, Any] = {"id": job.id, "certificate": result.certificate}
            values |= {"content": result.content, "media_type": result.media_type}
            connection.execute(insert(results).values(values))


def find_all(
    store: str,
    analyst: str | None,
    kind: str | None = None,
    page: ListPage = EVERYTHING,
    *,
    only_open: bool = False,
) -> list[ResultInfo]:
    """Return the results of an analyst or of all, of one kind or of all, newest first."""
    query = page.apply(_visible(*_COLUMNS, analyst=analyst, kind=kind), jobs.c.finished)
    if only_open:  # a subquery, so that the index of open sessions is used
        one = results.alias()
        open_ones = select(one.c.id).where(one.c.closed.is_(False), one.c.media_type == "")
        query = query.where(jobs.c.id.in_(open_ones))
    with reading(store) as connection:
        return [_as_result(row) for row in connection.execute(query)]


def find(store: str, analyst: str | None, result_id: str, kind: str | None = None) -> ResultInfo:
    """Return one result; another analyst's is not found."""
    return _as_result(_one(store, analyst, result_id, kind, *_COLUMNS))


def content_of(store: str, result_id: str) -> bytes:
    """Return what can be fetched, or what a session answers from. The caller's access was checked by `find`."""
    return bytes(_one(store, None, result_id, None, results.c.content)[0] or b"")


def close_session(store: str, session_id: str) -> None:
    """Close a session permanently and free what it answers from; its cost stands."""
    with excluding(store, f"session {session_id}") as connection:
        this = update(results).where(results.c.id == session_id, results.c.closed.is_(False))
        if not connection.execute(this.values(closed=True, content=None)).rowcount:
            raise Conflict("this session is already closed.")


def _visible(*columns: ColumnElement[Any], analyst: str | None, kind: str | None) -> Select[Any]:
    """Return a query for results with their jobs, as far as the analyst may see them."""
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
        raise NotFound(f"there is no {kind or 'result'} with this id. List yours to find it.")
    return row


def _as_result(row: Row[Any]) -> ResultInfo:
    return ResultInfo(
        **request_columns(row),
        created=row.finished,
        size=row.size,
        media_type=row.media_type,
        closed=bool(row.closed),
        certificate=row.certificate,
    )
