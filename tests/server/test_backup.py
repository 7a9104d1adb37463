"""Backup and restore as docs/how-to/backup.md says it: its commands are typed here, on both kinds of store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from privlearn import Ledger
from privlearn.budget import Amount, Cost
from privlearn.budget.storage import disconnect
from privlearn.cli import app
from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.server import lock_directory
from privlearn.server.access import create_key, list_keys
from privlearn.server.holder import Catalog, Owner
from privlearn.server.jobs import queue, results, run_job
from privlearn.server.store import first_head, iterate_events, open_store, settle, verify_log
from tests.support.next_version import contents, next_version
from tests.support.postgresql_cluster import Cluster
from tests.support.service_support import model_request, write_clinic

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "backup.md"
COST = Guarantee(0.25, 1e-7)


class SQLiteHolder:
    """A holder's folder in which the page's commands are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.owner = Owner.load(write_clinic(folder, **self._store()))

    def type(self, word: str) -> str:
        """Run the block of the page in which a word occurs; what it printed."""
        blocks = re.findall(
            r"^ *```sh\n(.*?)^ *```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
        (block,) = [textwrap.dedent(block) for block in blocks if word in block]
        done = subprocess.run(
            ["bash", "-euc", self._here(block)],
            cwd=self.folder,
            env=os.environ | self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def back_up(self) -> None:
        self.type("backup(")

    def restore(self) -> None:
        Path(self.owner.server.store).unlink()
        self.type("cp backup.db")

    def _store(self) -> dict[str, Any]:
        return {}

    def _here(self, block: str) -> str:
        return block

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


class PostgreSQLHolder(SQLiteHolder):
    """The same with a database of its own, owned by a role of the same name."""

    def __init__(self, folder: Path, server: Cluster) -> None:
        self._server = server
        self._name = f"holder_{uuid4().hex[:8]}"
        server.execute(f"CREATE ROLE {self._name} LOGIN", f"CREATE DATABASE {self._name} OWNER {self._name}")
        super().__init__(folder)

    def back_up(self) -> None:
        self.type("pg_dump")

    def restore(self) -> None:
        disconnect()
        self._server.execute(f"DROP DATABASE {self._name} WITH (FORCE)")
        self.type("pg_restore")

    def _store(self) -> dict[str, Any]:
        return {"store": self._server.address(self._name, self._name)}

    def _here(self, block: str) -> str:
        typed = block.replace("postgresql://privlearn@db.example/privlearn", self._store()["store"])
        return typed.replace("createdb -O privlearn privlearn", f"createdb -O {self._name} {self._name}")

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {"PGHOST": str(self._server.folder), "PGUSER": "postgres"}


@pytest.fixture(params=["sqlite", "postgresql"])
def holder(request: pytest.FixtureRequest, tmp_path: Path) -> SQLiteHolder:
    if request.param == "sqlite":
        return SQLiteHolder(tmp_path)
    return PostgreSQLHolder(tmp_path, request.getfixturevalue("server"))


class Running:
    """A holder's store, its trainings done in this process."""

    def __init__(self, holder: SQLiteHolder) -> None:
        self.store = open_store(holder.owner)
        self._catalog = Catalog(holder.owner)
        self.ledger = Ledger.open(self.store, "clinic")

    def ask(self, kind: Any, mechanism: Any = "model") -> str:
        learner = "logistic" if mechanism == "model" else "kernel"
        request = model_request("clinic", kind, learner, COST.epsilon, COST.delta, mechanism)
        return queue.submit(self.store, "alice", request, COST, "").id

    def train(self) -> None:
        while (job := queue.claim(self.store)) is not None:
            assert run_job(self.store, self._catalog, job) == ""


def test_an_old_backup_gives_nothing_a_second_time(holder: SQLiteHolder) -> None:
    before = Running(holder)
    create_key(before.store, "analyst", "alice")
    released, model, noisy = (
        before.ask("release"),
        before.ask("session"),
        before.ask("session", "function_release"),
    )
    before.train()
    file = results.content_of(before.store, released)
    under_way = before.ask("release")
    holder.back_up()
    before.train()  # what the backup does not know: this release is out
    results.content_of(before.store, under_way)

    holder.restore()
    assert "spent" in holder.type("privlearn restored owner.toml\n")
    after = Running(holder)
    assert queue.find(after.store, under_way).state == "failed"
    assert after.ledger.statement().left.epsilon == 0
    with pytest.raises(BudgetExceeded):
        after.ledger.reserve(Cost(Guarantee(1e-6)), "more")
    assert results.content_of(after.store, released) == file
    assert results.find(after.store, None, model).state == "open"
    assert results.find(after.store, None, noisy).state == "closed"
    assert not any(key.is_valid for key in list_keys(after.store))


def test_a_backup_of_an_older_version_is_restored_and_upgraded(holder: SQLiteHolder, tmp_path: Path) -> None:
    running = Running(holder)
    store, released = running.store, running.ask("release")
    running.ask("session", "function_release")
    running.train()
    file = results.content_of(store, released)
    holder.back_up()
    before = contents(store)
    holder.restore()
    typed = [str(holder.folder / "owner.toml")]
    with next_version(tmp_path / "versions"):
        assert "privlearn upgrade" in str(CliRunner().invoke(app, ["restored", *typed]).exception)
        assert "has become" in CliRunner().invoke(app, ["upgrade", *typed]).output
        assert contents(store) == before
        assert "as spent" in CliRunner().invoke(app, ["restored", *typed]).output
        assert results.content_of(store, released) == file
        assert Ledger.open(store, "clinic").check() > len(before["entries"])
        verify_log(first_head(store), iterate_events(store))


def test_what_is_known_to_be_lost_is_spent_and_no_more(holder: SQLiteHolder) -> None:
    store = Running(holder)
    spent = settle(store.store, {"clinic": Amount(0.5, 1e-6)})
    assert spent == {"clinic": Guarantee(0.5, 1e-6)}
    assert store.ledger.statement().left == Amount(3.5, 9e-6)
    assert settle(store.store, {"clinic": Amount(0.0, 0.0)}) == {}
    with pytest.raises(InvalidParameter, match="no data set 'census'"):
        settle(store.store, {"census": Amount(0.5, 0.0)})


def test_a_renyi_budget_is_spent_whole(tmp_path: Path) -> None:
    holder = SQLiteHolder(tmp_path)
    text = (tmp_path / "owner.toml").read_text()
    (tmp_path / "owner.toml").write_text(
        text.replace("delta = 1e-5\ntraining", 'delta = 1e-5\ncomposition = "renyi"\ntraining')
    )
    holder.owner = Owner.load(tmp_path / "owner.toml")
    renyi = Running(holder)
    assert "clinic" in settle(renyi.store, {})
    with pytest.raises(BudgetExceeded):
        renyi.ledger.reserve(Cost(Guarantee(1e-3)), "more")


def test_not_while_a_server_runs(tmp_path: Path) -> None:
    holder = SQLiteHolder(tmp_path)
    open_store(holder.owner)
    with (
        lock_directory(holder.owner.server.directory),
        pytest.raises(AssertionError, match="another server or upgrade runs"),
    ):
        holder.type("privlearn restored owner.toml\n")
