"""A session that cannot go on says so with one sentence, whatever is wrong with the rows, the file or the learner."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from privlearn.errors import SessionError
from privlearn.estimators.forecast import synthetic_table
from privlearn.server.holder import Catalog, Catalogs, Owner
from privlearn.server.jobs import Predictions, queue
from privlearn.server.jobs import running as training
from privlearn.server.jobs.results import find
from privlearn.server.jobs.sessions import OpenSessions
from privlearn.server.store import open_store
from tests.support.raw_store import execute
from tests.support.service_support import SCHEMA, load_clinic, model_request

SENTENCE = (
    "this session cannot continue, because its data or settings have changed; the reason is in the holder's log. "
    "Ask the holder to restore them, or open another session."
)
POINTS = synthetic_table(SCHEMA, 3, seed=1).drop_columns(["outcome"])


def bad_cell(folder: Path) -> None:
    table = folder / "clinic.csv"
    head, first, *rest = table.read_text().splitlines()
    table.write_text("\n".join([head, first.replace(first.split(",")[0], '"Mallory"'), *rest]))


def fewer_rows(folder: Path) -> None:
    table = folder / "clinic.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-1]))


def other_rows(folder: Path) -> None:
    table = folder / "clinic.csv"
    head, first, second, *rest = table.read_text().splitlines()
    table.write_text("\n".join([head, second, first, *rest]))


def no_table(folder: Path) -> None:
    (folder / "clinic.csv").unlink()


def other_kernel(folder: Path) -> None:
    owner = folder / "owner.toml"
    owner.write_text(owner.read_text().replace("gamma = 0.5", "gamma = 0.7"))


def no_learner(folder: Path) -> None:
    owner = folder / "owner.toml"
    owner.write_text(owner.read_text().replace("learners.kernel", "learners.another"))


@pytest.mark.parametrize(
    "change", [bad_cell, fewer_rows, other_rows, no_table, other_kernel, no_learner], ids=lambda c: c.__name__
)
def test_the_analyst_reads_one_sentence(
    tmp_path: Path, change: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    owner = load_clinic(tmp_path)
    session_id = opened(owner)
    assert len(ask(owner, session_id).predictions) == 3
    change(tmp_path)
    with caplog.at_level(logging.ERROR), pytest.raises(SessionError) as caught:
        ask(Owner.load(tmp_path / "owner.toml"), session_id)
    assert str(caught.value) == SENTENCE
    assert caught.value.__context__ is None
    assert session_id in caplog.text
    assert "Mallory" not in caplog.text


def test_a_model_that_was_damaged_is_not_the_analysts_fault(tmp_path: Path) -> None:
    owner = load_clinic(tmp_path)
    session_id = opened(owner, "logistic", "model")
    execute(owner.server.store, f"UPDATE results SET content = x'504b' WHERE id = '{session_id}'")
    with pytest.raises(SessionError) as caught:
        ask(owner, session_id)
    assert str(caught.value) == SENTENCE


def opened(owner: Owner, learner: str = "kernel", mechanism: str = "function_release") -> str:
    store = open_store(owner)
    request = model_request("clinic", "session", learner, 1.0, 1e-6, mechanism)
    job = queue.submit(store, "alice", request, owner.datasets["clinic"].guarantee, "")
    claimed = queue.claim(store)
    assert claimed is not None
    assert training.run_job(store, Catalog(owner), claimed) == ""
    return job.id


def ask(owner: Owner, session_id: str) -> Predictions:
    """Ask as a server does that has just started."""
    store = owner.server.store
    return OpenSessions(store, Catalogs(owner, {})).predict(find(store, None, session_id), POINTS)
