"""The client and `privlearn ask` against a real server: the same verbs, the same errors, the key nowhere."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privlearn.cli import main
from privlearn.client import Client, RemoteSession, Unreachable
from privlearn.data import read_table, write_table
from privlearn.errors import BudgetExceeded, DataError, InvalidParameter, PrivlearnError
from privlearn.release import SessionCertificate, verify
from privlearn.server import AccessRefused, Conflict, Forbidden, NotFound
from privlearn.server.access import create_key
from tests.support.real_server import Clinic

PROMISE: dict[str, Any] = {"epsilon": 0.01, "delta": 1e-9}
Ask = Callable[..., str]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Clinic, str]]:
    made = Clinic(tmp_path_factory.mktemp("clinic"))
    with made.servers() as [server]:
        yield made, server.url


@pytest.fixture(scope="module")
def client(clinic: tuple[Clinic, str]) -> Iterator[Client]:
    made, url = clinic
    with Client(url, made.key) as connected:
        yield connected


@pytest.fixture(scope="module")
def session(client: Client) -> RemoteSession:
    return client.open_session("clinic", **PROMISE)


@pytest.fixture
def ask(
    clinic: tuple[Clinic, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ask:
    made, url = clinic
    monkeypatch.setenv("PRIVLEARN_KEY", made.key)
    monkeypatch.setenv("PRIVLEARN_SERVER", url)

    def run(*typed: object, code: int = 0) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["ask", *map(str, typed)])
        told = capsys.readouterr()
        assert int(ended.value.code or 0) == code, told.err
        assert made.key not in told.out + told.err
        return told.out if code == 0 else told.err

    return run


def points(count: int = 4) -> pa.Table:
    rng = np.random.default_rng(0)
    ages, doses = rng.uniform(0, 120, count), rng.uniform(0, 10, count)
    return pa.table({"age": ages, "dose": doses, "sex": ["male", "female"] * (count // 2)})


def test_what_there_is(client: Client) -> None:
    assert client.me()["analyst"] == "alice"
    assert [found["name"] for found in client.datasets()] == ["clinic"]
    assert client.dataset("clinic")["schema"]["target"]["classes"] == ["healthy", "ill"]
    assert client.budget("clinic")["total"] == {"epsilon": 4.0, "delta": 1e-5, "neighbours": "replace_one"}
    assert client.estimate("clinic", epsilon=1.0, delta=1e-6)["verdict"] in ("clear", "noisy", "drowned")
    assert client.synthetic("clinic", 7, seed=1).num_rows == 7


def test_a_release_is_verified_and_costs_what_it_says(client: Client) -> None:
    before, stages = client.budget("clinic")["spent"]["epsilon"], list[str]()
    release = client.release(
        "clinic", learner="kernel", public_points=points(), progress=stages.append, **PROMISE
    )
    assert release.certificate.guarantee.epsilon == PROMISE["epsilon"]
    assert len(release.model.predict(points())) == 4
    assert client.budget("clinic")["spent"]["epsilon"] == pytest.approx(before + PROMISE["epsilon"])
    assert stages
    assert set(stages) <= {"waiting", "training"}
    newest = client.releases()[0]
    assert client.download(newest["id"]).to_bytes() == release.to_bytes()


def test_a_trial_costs_nothing(client: Client) -> None:
    before = client.budget("clinic")
    client.release("clinic", trial=True, **PROMISE)
    assert client.open_session("clinic", trial=True, **PROMISE).record["trial"]
    assert client.budget("clinic")["spent"] == before["spent"]


def test_the_same_key_is_the_same_result_paid_once(client: Client) -> None:
    before = client.budget("clinic")["spent"]["epsilon"]
    made = [client.train("clinic", "release", idempotency_key="once", **PROMISE) for _ in range(2)]
    assert made[0] == made[1]
    assert client.budget("clinic")["spent"]["epsilon"] == pytest.approx(before + PROMISE["epsilon"])
    with pytest.raises(Conflict, match="a different request"):
        client.train("clinic", "release", epsilon=0.02, idempotency_key="once")


@pytest.mark.parametrize(
    "given",
    [lambda t: t, pa.Table.to_pandas, pl.from_arrow, pa.Table.to_pydict, pa.Table.to_pylist],
    ids=["pyarrow", "pandas", "polars", "dict", "list"],
)
def test_every_kind_of_table_gets_the_same_answers(
    session: RemoteSession, given: Callable[[pa.Table], object]
) -> None:
    answers = session.predict(given(points()))
    assert answers.tolist() == session.predict(points()).tolist()
    assert set(answers) <= {"healthy", "ill"}


def test_one_point_gets_one_answer(session: RemoteSession) -> None:
    row = points().to_pylist()[1]
    assert session.predict(row) == session.predict(points())[1]
    assert session.predict(pd.Series(row).to_dict()) == session.predict(row)


def test_more_rows_than_allowed_go_in_pieces(session: RemoteSession) -> None:
    many = points(23_000)
    answers = session.decide(many)
    assert answers.num_rows == 23_000
    later = session.decide(many.slice(22_000, 5))["score"]
    assert answers["score"].slice(22_000, 5).to_pylist() == pytest.approx(
        later.to_pylist()
    )  # but for rounding


def test_a_session_is_found_again_and_ends_with_its_block(client: Client) -> None:
    with client.open_session("clinic", learner="kernel", mechanism="function_release", **PROMISE) as opened:
        assert isinstance(opened.certificate, SessionCertificate)
        first = opened.decide(points())
        assert client.session(opened.id).decide(points()).equals(first)
        assert opened.id in {found["id"] for found in client.sessions()}
    with pytest.raises(Conflict, match="closed"):
        opened.predict(points())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: c.release("clinic", epsilon=10.0), BudgetExceeded),
        (lambda c: c.release("clinic", learner="nothing", **PROMISE), PrivlearnError),
        (lambda c: c.release("clinic", epsilon=-1.0), InvalidParameter),
        (lambda c: c.dataset("../me"), NotFound),
        (lambda c: c.budget("unknown"), NotFound),
        (lambda c: c.download("0" * 16), NotFound),
        (lambda c: c.events(), Forbidden),
        (lambda c: c.open_session("clinic", mechanism="magic", **PROMISE), InvalidParameter),
        (lambda c: c.release("clinic", learner="kernel", public_points={"age": [1.0]}, **PROMISE), DataError),
    ],
    ids=["budget", "learner", "epsilon", "path", "dataset", "release", "events", "mechanism", "points"],
)
def test_refusals_are_the_house_s_own_errors(
    client: Client, call: Callable[[Client], object], error: type[PrivlearnError]
) -> None:
    before = client.budget("clinic")["spent"]
    with pytest.raises(error):
        call(client)
    assert client.budget("clinic")["spent"] == before


def test_rows_that_do_not_fit_name_the_column(session: RemoteSession) -> None:
    with pytest.raises(DataError, match="dose"):
        session.predict({"age": [1.0], "sex": ["male"]})


def test_the_holder_sees_the_log(clinic: tuple[Clinic, str]) -> None:
    made, url = clinic
    with Client(url, create_key(made.store, "holder")) as holder:
        assert {event["actor"] for event in holder.events(limit=5)} <= {"alice", "holder"}
        oldest = holder.events(limit=3)[-1]["id"]
        assert all(event["id"] < oldest for event in holder.events(before=oldest))


def test_the_key_is_nowhere(clinic: tuple[Clinic, str], client: Client) -> None:
    made, url = clinic
    secret = made.key[-16:-4]  # of both keys; a secret may hold an underscore
    wrong = Client(url, made.key[:-4] + "AAAA")
    for each in (client, wrong, client._connection):
        assert secret not in repr(each)
        with pytest.raises(InvalidParameter, match="pickled"):
            pickle.dumps(each)
    with wrong, pytest.raises(AccessRefused) as refused:
        wrong.me()
    with Client("http://127.0.0.1:9", made.key, timeout=0.1) as nobody, pytest.raises(Unreachable) as gone:
        nobody.me()
    assert "--server or PRIVLEARN_SERVER" in str(gone.value)
    for caught in (refused, gone):
        assert secret not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None


def test_asking_from_the_shell(ask: Ask, tmp_path: Path) -> None:
    assert "clinic" in ask("datasets")
    assert "classes" in ask("dataset", "clinic")
    assert "your share: total epsilon 4" in ask("budget", "clinic")
    assert "verdict:" in ask("estimate", "clinic", "--epsilon", 1, "--delta", 1e-6)
    ask("synthetic", "clinic", "--rows", 6, "--out", tmp_path / "made-up.csv")
    assert read_table(tmp_path / "made-up.csv").num_rows == 6
    assert "events" not in ask("jobs")


def test_a_release_from_the_shell(ask: Ask, tmp_path: Path) -> None:
    write_table(points(), tmp_path / "points.csv")
    out = tmp_path / "model.privlearn"
    ask(
        "release",
        "clinic",
        "--epsilon",
        0.01,
        "--learner",
        "kernel",
        "--points",
        tmp_path / "points.csv",
        "--out",
        out,
    )
    assert verify(out).is_private
    assert "exists" in ask("release", "clinic", "--epsilon", 0.01, "--out", out, code=2)
    newest = json.loads(ask("--json", "releases"))[0]["id"]
    ask("download", newest, "--out", tmp_path / "again.privlearn")
    assert (tmp_path / "again.privlearn").read_bytes() == out.read_bytes()


def test_a_session_from_the_shell(ask: Ask, tmp_path: Path) -> None:
    write_table(points(), tmp_path / "new.csv")
    opened = ask("session", "clinic", "--epsilon", 0.01, "--delta", 1e-9).split()[1]
    assert ask("predict", opened, tmp_path / "new.csv").splitlines()[0] == '"prediction"'
    ask("predict", opened, tmp_path / "new.csv", "--scores", "--out", tmp_path / "answers.csv")
    chances = ["probability_healthy", "probability_ill"]
    assert read_table(tmp_path / "answers.csv").column_names == ["prediction", "score", *chances, "source"]
    ask("certificate", opened, "--out", tmp_path / "session.json")
    assert json.loads((tmp_path / "session.json").read_text())["claim"]
    assert opened in ask("sessions")
    assert "closed" in ask("close", opened)
    assert "closed" in ask("predict", opened, tmp_path / "new.csv", code=1)


def test_the_key_file(
    ask: Ask, clinic: tuple[Clinic, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PRIVLEARN_KEY")
    assert "key is missing" in ask("datasets", code=2)
    file = tmp_path / "key"
    file.write_text(clinic[0].key + "\n")
    file.chmod(0o644)
    assert "chmod 600" in ask("--key-file", file, "datasets", code=2)
    file.chmod(0o600)
    assert "clinic" in ask("--key-file", file, "datasets")
    assert "cannot read" in ask("--key-file", tmp_path / "none", "datasets", code=2)


class LossyLine:
    """Passes everything on to the server; the first connections break when their first answer comes."""

    def __init__(self, url: str, losses: int) -> None:
        self._port = urlsplit(url).port
        self._losses = losses
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pool = ThreadPoolExecutor()
        self._pool.submit(self._accept)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> LossyLine:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._pool.shutdown()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, server = (
                    self._listener.accept()[0],
                    socket.create_connection(("127.0.0.1", self._port)),
                )
                self._pool.submit(_pump, caller, server, False)
                self._pool.submit(_pump, server, caller, self._losses > 0)
                self._losses -= 1


def _pump(source: socket.socket, target: socket.socket, loses: bool) -> None:
    """Until one side ends: then both do."""
    with source, suppress(OSError):
        while (content := source.recv(1 << 16)) and not loses:
            target.sendall(content)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def test_a_lost_answer_is_asked_for_again_and_paid_once(clinic: tuple[Clinic, str], client: Client) -> None:
    made, url = clinic
    before = client.budget("clinic")["spent"]["epsilon"]
    with LossyLine(url, 2) as line, Client(line.url, made.key) as far:
        assert far.release("clinic", **PROMISE).certificate.guarantee.epsilon == PROMISE["epsilon"]
    assert client.budget("clinic")["spent"]["epsilon"] == pytest.approx(before + PROMISE["epsilon"])
    opened = client.open_session("clinic", trial=True, **PROMISE)
    with LossyLine(url, 1) as line, Client(line.url, made.key) as far:
        far.session(opened.id).close()
    opened.close()
    assert client.session(opened.id).record["state"] == "closed"


def test_the_client_needs_neither_fastapi_nor_uvicorn() -> None:
    script = (
        "import sys\n"
        "for name in ('fastapi', 'uvicorn', 'starlette', 'jinja2', 'prometheus_client'): sys.modules[name] = None\n"
        "import privlearn.client, privlearn.cli.ask\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
