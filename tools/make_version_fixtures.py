"""Writes the files of the version that is installed, with everything that can be read from them.

    PYTHONPATH=tests python tools/make_version_fixtures.py tests/fixtures/version_0_1

To be run once for a version, by its own code, before a format changes; tests/storage/test_versions.py then holds every
later version to it. Needs PostgreSQL on this machine. The people are made up.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn import (
    Guarantee,
    Ledger,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Schema,
    SchemaDraft,
    discover,
)
from privlearn.data import read_table, write_table
from privlearn.ledger import Cost
from privlearn.multiparty.run.plan import MultipartyPlan
from privlearn.multiparty.run.simulation import simulate
from privlearn.planning.stand_in import synthetic_table
from privlearn.service.access.keys import create_key, list_keys, revoke_key
from privlearn.service.access.logins import sign_in
from privlearn.service.holder.catalogs import Catalogs
from privlearn.service.holder.datasets import Catalog
from privlearn.service.holder.settings import Owner
from privlearn.service.jobs import queue, results
from privlearn.service.jobs.answering import OpenSessions
from privlearn.service.jobs.requests import JobRequest
from privlearn.service.jobs.training import run_job
from privlearn.service.store import events
from privlearn.service.store.store import open_store
from privlearn.sessions import InteractivePredictor
from privlearn.storage import disconnect
from tests.support.postgresql_cluster import Cluster, cluster
from tests.support.service_support import model_request
from tests.support.stored_facts import (
    ASKED,
    SESSION_PROMISE,
    facts_of_certificate,
    facts_of_ledger,
    facts_of_release,
    facts_of_server,
    facts_of_session,
    holder,
    session_learner,
)

SCHEMA = Schema.from_dict(
    {
        "name": "clinic",
        "columns": {
            "age": {"type": "number", "lower": 0, "upper": 120},
            "dose": {"type": "number", "lower": 0, "upper": 10},
            "sex": {"type": "category", "values": ["female", "male"]},
        },
        "target": {"name": "outcome", "classes": ["healthy", "ill"]},
    }
)
THREE = {"name": "outcome", "classes": ["healthy", "ill", "recovering"]}
NUMBER = {"name": "outcome", "lower": 0, "upper": 50}
ROWS, NEW_ROWS = 300, 20
PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
GAUSSIAN = Cost(Guarantee(0.3, 1e-7), renyi=lambda order: order / 800.0)

OWNER = """\
[server]

[datasets.clinic]
table = "clinic.csv"
schema = "clinic.schema.yaml"
epsilon = 8.0
delta = 1e-5
training_seconds = 0.01

[datasets.clinic.learners.logistic]
model = "logistic"

[datasets.clinic.learners.kernel]
model = "svm"
kernel = "rbf"
gamma = 0.5

[datasets.ward]
table = "clinic.csv"
schema = "clinic.schema.yaml"
epsilon = 4.0
delta = 1e-5
composition = "renyi"
training_seconds = 0.01

[datasets.ward.learners.logistic]
model = "logistic"

[analysts.alice]
clinic = { epsilon = 8.0, delta = 1e-5 }
ward = { epsilon = 4.0, delta = 1e-5 }

