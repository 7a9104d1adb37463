"""For those who run a server: who watches it, what its logs hold, and what systemd hears."""

from __future__ import annotations

import io
import json
import logging
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from privlearn.errors import InvalidParameter
from privlearn.server import AccessRefused
from privlearn.server import server as systemd
from privlearn.server.access import authenticate, create_key, keys
from privlearn.server.access.logins import sign_in, sign_in_person, sign_out
from privlearn.server.holder import SignIn
from privlearn.server.http import QueuedLines
from privlearn.server.jobs import workers
from privlearn.server.store import open_store
from privlearn.server.store.events import events
from privlearn.server.store.log_file import escape_formula
from tests.support.doc_pages import ROOT
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic
from tests.support.waiting import until

RULES = SignIn()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("clinic")), training=False) as running:
        yield running


@pytest.fixture
def monitor(served: Served) -> Iterator[httpx2.Client]:
    bearer = {"Authorization": f"Bearer {create_key(served.store, 'monitor')}"}
    with httpx2.Client(base_url=served.url, headers=bearer, trust_env=False) as client:
        yield client


def test_a_monitor_reads_figures_and_nothing_else(served: Served, monitor: httpx2.Client) -> None:
    monitor.get("/v1/me")  # so that a request has been counted
    figures = monitor.get("/metrics").text
    assert 'privlearn_budget_epsilon{dataset="clinic",part="left"}' in figures
    alerts = (ROOT / "deploy" / "alerts.yaml").read_text()
    assert [name for name in re.findall(r"privlearn_\w+", alerts) if name not in figures] == []
    assert served.alice.get("/metrics").status_code == 403
    job = served.alice.post("/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.5}).json()[
        "id"
    ]
    assert monitor.get("/v1/me").json()["role"] == "monitor"
    assert [monitor.get(f"/v1/{name}").json() for name in ("datasets", "jobs", "results")] == [[], [], []]
    for address in (f"/v1/jobs/{job}", "/v1/datasets/clinic", "/v1/datasets/clinic/budget"):
        assert monitor.get(address).status_code == 404
    assert monitor.get("/v1/events").status_code == 403
    assert (
        monitor.post("/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.5}).status_code
        == 404
    )


def test_a_monitors_key_opens_no_page(served: Served) -> None:
    key = create_key(served.store, "monitor")
    with pytest.raises(AccessRefused, match="monitor's key"):
        sign_in(served.store, key, RULES)
    with pytest.raises(InvalidParameter):
        create_key(served.store, "monitor", "alice")
    with pytest.raises(InvalidParameter):
        create_key(served.store, "monitor", datasets=["clinic"])


def test_signing_in_and_out_is_in_the_log(served: Served) -> None:
    key = create_key(served.store, "analyst", "alice")
    token = sign_in(served.store, key, RULES)
    sign_out(served.store, token, RULES)
    out, in_ = events(served.store, 2)
    told = {"key": key.split("_")[1]}
    assert [(e.actor, e.action, e.details) for e in (in_, out)] == [
        ("alice", "signed in", told),
        ("alice", "signed out", told),
    ]
    assert token not in json.dumps([e.details for e in events(served.store, 100)])


def test_so_is_who_came_from_the_provider(served: Served) -> None:
    sign_out(served.store, sign_in_person(served.store, "holder", "carol", RULES), RULES)
    out, in_ = events(served.store, 2)
    assert [(e.actor, e.action, e.details) for e in (in_, out)] == [
        ("holder", "signed in", {"person": "carol"}),
        ("holder", "signed out", {"person": "carol"}),
    ]


def test_unknown_ids_take_as_long_as_known_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ask the database once, also while the key's owner is busy: the time tells nobody which ids there are."""
    store = open_store(load_clinic(tmp_path))
    key = create_key(store, "analyst", "alice")
    asked: list[str] = []
    look_up = keys._look_up

    def counted(place: str, key_id: str) -> Any:
        asked.append(key_id)
        return look_up(place, key_id)

    monkeypatch.setattr(keys, "_look_up", counted)
    for _ in range(3):
        authenticate(store, key)
    known, unknown = key.split("_")[1], "0" * 16
    assert asked == [known]  # whoever shows the right key is remembered
    for wrong in (known, unknown) * 2:
        with pytest.raises(AccessRefused):
            authenticate(store, f"pl_{wrong}_{'a' * 43}")
    assert asked[1:] == [known, unknown] * 2


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_health_can_be_asked_by_head(served: Served, address: str) -> None:
    answer = httpx2.head(served.url + address, trust_env=False)
    assert (answer.status_code, answer.content) == (200, b"")


ADDRESSES = ["/jobs/%00", "/desk/%00", "/releases/%00", "/sessions/%00", "/console/%00", "/log?before=%00",
             "/v1/jobs/%00", "/v1/datasets/%00", f"/desk/clinic?before={'x' * 500}"]  # fmt: skip


@pytest.mark.parametrize("who", ["alice", "holder"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_odd_addresses_are_no_defects(served: Served, who: str, address: str) -> None:
    with browser(served, who) as visitor:
        assert visitor.get(address).status_code < 500
        assert visitor.get(address, headers=getattr(served, who).headers).status_code < 500


@contextmanager
def browser(served: Served, who: str) -> Iterator[httpx2.Client]:
    key = getattr(served, who).headers["Authorization"].split()[1]
    own = {"Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=served.url, trust_env=False, headers=own) as client:
        assert client.post("/sign-in", data={"key": key}).status_code == 303
        yield client


FORM = {"face": "release", "learner": "logistic", "epsilon": "0.1", "delta": "0", "act": "try"}


@pytest.mark.parametrize(
    "once", ["x" * 5000, "\0", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), ""]
)
def test_a_form_made_elsewhere_is_refused(served: Served, once: str) -> None:
    with browser(served, "alice") as visitor:
        assert 400 <= visitor.post("/desk/clinic/train", data=FORM | {"once": once}).status_code < 500


@pytest.mark.parametrize("parts", ["files", "fields"])
@pytest.mark.parametrize("address", ["/desk/clinic/train", "/verify", "/sign-in", "/v1/jobs"])
def test_a_flood_of_parts_is_refused(served: Served, address: str, parts: str) -> None:
    files: list[tuple[str, Any]]
    if parts == "files":
        files = [(f"f{n}", (f"{n}.csv", b"x", "text/csv")) for n in range(3000)]
    else:
        files = [(f"f{n}", (None, b"x")) for n in range(3000)]
    with browser(served, "alice") as visitor:
        headers = served.alice.headers if address.startswith("/v1") else {}
        answer = visitor.post(
            address, files=files, headers={"Authorization": headers.get("Authorization", "")}
        )
        assert 400 <= answer.status_code < 500


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_is_no_formula(cell: str) -> None:
    assert escape_formula(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-5", "+1e-3", "-.5", 7, -7.25, "<=50K", "a=b", ""])
def test_other_cells_are_as_they_were(cell: object) -> None:
    assert escape_formula(cell) == cell


SCRIPT = """
import threading
from privlearn.server.http.logs import log_to_stderr
log_to_stderr()
def fail():
    raise ValueError("Xylophon in a cell")
thread = threading.Thread(target=fail)
thread.start(); thread.join()
import warnings; warnings.warn("one line", stacklevel=1)
fail()
"""


def test_what_nobody_caught_is_a_line_of_json_without_its_message() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line.get("error") for line in lines] == ["ValueError", None, "ValueError"]
    assert "in fail" in lines[0]["frames"][-1]
    assert "Xylophon" not in done.stderr


def test_lines_that_cannot_be_written_do_not_stop_the_server() -> None:
    class FullDisk(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("no space left")

    before = set(threading.enumerate())
    handler = QueuedLines(FullDisk())
    (writer,) = set(threading.enumerate()) - before
    for level in (logging.ERROR, logging.INFO):
        handler.emit(logging.makeLogRecord({"levelno": level, "msg": "one"}))
    until(lambda: not handler._waiting)  # its thread has tried to write
    assert writer.is_alive()
    handler.close()


def _fail(*_: object) -> None:
    raise ValueError("Xylophon in a cell")


def _train_with_a_defect() -> None:
    workers._train_for = _fail  # type: ignore[assignment]
    workers.train_for(None, {}, None)  # type: ignore[arg-type]


def test_a_training_process_that_fails_leaves_a_line_of_json(capfd: pytest.CaptureFixture[str]) -> None:
    process = multiprocessing.get_context("fork").Process(target=_train_with_a_defect)
    process.start()
    process.join()
    told = capfd.readouterr().err
    assert process.exitcode == 1
    assert "Xylophon" not in told
    assert json.loads(told.strip().splitlines()[-1])["error"] == "ValueError"
    logging.captureWarnings(False)


def test_systemd_hears_that_the_server_answers_and_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        listening.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        systemd.notify("READY=1")
        assert listening.recv(100) == b"READY=1"
        with serving(load_clinic(tmp_path), training=False):
            heard = [listening.recv(100) for _ in range(3)]
        assert heard == [b"WATCHDOG=1"] * 3


def test_without_systemd_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    systemd.notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", f"/nowhere/{os.getpid()}")
    systemd.notify("READY=1")
