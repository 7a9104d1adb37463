"""Everything that can be read from a ledger, a server's store and release files, as plain JSON values.

`tools/make_version_fixtures.py` writes these facts beside the files of a version; the tests of later versions read
the same files and find the same facts.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from privlearn.data import Schema, read_table
from privlearn.estimators import KernelLearner
from privlearn.guarantee import Guarantee
from privlearn.ledger import Ledger
from privlearn.release import RegressionModel, Release, verify
from privlearn.release.verification import verify_bytes
from privlearn.service.access.keys import list_keys
from privlearn.service.holder.catalogs import Catalogs
from privlearn.service.holder.settings import Owner
from privlearn.service.jobs import queue, results
from privlearn.service.jobs.answering import OpenSessions
from privlearn.service.store import events
from privlearn.sessions import InteractivePredictor

ASKED = 5
"""So many rows of the table are asked of every open session."""

_OF_TRAININGS = ("learner", "mechanism", "state")
"""Fields of version 0.1 that are computed now."""
SESSION_PROMISE = Guarantee(1.0, 1e-6)


def facts_of_ledger(store: str) -> dict[str, Any]:
    """Every statement, with all entries."""
    return plain({name: Ledger.open(store, name).statement() for name in Ledger.datasets(store)})


def facts_of_server(owner: Owner) -> dict[str, Any]:
    """Budgets, keys, jobs, log, results, and what open sessions answer."""
    store = owner.server.store
    found = {
        "budgets": facts_of_ledger(store),
        "keys": sorted(map(_key, list_keys(store)), key=lambda key: str(key["key_id"])),
        "jobs": queue.find_all(store, None),
        "events": events.events(store),
        "releases": [_release(store, info.id) for info in results.find_all(store, None, "release")],
        "sessions": [_session(owner, session) for session in results.find_all(store, None, "session")],
    }
    return dict(plain(found))


def facts_of_release(path: Path, rows: dict[str, list[Any]]) -> dict[str, Any]:
    """What the file promises and predicts."""
    proven, model = verify(path), Release.load(path).model
    facts = {
        "claimed": proven.claimed,
        "is_private": proven.is_private,
        "signed": proven.signer is not None,
        "predictions": np.asarray(model.predict(rows)).tolist(),
        "scores": None if isinstance(model, RegressionModel) else model.decision_function(rows).tolist(),
    }
    return dict(plain(facts))


def facts_of_certificate(path: Path) -> dict[str, Any]:
    proven = verify(path)
    return dict(plain({"claimed": proven.claimed, "is_private": proven.is_private}))


def session_learner(folder: Path) -> KernelLearner:
    """What the state files of sessions belong to."""
    schema = Schema.load(folder / "clinic.schema.yaml")
    learner = KernelLearner(kernel="rbf", gamma=0.5, schema=schema, guarantee=SESSION_PROMISE)
    return learner.read(read_table(folder / "clinic.csv", schema))


def facts_of_session(state: Path, folder: Path) -> dict[str, Any]:
    """What a session on the trusted side answers at the first rows of its table."""
    session = InteractivePredictor.reopen(state, session_learner(folder))
    schema = Schema.load(folder / "clinic.schema.yaml")
    answers = session.decide(read_table(folder / "clinic.csv", schema).slice(0, ASKED))
    session.close()
    return dict(plain({"scores": answers.scores.tolist(), "sources": answers.sources.tolist()}))


def holder(source: Path, folder: Path, ledger: str | None = None) -> Owner:
    """A holder's folder of its own, with table, schema and owner.toml as in the source."""
    for name in ("clinic.csv", "clinic.schema.yaml"):
        shutil.copy(source / name, folder)
    server = "[server]" if ledger is None else f'[server]\nledger = "{ledger}"'
    settings = (source / "owner.toml").read_text(encoding="utf-8")
    (folder / "owner.toml").write_text(settings.replace("[server]", server))
    return Owner.load(folder / "owner.toml")


def plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value, default=_as_dict))


def _as_dict(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in (*names, *_OF_TRAININGS) if hasattr(value, name)}
    raise TypeError(f"{type(value).__name__} is no plain value")


def _key(info: Any) -> dict[str, Any]:
    caller = info.caller
    datasets = None if caller.datasets is None else sorted(caller.datasets)
    return {
        "key_id": caller.key_id, "role": caller.role, "analyst": caller.analyst, "datasets": datasets,
        "created": info.created, "expires": info.expires, "revoked": info.revoked,
    }  # fmt: skip


def _release(store: str, release_id: str) -> dict[str, Any]:
    content = results.content_of(store, release_id)
    return {
        "info": results.find(store, None, release_id),
        "sha256": sha256(content).hexdigest(),
        "claimed": verify_bytes(content).claimed,
    }


def _session(owner: Owner, session: Any) -> dict[str, Any]:
    if session.state == "closed":
        return {"session": session, "answers": None}
    catalogs = Catalogs(owner, {})
    rows = catalogs.now.named(session.dataset).read_rows().drop_columns(["outcome"]).slice(0, ASKED)
    answers = OpenSessions(owner.server.store, catalogs).predict(session, rows)
    return {
        "session": session,
        "answers": {"scores": answers.scores.tolist(), "sources": answers.sources.tolist()},
    }
