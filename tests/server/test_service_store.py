"""The store: made once, checked at every start, the same on both databases."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from privlearn.server.holder import Owner
from privlearn.server.store import events, open_store
from tests.support.raw_store import Refused, execute, is_file
from tests.support.service_support import load_clinic, write_clinic


@pytest.fixture
def owner(tmp_path: Path, store: str) -> Owner:
    return load_clinic(tmp_path, store=store)


def test_budgets_and_tables_are_made_once(owner: Owner) -> None:
    store = open_store(owner)
    ledger = Ledger.open(store, "clinic")
    assert ledger.statement().total == Guarantee(4.0, 1e-5)
    ledger.reserve(Cost(Guarantee(1.0)), "a test").commit()
    events.record(store, "holder", "tested")
    assert open_store(owner) == store
    assert ledger.statement().spent.epsilon == 1.0
    assert [event.action for event in events.events(store)] == ["tested"]


def test_nobody_else_may_read_what_is_kept(tmp_path: Path) -> None:
    store = Path(open_store(load_clinic(tmp_path)))
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(store.stat().st_mode) == 0o600


@pytest.mark.parametrize("changed", ["epsilon = 5.0", 'neighbours = "zero_out"\nepsilon = 4.0'])
def test_a_budget_cannot_be_changed(tmp_path: Path, changed: str) -> None:
    path = write_clinic(tmp_path)
    open_store(Owner.load(path))
    path.write_text(path.read_text().replace("epsilon = 4.0", changed, 1))
    with pytest.raises(LedgerError, match=r"datasets\.clinic: the ledger has \(epsilon = 4, delta = 1e-05\)"):
        open_store(Owner.load(path))


def test_another_composition_is_another_budget(tmp_path: Path) -> None:
    path = write_clinic(tmp_path)
    open_store(Owner.load(path))
    path.write_text(path.read_text().replace("epsilon = 4.0", 'epsilon = 4.0\ncomposition = "renyi"', 1))
    with pytest.raises(LedgerError, match="basic composition"):
        open_store(Owner.load(path))


def test_servers_that_start_at_once_agree(owner: Owner) -> None:
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: open_store(owner), range(4)))
    assert len(set(stores)) == 1
    assert Ledger.datasets(stores[0]) == ["clinic"]


def test_a_store_of_another_version_is_refused(owner: Owner) -> None:
    store = open_store(owner)
    execute(store, "INSERT INTO service_format VALUES (99)")
    with pytest.raises(LedgerError, match="service format 99"):
        open_store(owner)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"server\.directory: cannot create"):
        open_store(load_clinic(tmp_path, server='directory = "file/state"'))


def test_the_log_can_only_grow(owner: Owner) -> None:
    store = open_store(owner)
    events.record(store, "holder", "created a key", key="0123")
    statements = ["UPDATE events SET actor = 'nobody'", "DELETE FROM events"]
    if is_file(store):
        statements.append("REPLACE INTO events VALUES (1, '', 'nobody', '', '', '{}', '')")
    for statement in statements:
        with pytest.raises(Refused):
            execute(store, statement)
    (event,) = events.events(store)
    assert (event.actor, event.action, event.details) == ("holder", "created a key", {"key": "0123"})


def test_the_log_is_read_backwards_in_pieces(owner: Owner) -> None:
    store = open_store(owner)
    for number in range(5):
        events.record(store, "alice", "asked", "clinic", number=number)
    first = events.events(store, limit=2)
    rest = events.events(store, limit=10, before=first[-1].id)
    assert [event.details["number"] for event in (*first, *rest)] == [4, 3, 2, 1, 0]
    assert {event.dataset for event in first} == {"clinic"}
    assert json.dumps([event.details for event in rest])