[analysts.bob]
clinic = { epsilon = 2.0, delta = 2e-6 }
"""


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write_table(synthetic_table(SCHEMA, ROWS, seed=7), target / "clinic.csv")
    SCHEMA.save(target / "clinic.schema.yaml")
    (target / "owner.toml").write_text(OWNER)
    expected = {
        "releases": write_releases(target),
        "sessions": write_sessions(target),
        "ledger": write_ledger(target),
        "server_sqlite": write_sqlite_server(target),
    }
    with cluster() as server:
        expected["server_postgresql"] = write_postgresql_server(target, server)
        disconnect()
    (target / "expected.json").write_text(json.dumps(expected) + "\n")


def schema_with(target: dict[str, Any]) -> Schema:
    return Schema.from_dict(SCHEMA.to_dict() | {"target": target})


def write_releases(folder: Path) -> dict[str, Any]:
    """One of each kind, trained with secret noise, and what they predict at new rows."""
    rows = synthetic_table(SCHEMA, NEW_ROWS, seed=99).drop_columns(["outcome"]).to_pydict()
    files = {}
    for name, release in releases().items():
        path = folder / f"{name}.privlearn"
        release.save(path)
        files[name] = facts_of_release(path, rows)
    return {"rows": rows, "files": files}


def releases() -> dict[str, Any]:
    points = synthetic_table(SCHEMA, 12, seed=3).drop_columns(["outcome"])
    three = {"schema": schema_with(THREE)} | PRICE
    kernel: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5, "schema": SCHEMA} | PRICE
    logistic = PrivateLogisticRegression
    learners: dict[str, Any] = {
        "logistic": logistic(schema=SCHEMA, **PRICE),
        "zero_out": logistic(schema=SCHEMA, neighbours="zero_out", **PRICE),
        "pure_epsilon": logistic(schema=SCHEMA, epsilon=2.0),
        "output_laplace": logistic(schema=SCHEMA, epsilon=2.0, mechanism="output", noise="laplace"),
        "cms11": logistic(schema=SCHEMA, epsilon=2.0, calibration="cms11"),
        "classes": logistic(**three),
        "multinomial": logistic(loss="multinomial", **three),
        "weighted": PrivateSVC(schema=SCHEMA, class_weight={"healthy": 1.0, "ill": 2.0}, **PRICE),
        "hinge": PrivateSVC(schema=SCHEMA, loss="hinge", **PRICE),
        "regression": PrivateRegressor(schema=schema_with(NUMBER), **PRICE),
        "fourier": PrivateSVC(fourier_pairs=25, **kernel),
        "landmarks": PrivateSVC(public_points=points, **kernel),
        "function_release": PrivateSVC(public_points=points, mechanism="function_release", **kernel),
        "tddl": PrivateSVC(public_points=points, mechanism="tddl", **kernel),
        "tdil": PrivateSVC(schema=SCHEMA, mechanism="tdil", **PRICE),
        "search": PrivateGridSearch(
            logistic(schema=SCHEMA, mechanism="output"), {"regularization": [0.01, 0.1]}, **PRICE
        ),
        "search_partition": PrivateGridSearch(
            logistic(schema=SCHEMA), {"regularization": [0.01, 0.1]}, method="partition", **PRICE
        ),
        "search_stopping": PrivateGridSearch(
            logistic(schema=SCHEMA, mechanism="output"), {"regularization": [0.01, 0.1]},
            method="random_stopping", **PRICE,
        ),
    }  # fmt: skip
    made = {
        name: learner.fit(synthetic_table(learner.schema, ROWS, seed=7)).release_
        for name, learner in learners.items()
    }
    made["signed"] = made["logistic"].signed(Ed25519PrivateKey.generate())
    made["bought"] = bought_release()
    made["parties_descent"] = joint_release("descent")
    made["parties_aggregation"] = joint_release("aggregation")
    return made


def bought_release() -> Any:
    """A schema with bounds and a list that were bought of the rows."""
    public = SCHEMA.to_dict()
    columns = public["columns"] | {
        "age": {"type": "number", "lower": "buy", "upper": "buy"},
        "sex": {"type": "category", "values": "buy"},
    }
    rows = synthetic_table(SCHEMA, 2000, seed=7)
    schema = discover(rows, SchemaDraft.from_dict(public | {"columns": columns}), **PRICE)
    return PrivateLogisticRegression(schema=schema, **PRICE).fit(rows).release_


def joint_release(algorithm: Literal["descent", "aggregation"]) -> Any:
    sizes = {"north": 200, "south": 300}
    plan = MultipartyPlan(schema=SCHEMA, parties=sizes, algorithm=algorithm, epsilon=2.0, delta=1e-5)
    return simulate(plan, {name: synthetic_table(SCHEMA, size, seed=size) for name, size in sizes.items()})


def write_sessions(folder: Path) -> dict[str, Any]:
    """State files of sessions that have answered, and the certificates that analysts have."""
    learner = session_learner(folder)
    rows = read_table(folder / "clinic.csv", SCHEMA)
    learner.fit(rows)
    expected = {}
    for mechanism in ("function_release", "pinp"):
        with tempfile.TemporaryDirectory() as temporary:
            state = Path(temporary) / "session.db"
            session = InteractivePredictor(learner, SESSION_PROMISE, mechanism, state=state)
            session.decide(rows.slice(0, ASKED))
            session.certificate.save(folder / f"{mechanism}.json")
            session.close()
            expected[mechanism] = facts_of_certificate(folder / f"{mechanism}.json")
            expected[mechanism] |= facts_of_session(state, folder)
            compress(state, folder / f"session_{mechanism}.db.gz")
    return expected


def write_ledger(folder: Path) -> dict[str, Any]:
    """As `privlearn budget create` makes it, in both compositions, with entries in every state."""
    with tempfile.TemporaryDirectory() as temporary:
        store = Path(temporary) / "budgets.db"
        for name, composition in (("census", "basic"), ("survey", "renyi")):
            type_command("budget", "create", name, "--ledger", str(store), "--epsilon", "4", "--delta", "1e-5",
                         "--composition", composition)  # fmt: skip
            ledger = Ledger.open(store, name)
            ledger.reserve(GAUSSIAN, "committed", "sha256:abc").commit()
            ledger.reserve(Cost(Guarantee(0.1)), "cancelled").cancel()
            ledger.reserve(Cost(Guarantee(1 / 3)), "reserved")
            alice = ledger.of_account("alice", Guarantee(1.0, 1e-6))
            alice.reserve(GAUSSIAN, "of an account", id=f"named {name}").commit()
        expected = facts_of_ledger(str(store))
        compress(store, folder / "budgets.db.gz")
    return expected


def write_sqlite_server(folder: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        owner = holder(folder, Path(temporary))
        run_server(owner)
        expected = facts_of_server(owner)
        compress(Path(owner.server.store), folder / "server.db.gz")
    return expected


def write_postgresql_server(folder: Path, server: Cluster) -> dict[str, Any]:
    server.execute("CREATE ROLE holder LOGIN", "CREATE DATABASE holder OWNER holder")
    address = server.address("holder", "holder")
    with tempfile.TemporaryDirectory() as temporary:
        owner = holder(folder, Path(temporary), address)
        run_server(owner)
        expected = facts_of_server(owner)
        dump = ["pg_dump", "--inserts", "--no-owner", "--no-comments", address]
        text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    (folder / "server.sql.gz").write_bytes(gzip.compress(portable(text).encode(), mtime=0))
    return expected


def portable(dump: str) -> str:
    """Without what only this version of PostgreSQL, or only psql, understands."""
    left_out = ("--", "\\", "SET ", "CREATE SCHEMA")
    return "".join(
        line for line in dump.splitlines(keepends=True) if line.strip() and not line.startswith(left_out)
    )


def run_server(owner: Owner) -> None:
    """Keys, a log, trainings of every kind in every state, and sessions that have answered."""
    store, catalog = open_store(owner), Catalog(owner)
    alice = create_key(store, "analyst", "alice", ["clinic"])
    create_key(store, "holder")
    create_key(store, "analyst", "bob")
    revoke_key(store, next(info.caller.key_id for info in list_keys(store) if info.caller.analyst == "bob"))
    sign_in(store, alice, owner.sign_in)
    points = catalog.named("clinic").read_rows().drop_columns(["outcome"]).slice(0, 10)
    ask(store, "alice", model_request("clinic", "release", "logistic", 0.5, 1e-7), "a key")
    ask(store, "bob", model_request("clinic", "release", "kernel", 0.5, 1e-7, points=points))
    ask(store, "alice", model_request("ward", "release", "logistic", 0.5, 1e-7))
    ask(store, "alice", model_request("clinic", "release", "logistic", 0.5, trial=True))
    ask(store, "alice", model_request("clinic", "session", "logistic", 0.5, 1e-7))
    ask(store, "alice", model_request("clinic", "session", "kernel", 0.5, 1e-7, "function_release"))
    ask(store, "alice", model_request("clinic", "session", "kernel", 0.5, 1e-7, "pinp"))
    ask(store, "bob", model_request("clinic", "release", "logistic", 1.9, 1e-7))  # more than is left to bob
    while (job := queue.claim(store)) is not None:
        run_job(store, catalog, job)
    ask(store, "alice", model_request("clinic", "release", "logistic", 0.25, 1e-7))
    queue.claim(store)  # and its process dies
    ask(store, "bob", model_request("clinic", "release", "logistic", 0.25, 1e-7))
    sessions = OpenSessions(store, Catalogs(owner))
    for session in results.find_all(store, None, "session"):
        sessions.predict(session, points.slice(0, ASKED))
        events.record(store, session.analyst, "asked a session", session.dataset, session=session.id)
        if session.mechanism == "pinp":
            results.close_session(store, session.id)


def ask(store: str, analyst: str, request: JobRequest, key: str = "") -> None:
    guarantee = Guarantee(request.epsilon, request.delta)
    queue.submit(store, analyst, request, guarantee, key)
    events.record(store, analyst, f"asked for a {request.kind}", request.dataset, epsilon=request.epsilon)


def type_command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "privlearn", *words], check=True, stdout=subprocess.DEVNULL)


def compress(source: Path, target: Path) -> None:
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
