"""Properties are searched the same way in every run, so that a change is judged by what it changed.

Both kinds of store. PostgreSQL is started once, when the first test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.support.postgresql_cluster import Cluster

# Here and in processes that tests start, before numpy is read: threads of small products wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests start many processes that read the library: compiled once, not in each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def server() -> Iterator[Cluster]:
    """Start a PostgreSQL server for these tests."""
    from tests.support.postgresql_cluster import Unavailable, cluster

    try:
        running = cluster()
        found = running.__enter__()
    except Unavailable as reason:
        pytest.skip(f"needs PostgreSQL: {reason}")
    yield found
    running.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a ledger that does not exist yet."""
    if request.param == "sqlite":
        return str(tmp_path / "budgets.db")
    place: str = request.getfixturevalue("server").new_place()
    return place


@pytest.fixture(autouse=True)
def _disconnected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Connections are kept for each place, and every test has a new one: a server has room for a hundred."""
    yield
    if "server" in request.fixturenames:
        from privlearn.budget.storage import disconnect

        disconnect()
