"""Nobody changes the tables of a server that runs, and none runs on tables of another version."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from privlearn import Ledger
from privlearn.budget.storage import SERVICE, Presence, without_servers
from privlearn.cli import app
from privlearn.errors import LedgerError, StoreUnusable
from privlearn.guarantee import Guarantee
from privlearn.server.store import open_store
from tests.support.next_version import next_version, write_server
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import execute
from tests.support.service_support import load_clinic


@pytest.fixture
def place(server: Cluster, tmp_path: Path) -> str:
    return open_store(load_clinic(tmp_path, store=server.new_place()))


def test_several_may_run_and_all_have_to_stop(place: str) -> None:
    servers = [Presence(place), Presence(place)]
    for each in servers:
        assert each.keep() == ""
        assert each.keep() == ""
    for each in servers:
        with pytest.raises(LedgerError, match="Stop every server"), without_servers(place):
            pass
        each.end()
    with without_servers(place):
        assert "being upgraded" in servers[0].keep()
    assert servers[0].keep() == ""


@pytest.mark.parametrize("version", [SERVICE.newest, SERVICE.newest + 1])
def test_a_lost_connection_is_noticed_and_what_happened_meanwhile(
    server: Cluster, place: str, version: int
) -> None:
    presence = Presence(place)
    presence.keep()
    role = place.removeprefix("postgresql://").partition("@")[0]
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'")
    if version > SERVICE.newest:
        execute(place, f"INSERT INTO service_format VALUES ({version})")
    assert ("another version" in presence.keep()) == (version > SERVICE.newest)
    with pytest.raises(LedgerError, match="servers or another upgrade run on"), without_servers(place):
        pass


def test_a_format_that_could_not_be_read_is_looked_at_again(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(place, f"INSERT INTO service_format VALUES ({SERVICE.newest + 1})")
    presence = Presence(place)
    with monkeypatch.context() as broken:
        broken.setattr("privlearn.budget.storage.presence.reading", _unusable)
        with pytest.raises(StoreUnusable):
            presence.keep()
    for _ in range(2):
        assert "another version" in presence.keep()
    presence.end()


def test_without_tables_nothing_is_held(server: Cluster) -> None:
    store = server.new_place()
    Ledger.create(store, "clinic", Guarantee(1.0))
    presence = Presence(store)
    for _ in range(2):
        assert "another version" in presence.keep()
    assert not presence._is_held()


def _unusable(store: str) -> NoReturn:
    raise StoreUnusable("not now")


def test_a_ledger_without_a_server_is_free(server: Cluster) -> None:
    store = server.new_place()
    Ledger.create(store, "clinic", Guarantee(1.0))
    with without_servers(store):
        pass


def test_an_upgrade_waits_for_no_server_and_goes_round_none(server: Cluster, tmp_path: Path) -> None:
    """Nor does what makes a restored backup safe."""
    owner = write_server(tmp_path, server.new_place())
    presence = Presence(owner.server.store)
    presence.keep()
    with next_version(tmp_path / "versions"):
        for words in (["upgrade", owner.server.store], ["upgrade", "owner.toml"], ["restored", "owner.toml"]):
            words = [str(tmp_path / word) if word.endswith("toml") else word for word in words]
            refused = CliRunner().invoke(app, words)
            assert isinstance(refused.exception, LedgerError)
            assert "servers or another upgrade run on" in str(refused.exception)
        presence.end()
        assert "has become" in CliRunner().invoke(app, ["upgrade", owner.server.store]).output
