"""What trainings have made: releases to be fetched and sessions to be asked. One result per job, under the job's id.

A result is written before its cost is committed, so whoever lists results looks at the job too: they are seen once it
is done, and bear the time of that. When a result was written depends on the records.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, Table, func, insert, select, update

from privlearn.guarantee import Guarantee
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.session_certificate import SessionCertificate
from privlearn.service.jobs.requests import Job, ReleaseInfo, Session
from privlearn.service.refusals import Conflict, NotFound
from privlearn.service.store.tables import jobs, releases, sessions
from privlearn.storage import excluding, reading

_TABLES: dict[str, Table] = {"release": releases, "session": sessions}
_SESSION = [column for column in sessions.c if column.name != "release"]
_RELEASE = [
    *(column for column in releases.c if column.name != "file"),
    func.length(releases.c.file).label("size"),
]


def is_stored(store: str, job: Job) -> bool:
    table = _TABLES[job.kind]
    with reading(store) as connection:
        return connection.scalar(select(table.c.id).where(table.c.id == job.id)) is not None


def store_release(store: str, job: Job, release: Release) -> None:
    _store(store, job, releases, release.certificate, file=release.to_bytes())


def store_session(
    store: str, job: Job, certificate: SessionCertificate | Certificate, model: Release | None
) -> None:
    """A session; with the model it answers from, unless it answers from a kernel machine."""
    content = None if model is None else model.to_bytes()
    _store(store, job, sessions, certificate, release=content, state="open")


def find_releases(store: str, analyst: str | None) -> list[ReleaseInfo]:
    """Of an analyst or of all, newest first."""
    with reading(store) as connection:
        return [_as_release(row) for row in connection.execute(_visible(releases, _RELEASE, analyst))]


def find_release(store: str, release_id: str) -> ReleaseInfo:
    return _as_release(_one(store, releases, _RELEASE, release_id))


def release_file(store: str, release_id: str) -> bytes:
    return _content(store, releases, releases.c.file, release_id)


def find_sessions(store: str, analyst: str | None) -> list[Session]:
    """Of an analyst or of all, newest first."""
    with reading(store) as connection:
        return [_as_session(row) for row in connection.execute(_visible(sessions, _SESSION, analyst))]


def find_session(store: str, session_id: str) -> Session:
    return _as_session(_one(store, sessions, _SESSION, session_id))


def session_model(store: str, session_id: str) -> bytes:
    """The release file that a session of mechanism "model" answers from."""
    return _content(store, sessions, sessions.c.release, session_id)


def close_session(store: str, session_id: str) -> None:
    """It answers no more, for good; its cost stands."""
    with excluding(store, f"session {session_id}") as connection:
        this = update(sessions).where(sessions.c.id == session_id, sessions.c.state == "open")
        if not connection.execute(this.values(state="closed")).rowcount:
            raise Conflict("this session is closed already")


def _store(store: str, job: Job, table: Table, certificate: Any, **content: Any) -> None:
    """Write it, unless another process that ran the same job was first: then its result stays and ours is dropped."""
    with excluding(store, "results") as connection:
        if connection.scalar(select(table.c.id).where(table.c.id == job.id)) is None:
            facts = {"id": job.id, "certificate": certificate.to_dict()}
            connection.execute(insert(table).values(**facts, **content))


def _visible(table: Table, columns: list[Any], analyst: str | None) -> Any:
    """Results with their jobs, as far as they may be seen."""
    of_job = [jobs.c[name] for name in _OF_JOB]
    query = (
        select(*columns, *of_job)
        .join(jobs, jobs.c.id == table.c.id)
        .where(jobs.c.state == "done")
        .order_by(jobs.c.finished.desc())
    )
    return query if analyst is None else query.where(jobs.c.analyst == analyst)


def _one(store: str, table: Table, columns: list[Any], result_id: str) -> Row[Any]:
    with reading(store) as connection:
        query = _visible(table, columns, None).where(table.c.id == result_id)
        row: Row[Any] | None = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"there is no such {table.name.removesuffix('s')}: list yours")
    return row


def _content(store: str, table: Table, column: Any, result_id: str) -> bytes:
    return bytes(_one(store, table, [column], result_id)[0])


def _as_session(row: Row[Any]) -> Session:
    return Session(**_facts(row), mechanism=row.mechanism, state=row.state)


def _as_release(row: Row[Any]) -> ReleaseInfo:
    return ReleaseInfo(**_facts(row), size=row.size)


def _facts(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "analyst": row.analyst,
        "dataset": row.dataset,
        "learner": row.learner,
        "guarantee": Guarantee(row.epsilon, row.delta, row.neighbours),
        "trial": bool(row.trial),
        "created": row.finished,
        "certificate": row.certificate,
    }


_OF_JOB = (
    "analyst",
    "dataset",
    "learner",
    "mechanism",
    "epsilon",
    "delta",
    "neighbours",
    "trial",
    "finished",
)
