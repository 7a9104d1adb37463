"""Servers' stores of this version, in both kinds of database, and the next version's code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from privlearn.server.holder import Owner
from tests.support.next_version import next_version, write_server


@pytest.fixture(params=["sqlite", "postgresql"])
def old_server(request: pytest.FixtureRequest, tmp_path: Path) -> Owner:
    place = None if request.param == "sqlite" else request.getfixturevalue("server").new_place()
    return write_server(tmp_path, place)


@pytest.fixture
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Everything after the stores were written runs as the next version."""
    with next_version(tmp_path_factory.mktemp("next") / "versions"):
        yield
