"""The service's tables, in the database that holds the ledger. Times are UTC in ISO form, "" where there is none.

They hold names, numbers, times, hashes of keys, analysts' public points, and what is released: nothing of the private
rows. A result has the id of the job that made it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from privlearn.storage import SERVICE, protect

_metadata = MetaData()


def _id() -> Column[Any]:
    return Column("id", String(32), primary_key=True)


def _name(name: str) -> Column[Any]:
    return Column(name, String(200), nullable=False, default="")


def _time(name: str) -> Column[Any]:
    return Column(name, String(40), nullable=False, default="")


def _one_of(name: str, *values: str) -> Column[Any]:
    allowed = ", ".join(f"'{value}'" for value in values)
    return Column(name, String(20), CheckConstraint(f"{name} IN ({allowed})"), nullable=False)


formats = Table(
    SERVICE.formats.name, _metadata, Column("version", Integer, primary_key=True, autoincrement=False)
)

keys = Table(
    "keys",
    _metadata,
    _id(),
    _one_of("role", "holder", "analyst"),
    _name("analyst"),
    Column("datasets", JSON(none_as_null=True)),  # names; NULL: all that the analyst has a share of
    Column("secret_hash", String(64), nullable=False),
    _time("created"),
    _time("expires"),
    _time("revoked"),
)

logins = Table(
    "logins",
    _metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("key_id", ForeignKey(keys.c.id), nullable=False),
    _time("expires"),
)

jobs = Table(
    "jobs",
    _metadata,
    _id(),
    _name("analyst"),
    _name("dataset"),
    Column("kind", String(20), nullable=False),  # those that there are, the code knows
    Column("epsilon", Double, nullable=False),
    Column("delta", Double, nullable=False),
    Column("neighbours", String(20), nullable=False),
    Column("trial", Boolean, nullable=False),
    Column("points", LargeBinary),
    Column("idempotency_key", String(200)),
    Column("request_digest", String(64), nullable=False),
    _one_of("state", "waiting", "running", "done", "failed"),
    Column("attempts", Integer, nullable=False, default=0),
    _time("lease"),
    _time("created"),
    _time("started"),
    _time("finished"),
    Column("failure", Text, nullable=False, default=""),
    Column("fields", JSON, nullable=False, server_default="{}"),  # what its kind was asked with
    UniqueConstraint("analyst", "idempotency_key"),
)

results = Table(
    "results",
    _metadata,
    Column("id", ForeignKey(jobs.c.id), primary_key=True),
    Column("certificate", JSON, nullable=False),
    Column("content", LargeBinary),
    Column("media_type", String(100), nullable=False, default=""),  # "": the content is not given out
    Column("closed", Boolean, nullable=False, default=False),  # a session that answers no more
)

events = Table(
    "events",
    _metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    _time("time"),
    _name("actor"),
    _name("action"),
    _name("dataset"),
    Column("details", JSON, nullable=False),
    sqlite_autoincrement=True,
)

_APPEND_ONLY = {formats: "version = NEW.version", events: "id = NEW.id"}


def create_all(connection: Connection) -> None:
    _metadata.create_all(connection)
    protect(connection, _APPEND_ONLY)
    SERVICE.record(connection, SERVICE.newest)
