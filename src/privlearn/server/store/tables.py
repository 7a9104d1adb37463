"""The server's tables, in the database that holds the ledger. Times are UTC in ISO format, "" if there is none.

They hold names, numbers, times, hashes of keys, public points of analysts, and released results: nothing of the private
rows. A result has the id of its job.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Select, select, tuple_

from privlearn.budget.storage import SERVICE, protect

_metadata = sa.MetaData()


def _id() -> sa.Column[Any]:
    return sa.Column("id", sa.String(32), primary_key=True)


def _name(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(200), nullable=False, default="")


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(40), nullable=False, default="")


formats = sa.Table(
    SERVICE.formats.name, _metadata, sa.Column("version", sa.Integer, primary_key=True, autoincrement=False)
)

keys = sa.Table(
    "keys",
    _metadata,
    _id(),
    sa.Column("role", sa.String(20), nullable=False),  # checked by the code
    _name("analyst"),
    sa.Column("datasets", sa.JSON(none_as_null=True)),  # names; NULL: all that the analyst has a share of
    sa.Column("secret_hash", sa.String(64), nullable=False),
    _time("created"),
    _time("expires"),
    _time("revoked"),
)

logins = sa.Table(
    "logins",
    _metadata,
    sa.Column("token_hash", sa.String(64), primary_key=True),
    sa.Column("key_id", sa.ForeignKey(keys.c.id)),  # NULL: the provider sent the browser, as this person
    sa.Column("role", sa.String(20), nullable=False),
    _name("person"),
    _time("seen"),
    _time("expires"),
)

jobs = sa.Table(
    "jobs",
    _metadata,
    _id(),
    _name("analyst"),
    _name("dataset"),
    sa.Column("kind", sa.String(20), nullable=False),  # checked by the code
    sa.Column("epsilon", sa.Double, nullable=False),
    sa.Column("delta", sa.Double, nullable=False),
    sa.Column("neighbours", sa.String(20), nullable=False),
    sa.Column("trial", sa.Boolean, nullable=False),
    sa.Column("points", sa.LargeBinary),
    sa.Column("idempotency_key", sa.String(200)),
    sa.Column("request_digest", sa.String(64), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),  # checked by the code
    sa.Column("attempts", sa.Integer, nullable=False, default=0),
    _time("lease"),
    _time("created"),
    _time("started"),
    _time("finished"),
    sa.Column("failure", sa.Text, nullable=False, default=""),
    sa.Column("reason", sa.Text, nullable=False, default=""),  # private: of a failure, for the holder
    sa.Column("fields", sa.JSON, nullable=False, server_default="{}"),  # of its kind
    sa.Column("key_id", sa.String(250), nullable=False, server_default=""),  # of the request
    sa.Column("note", sa.String(200), nullable=False, server_default=""),
    sa.Column("purpose", sa.String(500), nullable=False, server_default=""),
    sa.Column("legal_basis", sa.String(200), nullable=False, server_default=""),
    sa.Column("decide_by", sa.String(40), nullable=False, server_default=""),  # "": it needs no approval
    sa.Column("decided", sa.String(40), nullable=False, server_default=""),
    sa.Column("decided_by", sa.String(200), nullable=False, server_default=""),
    sa.Column("decision", sa.String(500), nullable=False, server_default=""),  # the reason, in their words
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),  # of the data set, see below
    sa.UniqueConstraint("analyst", "idempotency_key"),
    # For lists in pages, and for workers.
    sa.Index("jobs_by_state", "state", "created"),
    sa.Index("jobs_by_time", "created", "id"),
    sa.Index("jobs_of_analyst", "analyst", "created", "id"),
    sa.Index("jobs_by_end", "state", "finished", "id"),
    sa.Index("jobs_by_kind", "state", "kind", "finished", "id"),
    sa.Index("jobs_of_analyst_by_end", "state", "analyst", "finished", "id"),
    sa.Index("jobs_of_analyst_by_kind", "state", "analyst", "kind", "finished", "id"),
)

results = sa.Table(
    "results",
    _metadata,
    sa.Column("id", sa.ForeignKey(jobs.c.id), primary_key=True),
    sa.Column("certificate", sa.JSON, nullable=False),
    sa.Column("content", sa.LargeBinary),
    sa.Column("media_type", sa.String(100), nullable=False, default=""),  # "": the content is not given out
    sa.Column("closed", sa.Boolean, nullable=False, default=False),  # a session that answers no more
)
_OPEN = sa.and_(results.c.closed.is_(False), results.c.media_type == "")
sa.Index("results_open", results.c.id, sqlite_where=_OPEN, postgresql_where=_OPEN)

events = sa.Table(
    "events",
    _metadata,
    sa.Column("id", sa.Integer, sa.Identity(always=True), primary_key=True),
    _time("time"),
    _name("actor"),
    _name("action"),
    _name("dataset"),
    sa.Column("details", sa.JSON, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False, server_default=""),  # of this line and the one before
    sqlite_autoincrement=True,
)

# Where the log went on after old lines were removed: number and digest of the last one of them.
log_heads = sa.Table(
    "log_heads",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.String(64), nullable=False),
    _time("time"),
    sa.Column("signature", sa.String(128), nullable=False),
    sa.Column("public_key", sa.String(64), nullable=False),
)

# Added in the console, in addition to owner.toml. A share may belong to an analyst or a data set of that file.
analysts = sa.Table(
    "analysts",
    _metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    _name("title"),
    _time("created"),
    _time("disabled"),
)

shares = sa.Table(
    "shares",
    _metadata,
    sa.Column("analyst", sa.String(64), primary_key=True),
    sa.Column("dataset", sa.String(64), primary_key=True),
    sa.Column("epsilon", sa.Double, nullable=False),
    sa.Column("delta", sa.Double, nullable=False),
)

datasets = sa.Table(
    "datasets",
    _metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("settings", sa.JSON, nullable=False),  # as owner.toml would state them, but for the source
    _time("created"),
    _time("retired"),
)

# Rows are only added: what a job has read is known for as long as its result is.
versions = sa.Table(
    "dataset_versions",
    _metadata,
    sa.Column("dataset", sa.ForeignKey(datasets.c.name), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("source", sa.Text, nullable=False),  # where the table is
    sa.Column("schema_file", sa.Text, nullable=False),  # where the schema was
    sa.Column("schema", sa.JSON, nullable=False),
    sa.Column("records", sa.Integer, nullable=False),  # public: counted, or expected if the count is private
    _time("created"),
)

_APPEND_ONLY = {
    formats: "version = NEW.version",
    events: "id = NEW.id",
    log_heads: "id = NEW.id",
    versions: "dataset = NEW.dataset AND number = NEW.number",
}


def create_all(connection: sa.Connection) -> None:
    _metadata.create_all(connection)
    protect(connection, _APPEND_ONLY)
    SERVICE.record(connection, SERVICE.newest)


@dataclass(frozen=True)
class ListPage:
    """The part of a list of jobs, or of their results, to read.

    ``limit``: the number of items; ``None``: all. ``before``: id of the last one seen. ``datasets``: only jobs on these
    data sets; ``None``: on any.
    """

    limit: int | None = None
    before: str | None = None
    datasets: Collection[str] | None = None

    def apply(self, query: Select[Any], time: Column[str]) -> Select[Any]:
        """Return the query restricted to this page, in descending order of one of the jobs' times."""
        query = query.order_by(time.desc(), jobs.c.id.desc()).limit(self.limit)
        if self.datasets is not None:
            query = query.where(jobs.c.dataset.in_(self.datasets))
        if self.before is not None:
            seen = jobs.alias()
            at = select(seen.c[time.name]).where(seen.c.id == self.before).scalar_subquery()
            query = query.where(tuple_(time, jobs.c.id) < tuple_(at, self.before))
        return query


EVERYTHING = ListPage()
