"""Files that version 0.1 wrote, put where a test can work on them. `tools/make_version_fixtures.py` made them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from privlearn.service.holder.settings import Owner
from tests.support.postgresql_cluster import Cluster
from tests.support.stored_facts import holder

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version_0_1"
EXPECTED: dict[str, Any] = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))


def unpack(name: str, target: Path) -> Path:
    """A file of the fixtures, uncompressed."""
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.decompress((FIXTURES / f"{name}.gz").read_bytes()))
    return target


def old_sqlite_server(folder: Path) -> Owner:
    """A holder's folder with the store that its server wrote."""
    owner = holder(FIXTURES, folder)
    unpack("server.db", Path(owner.server.store))
    return owner


def old_postgresql_server(folder: Path, server: Cluster) -> Owner:
    """The same with a database of its own."""
    name = f"holder_{uuid4().hex}"
    server.execute(f"CREATE ROLE {name} LOGIN", f"CREATE DATABASE {name} OWNER {name}")
    address = server.address(name, name)
    with psycopg.connect(server.address(name, "postgres")) as administrator:
        administrator.execute(f"ALTER SCHEMA public OWNER TO {name}")
    with psycopg.connect(address) as connection:
        connection.execute(gzip.decompress((FIXTURES / "server.sql.gz").read_bytes()))
    return holder(FIXTURES, folder, address)


def same(found: Any, expected: Any) -> bool:
    """Everything that was known of old is there, and equal; scores up to the rounding of another processor."""
    if isinstance(expected, dict):
        return all(name in found and same(found[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, rel=1e-9, abs=1e-12))
    return bool(found == expected)
