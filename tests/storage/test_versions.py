"""What version 0.1 wrote, this version reads: release files, certificates, sessions, ledgers and servers' stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn.service.holder.settings import Owner
from privlearn.storage.migrations import upgrade
from tests.support.old_stores import EXPECTED, FIXTURES, same, unpack
from tests.support.stored_facts import (
    facts_of_certificate,
    facts_of_ledger,
    facts_of_release,
    facts_of_server,
    facts_of_session,
)

RELEASES = sorted(EXPECTED["releases"]["files"])


@pytest.mark.parametrize("name", RELEASES)
def test_release_files_verify_and_predict_the_same(name: str) -> None:
    rows = EXPECTED["releases"]["rows"]
    found = facts_of_release(FIXTURES / f"{name}.privlearn", rows)
    assert same(found, EXPECTED["releases"]["files"][name])


def test_every_release_file_is_expected() -> None:
    assert sorted(path.stem for path in FIXTURES.glob("*.privlearn")) == RELEASES


@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_session_certificates_verify(mechanism: str) -> None:
    expected = EXPECTED["sessions"][mechanism]
    found = facts_of_certificate(FIXTURES / f"{mechanism}.json")
    assert found == {name: expected[name] for name in found}


@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_session_files_go_on_with_the_same_answers(mechanism: str, tmp_path: Path) -> None:
    state = unpack(f"session_{mechanism}.db", tmp_path / "session.db")
    expected = EXPECTED["sessions"][mechanism]
    found = facts_of_session(state, FIXTURES)
    assert found == {name: expected[name] for name in found}


def test_a_ledger_says_the_same(tmp_path: Path) -> None:
    store = str(unpack("budgets.db", tmp_path / "budgets.db"))
    assert upgrade(store) == {"ledger": (2, 6)}
    assert same(facts_of_ledger(store), EXPECTED["ledger"])


def test_a_server_knows_and_answers_the_same(old_server: Owner) -> None:
    upgrade(old_server.server.store)
    kind = "postgresql" if old_server.server.ledger else "sqlite"
    assert same(facts_of_server(old_server), EXPECTED[f"server_{kind}"])
