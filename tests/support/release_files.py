"""Release files and session certificates of every kind, with secret noise, made when a test needs one."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn import (
    Guarantee,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    Schema,
    SchemaDraft,
    discover,
)
from privlearn.data import write_table
from privlearn.estimators import KernelLearner
from privlearn.estimators.forecast import synthetic_table
from privlearn.parties import JointTraining, simulate
from privlearn.sessions import InteractivePredictor
from tests.support.service_support import SCHEMA

PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ROWS = 300
SEARCHED = {"regularization": [0.01, 0.1]}
SESSIONS = ("function_release", "pinp")


def _with_target(**target: Any) -> Schema:
    return Schema.from_dict(SCHEMA.to_dict() | {"target": {"name": "outcome", **target}})


def _estimators() -> dict[str, Any]:
    points = synthetic_table(SCHEMA, 12, seed=3).drop_columns(["outcome"])
    three: dict[str, Any] = {"schema": _with_target(classes=["healthy", "ill", "recovering"])} | PRICE
    kernel: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5, "schema": SCHEMA} | PRICE
    logistic = PrivateLogisticRegression
    output = logistic(schema=SCHEMA, mechanism="output")
    return {
        "logistic": logistic(schema=SCHEMA, **PRICE),
        "zero_out": logistic(schema=SCHEMA, neighbours="zero_out", **PRICE),
        "pure_epsilon": logistic(schema=SCHEMA, epsilon=2.0),
        "output_laplace": logistic(schema=SCHEMA, epsilon=2.0, mechanism="output", noise="laplace"),
        "cms11": logistic(schema=SCHEMA, epsilon=2.0, calibration="cms11"),
        "classes": logistic(**three),
        "multinomial": logistic(loss="multinomial", **three),
        "weighted": PrivateSVC(schema=SCHEMA, class_weight={"healthy": 1.0, "ill": 2.0}, **PRICE),
        "hinge": PrivateSVC(schema=SCHEMA, loss="hinge", **PRICE),
        "regression": PrivateRegressor(schema=_with_target(lower=0, upper=50), **PRICE),
        "fourier": PrivateSVC(fourier_pairs=25, **kernel),
        "landmarks": PrivateSVC(public_points=points, **kernel),
        "function_release": PrivateSVC(public_points=points, mechanism="function_release", **kernel),
        "tddl": PrivateSVC(public_points=points, mechanism="tddl", **kernel),
        "tdil": PrivateSVC(schema=SCHEMA, mechanism="tdil", **PRICE),
        "search": PrivateGridSearch(output, SEARCHED, **PRICE),
        "search_partition": PrivateGridSearch(logistic(schema=SCHEMA), SEARCHED, method="partition", **PRICE),
        "search_stopping": PrivateGridSearch(output, SEARCHED, method="random_stopping", **PRICE),
    }


NAMES = (*_estimators(), "signed", "private_bounds", "parties_descent")


@cache
def release_file(name: str) -> Path:
    """Return the path of a release file of this kind, one of `NAMES`."""
    path = directory() / f"{name}.privlearn"
    _release(name).save(path)
    return path


@cache
def session_certificate(mechanism: str) -> Path:
    """Return the path of a session's certificate; the mechanism is one of `SESSIONS`."""
    rows, guarantee = synthetic_table(SCHEMA, ROWS, seed=7), Guarantee(1.0, 1e-6)
    learner = KernelLearner(kernel="rbf", gamma=0.5, schema=SCHEMA, guarantee=guarantee).fit(rows)
    path = directory() / f"{mechanism}.json"
    with InteractivePredictor(
        learner, guarantee, mechanism, state=directory() / f"{mechanism}.db"
    ) as session:
        session.certificate.save(path)
    return path


@cache
def directory() -> Path:
    """Return a directory of this process, with the table ``clinic.csv`` and ``clinic.schema.yaml``."""
    path = Path(tempfile.mkdtemp(prefix="privlearn-releases-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    write_table(synthetic_table(SCHEMA, ROWS, seed=7), path / "clinic.csv")
    SCHEMA.save(path / "clinic.schema.yaml")
    return path


def _release(name: str) -> Any:
    match name:
        case "signed":
            return Release.load(release_file("logistic")).signed(Ed25519PrivateKey.generate())
        case "private_bounds":
            return _bought()
        case "parties_descent":
            return _joint()
    estimator = _estimators()[name]
    return estimator.fit(synthetic_table(estimator.schema, ROWS, seed=7)).release_


def _bought() -> Any:
    """Return a release whose schema has bounds and a list that were estimated privately."""
    public = SCHEMA.to_dict()
    columns = public["columns"] | {
        "age": {"type": "number", "lower": "estimate", "upper": "estimate"},
        "sex": {"type": "category", "values": "estimate"},
    }
    rows = synthetic_table(SCHEMA, 2000, seed=7)
    schema = discover(rows, SchemaDraft.from_dict(public | {"columns": columns}), **PRICE)
    return PrivateLogisticRegression(schema=schema, **PRICE).fit(rows).release_


def _joint() -> Any:
    sizes = {"north": 200, "south": 300}
    plan = JointTraining(schema=SCHEMA, parties=sizes, algorithm="descent", epsilon=2.0, delta=1e-5)
    return simulate(plan, {name: synthetic_table(SCHEMA, size, seed=size) for name, size in sizes.items()})
