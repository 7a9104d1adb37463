"""The audit log: a chain that a changed line breaks, files that prove it elsewhere, and old lines that may go."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from privlearn.cli import app
from privlearn.errors import VerificationError
from privlearn.server.jobs import queue
from privlearn.server.store import first_head, iterate_events, open_store, verify_log
from privlearn.server.store import log_file as retention
from privlearn.server.store.events import BEGINNING, events, record
from privlearn.server.store.log_file import Head, csv_lines, json_lines, prune, read_json_lines, watching_for
from tests.support.raw_store import Refused, execute
from tests.support.served import serving
from tests.support.service_support import load_clinic

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
OTHER = Ed25519PrivateKey.from_private_bytes(b"o" * 32)


@pytest.fixture
def place(tmp_path: Path, store: str) -> str:
    return written(open_store(load_clinic(tmp_path, store=store)))


@pytest.fixture
def file(tmp_path: Path) -> str:
    return written(open_store(load_clinic(tmp_path)))


def written(store: str) -> str:
    for number in range(6):
        record(store, f"ann{number}", "did something", "clinic", number=number, price=0.1, words="=ä\u2028")
    return store


def file_lines(store: str) -> list[str]:
    return "".join(json_lines(store)).splitlines(keepends=True)


def verified(store: str) -> Head:
    return verify_log(first_head(store), iterate_events(store))


def test_every_line_follows_the_one_before(place: str) -> None:
    newest = events(place, 1)[0]
    assert verified(place) == Head(newest.id, newest.digest)
    assert events(place)[-1].follows(BEGINNING)
    assert not events(place)[-2].follows(BEGINNING)


FORGERIES = {
    "a line changed": "UPDATE events SET actor = 'somebody else' WHERE actor = 'ann2'",
    "a detail changed": "UPDATE events SET details = replace(details, '0.1', '0.2') WHERE actor = 'ann0'",
    "a line removed": "DELETE FROM events WHERE actor = 'ann3'",
    "the first removed": "DELETE FROM events WHERE actor = 'ann0'",
    "one put in": "INSERT INTO events (time, actor, action, dataset, details, digest) "
    "SELECT time, actor, action, dataset, details, digest FROM events WHERE actor = 'ann1'",
    "two exchanged": "UPDATE events SET id = -id WHERE actor = 'ann4'",
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_whoever_owns_the_file_is_found_out(file: str, forgery: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for trigger in ("update", "delete", "insert"):
            connection.execute(f"DROP TRIGGER events_{trigger}")
        connection.execute(forgery)
    with pytest.raises(VerificationError, match="does not follow"):
        verified(file)


def test_lines_taken_from_the_end_are_missed_by_whoever_kept_the_head(file: str) -> None:
    head = verified(file)
    record(file, "bob", "did more")
    verify_log(first_head(file), watching_for(first_head(file), iterate_events(file), head.id, head.digest))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER events_delete")
        connection.execute(f"DELETE FROM events WHERE id >= {head.id}")
    verified(file)  # what is left is whole
    with pytest.raises(VerificationError, match="removed from its end"):
        verify_log(
            first_head(file), watching_for(first_head(file), iterate_events(file), head.id, head.digest)
        )


def test_a_file_is_verified_without_the_server(place: str) -> None:
    lines = file_lines(place)
    assert verify_log(*read_json_lines(lines)) == verified(place)
    changed = lines[2].replace("ann1", "ann9")
    doubled = lines[2].replace("{", '{"actor": "ann9", "details": {"number": 9}, ', 1)
    nested = lines[2].replace('"number": 1', '"number": 9, "number": 1')
    forgeries = [[*lines[:2], line, *lines[3:]] for line in (changed, doubled, nested)]
    forgeries += [[*lines[:2], *lines[3:]], ["{}"], [lines[0], "x"], [lines[0], '{"id": 1}']]
    forgeries += [[lines[0].replace('"after"', '"later"')]]
    forgeries += [
        [*lines[:2], lines[2].replace('"id": 2', f'"id": {odd}'), *lines[3:]] for odd in ('"2"', "2.5")
    ]
    for forged in forgeries:
        with pytest.raises(VerificationError):
            verify_log(*read_json_lines(forged))


def test_the_table_has_every_line_and_no_formula(file: str) -> None:
    record(file, "=cmd()", "-2+3")
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(file)))))
    assert [row["actor"] for row in rows] == [f"ann{n}" for n in range(6)] + ["'=cmd()"]
    assert rows[-1]["action"] == "'-2+3"
    assert json.loads(rows[0]["details"])["number"] == 0


def later() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


@pytest.mark.parametrize("key", [KEY, None], ids=["signed", "unsigned"])
def test_old_lines_go_and_the_chain_goes_on(place: str, key: Ed25519PrivateKey | None) -> None:
    before, copy = verified(place), file_lines(place)
    assert prune(place, later(), key) == 6
    head = first_head(place)
    assert (head.id, head.digest) == (before.id, before.digest)
    (only,) = events(place)
    assert only.action == "removed old lines of the log"
    assert only.details == {"lines": 6, "last": head.id, "digest": head.digest}
    record(place, "bob", "did more")
    verified(place)
    begin, lines = read_json_lines(file_lines(place))
    if key is not None:
        verify_log(begin, lines, KEY.public_key())
    with pytest.raises(VerificationError, match="not signed by this key"):
        verify_log(begin, lines, OTHER.public_key())
    assert verify_log(*read_json_lines(copy)).digest == head.digest  # the copy leads to what was left
    for change in ("DELETE FROM events", "UPDATE events SET actor = 'x'", "DELETE FROM log_heads"):
        with pytest.raises(Refused, match="append-only"):
            execute(place, change)


def test_nothing_is_removed_that_is_not_old(place: str) -> None:
    assert prune(place, datetime.now(UTC) - timedelta(days=1)) == 0
    assert len(events(place)) == 6
    assert first_head(place) == Head()


def test_nothing_is_removed_from_a_log_that_was_changed(file: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER events_update")
        connection.execute("UPDATE events SET actor = 'x' WHERE actor = 'ann1'")
    with pytest.raises(VerificationError):
        prune(file, later())
    assert len(events(file)) == 6


def test_a_removal_that_fails_changes_nothing(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(retention, "insert", fail)
    with pytest.raises(ZeroDivisionError):
        prune(file, later())
    assert len(events(file)) == 6
    with pytest.raises(Refused, match="append-only"):
        execute(file, "DELETE FROM events")


def test_a_forged_head_is_refused(place: str) -> None:
    head = Head(3, "ab" * 32).signed(KEY)
    head.check(KEY.public_key())
    for forged in (
        Head(4, head.digest, head.signature, head.public_key),
        Head(3, "cd" * 32, head.signature, "zz"),
    ):
        with pytest.raises(VerificationError, match="signature"):
            forged.check(None)


def test_the_end_of_a_job_and_its_line_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(load_clinic(tmp_path), training=False) as server:
        job = server.alice.post(
            "/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.5}
        ).json()["id"]
        assert queue.claim(server.store) is not None

        def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(queue, "record_with", fail)
            with pytest.raises(ZeroDivisionError):
                queue.finish(server.store, job, "it failed", "its process ended 3 times before it was done")
        assert queue.find(server.store, job).state == "running"
        queue.finish(server.store, job, "it failed", "its process ended 3 times before it was done")
        newest = events(server.store, 1)[0]
        assert (newest.actor, newest.action, newest.dataset) == ("alice", "release failed", "clinic")
        assert newest.details == {"job": job, "failure": "it failed"}
        verified(server.store)


@pytest.fixture
def owner(tmp_path: Path) -> str:
    written(open_store(load_clinic(tmp_path)))
    return str(tmp_path / "owner.toml")


def run(*typed: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in typed])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_commands(owner: str, tmp_path: Path) -> None:
    out = tmp_path / "log.jsonl"
    head = run("log", "export", owner, "--out", out).splitlines()[-1].removeprefix("head ")
    assert run("log", "verify", out).splitlines() == [f"{out} is complete.", f"head {head}"]
    run("log", "verify", owner, "--head", head)
    run("log", "export", owner, "--out", tmp_path / "log.csv")
    assert "Removed 0 lines" in run("log", "prune", owner, "--keep-days", 1)
    forged = tmp_path / "forged.jsonl"
    forged.write_text(out.read_text().replace("ann1", "ann9"))
    for typed in (["verify", forged], ["verify", owner, "--head", f"99:{'0' * 64}"], ["verify", owner, "--head", "x"],
                  ["export", owner, "--out", tmp_path / "log.txt"], ["prune", owner]):  # fmt: skip
        assert CliRunner().invoke(app, ["log", *map(str, typed)]).exit_code != 0


def test_the_holder_downloads_it(tmp_path: Path) -> None:
    with serving(load_clinic(tmp_path), training=False) as server:
        record(server.store, "ann", "did something")
        key = server.holder.headers["Authorization"].split()[1]
        own = {"Sec-Fetch-Site": "same-origin"}
        server.holder.post("/sign-in", data={"key": key}, headers=own)
        found = server.holder.get("/log.jsonl")
        assert verify_log(*read_json_lines(found.text.splitlines())) == verified(server.store)
        assert server.holder.get("/log.csv").text.startswith("id,time,actor")
        assert server.holder.get("/log.exe").status_code == 404
        assert server.alice.get("/log.jsonl").status_code in (303, 403)
