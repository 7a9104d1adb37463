"""Both kinds of store. PostgreSQL is started once, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgresql_cluster import Cluster, Unavailable, cluster


@pytest.fixture(scope="session")
def server() -> Iterator[Cluster]:
    try:
        running = cluster()
        found = running.__enter__()
    except Unavailable as reason:
        pytest.skip(f"needs PostgreSQL: {reason}")
    yield found
    running.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a ledger, with nothing in it."""
    if request.param == "sqlite":
        return str(tmp_path / "budgets.db")
    return request.getfixturevalue("server").new_place()
