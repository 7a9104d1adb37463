"""A version of privlearn that does not exist yet: two formats further for the ledger, one for the server's tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, inspect

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.budget.storage import LEDGER, SERVICE, migrations, reading
from privlearn.guarantee import Guarantee
from privlearn.server.access import create_key
from privlearn.server.holder import Catalog, Owner
from privlearn.server.jobs import queue, run_job
from privlearn.server.store import open_store
from tests.support.service_support import load_clinic, model_request

NEWEST = {LEDGER: 3, SERVICE: 2}
COST = Guarantee(0.25, 1e-7)

_HEADING = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "{name}_{number}", "{name}_{previous}"
def upgrade():
"""

# The third revision needs the column of the second. The server's table is rebuilt, as SQLite needs to drop a
# constraint, though other tables refer to it.
_SCRIPTS = {
    "ledger_2": """
    op.add_column("splits", sa.Column("label", sa.String(50), nullable=False, server_default=""))
    op.add_column("entries", sa.Column("reviewer", sa.String(50)))
    op.create_index("splits_by_label", "splits", ["label"])
""",
    "ledger_3": """
    op.create_index("entries_by_reviewer", "entries", ["reviewer"])
    op.create_table("reviewers", sa.Column("name", sa.String(50), primary_key=True))
""",
    "service_2": """
    with op.batch_alter_table("jobs", recreate="auto") as jobs:
        jobs.alter_column("note", type_=sa.String(300), existing_type=sa.String(200))
    op.add_column("jobs", sa.Column("priority", sa.Integer, nullable=False, server_default="0"))
""",
}


@contextmanager
def next_version(directory: Path) -> Iterator[None]:
    """Act as the next version: its revision scripts are in the directory, and its formats are newer."""
    if not directory.exists():
        shutil.copytree(migrations.VERSIONS, directory)
        for revision, body in _SCRIPTS.items():
            name, number = revision.split("_")
            heading = _HEADING.format(name=name, number=number, previous=int(number) - 1)
            (directory / f"{revision}.py").write_text(heading + body.strip("\n") + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "VERSIONS", directory)
        try:
            for part, newest in NEWEST.items():
                object.__setattr__(part, "newest", newest)
            yield
        finally:
            for part in NEWEST:
                object.__setattr__(part, "newest", 1)


def write_server(directory: Path, place: str | None = None) -> Owner:
    """Write a server's store of this version: keys, a log, trainings done and waiting, a session, entries."""
    owner = load_clinic(directory, store=place)
    store, catalog = open_store(owner), Catalog(owner)
    create_key(store, "analyst", "alice")
    for kind, learner, mechanism in (
        ("release", "logistic", "model"),
        ("session", "kernel", "function_release"),
    ):
        request = model_request("clinic", kind, learner, COST.epsilon, COST.delta, mechanism)
        queue.submit(store, "alice", request, COST, "")
    while (job := queue.claim(store)) is not None:
        assert run_job(store, catalog, job) == ""
    queue.submit(store, "alice", waiting_request(), COST, "a key")
    ledger = Ledger.open(store, "clinic")
    ledger.reserve(Cost(Guarantee(0.1)), "cancelled").cancel()
    ledger.reserve(Cost(Guarantee(0.1)), "committed").commit()
    return owner


def waiting_request() -> Any:
    """Return the request of the training that waits in `write_server`."""
    return model_request("clinic", "release", "logistic", COST.epsilon, COST.delta)


def write_ledger(path: Path) -> str:
    """Write a ledger of this version, without a server."""
    Ledger.create(path, "census", COST).reserve(Cost(Guarantee(0.1)), "a test").commit()
    return str(path)


def contents(store: str) -> dict[str, list[str]]:
    """Return the rows of every table that this version has, in the columns that it has, but for the formats."""
    tables = MetaData()
    with reading(store) as connection:
        tables.reflect(connection)
        result = {
            name: sorted(str(dict(row._mapping)) for row in connection.execute(_known(table)).all())
            for name, table in tables.tables.items()
            if name not in _NEW_TABLES and not name.endswith("_format")
        }
        assert inspect(connection).has_table("session_answers") or "jobs" not in result
    return result


_NEW_TABLES, _NEW_COLUMNS = {"reviewers"}, {"label", "reviewer", "priority"}


def _known(table: Any) -> Any:
    return table.select().with_only_columns(*(one for one in table.c if one.name not in _NEW_COLUMNS))
