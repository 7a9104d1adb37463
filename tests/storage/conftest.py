"""Servers' stores as version 0.1 left them, in both kinds of database."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn.service.holder.settings import Owner
from tests.support.old_stores import old_postgresql_server, old_sqlite_server


@pytest.fixture(params=["sqlite", "postgresql"])
def old_server(request: pytest.FixtureRequest, tmp_path: Path) -> Owner:
    if request.param == "sqlite":
        return old_sqlite_server(tmp_path)
    return old_postgresql_server(tmp_path, request.getfixturevalue("server"))
