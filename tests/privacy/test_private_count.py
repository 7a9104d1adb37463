"""Under add/remove neighbours the number of records reaches nothing that leaves, except through the noise.

The same seed on tables of n and n + 1 records: whatever is not a noisy number must be the same, byte by byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import sparse

from privlearn import (
    Guarantee,
    KernelLearner,
    Ledger,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Schema,
    verify,
)
from privlearn.data import SchemaDraft, census_schema, simulated_census
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators import memory_oracle
from privlearn.guarantee import MAX_TABLE_RATIO
from privlearn.mechanisms.search import scatter_rows
from privlearn.randomness import SeededRandomness
from privlearn.solvers import minimise
from privlearn.statistics.discovery import discover

EXPECTED = 1000
SIZES = (0, 1, 2, 937, 1000, 1001, 1500)
PROMISE: dict[str, Any] = {
    "epsilon": 1e-3,
    "delta": 1e-6,
    "neighbours": "add_remove",
    "expected_records": EXPECTED,
    "random_state": 5,
}
ARRAYS: dict[str, Any] = {"norm_bound": 2.0, "classes": [0, 1]}
POINTS = np.eye(3)


def rows(count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X = np.random.default_rng(1).normal(size=(count, 3))
    return X, (X[:, 0] > 0).astype(int)


MAKERS: dict[str, Callable[..., Any]] = {
    "objective": lambda **p: PrivateLogisticRegression(**ARRAYS, **p),
    "objective, pure": lambda **p: PrivateLogisticRegression(**ARRAYS, **p | {"delta": 0.0}),
    "output": lambda **p: PrivateLogisticRegression(**ARRAYS, mechanism="output", **p),
    "output, laplace": lambda **p: PrivateSVC(
        **ARRAYS, mechanism="output", noise="laplace", **p | {"delta": 0.0}
    ),
    "multinomial": lambda **p: PrivateLogisticRegression(
        norm_bound=2.0, classes=[0, 1, 2], loss="multinomial", **p
    ),
    "one against the rest": lambda **p: PrivateSVC(norm_bound=2.0, classes=[0, 1, 2], **p),
    "hinge": lambda **p: PrivateSVC(**ARRAYS, loss="hinge", **p),
    "Fourier": lambda **p: PrivateSVC(**ARRAYS, kernel="rbf", fourier_pairs=5, **p),
    "landmarks": lambda **p: PrivateSVC(**ARRAYS, kernel="polynomial", public_points=POINTS, **p),
    "function release": lambda **p: PrivateSVC(
        **ARRAYS, kernel="rbf", mechanism="function_release", public_points=POINTS, **p
    ),
    "tddl": lambda **p: PrivateSVC(**ARRAYS, kernel="rbf", mechanism="tddl", public_points=POINTS, **p),
    "tddl, norm": lambda **p: PrivateSVC(
        **ARRAYS, kernel="rbf", mechanism="tddl_norm", public_points=POINTS, **p
    ),
    "tdil": lambda **p: PrivateSVC(**ARRAYS, mechanism="tdil", **p),
    "tdil, paper": lambda **p: PrivateSVC(**ARRAYS, mechanism="tdil_jt13", **p),
    "regression": lambda **p: PrivateRegressor(norm_bound=2.0, target_bounds=(0.0, 1.0), **p),
}


def public_bytes(release: Any) -> bytes:
    """Return a release's file without the coefficients."""
    members = {name: part for name, part in release.members().items() if name != "coefficients.npy"}
    assert len(members) >= 2
    return b"".join(name.encode() + part for name, part in members.items())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_nothing_but_the_coefficients_depends_on_the_number_of_records(make: Any, form: Any) -> None:
    """Hostile sizes too: nothing, one record, all of one class. None of them is refused."""
    found = {public_bytes(make(**PROMISE).fit(form(X), y).release_) for X, y in map(rows, SIZES)}
    X, _ = rows(40)
    found |= {public_bytes(make(**PROMISE).fit(form(X), np.full(40, k)).release_) for k in (0, 1)}
    assert len(found) == 1


@pytest.mark.parametrize("name", ["objective", "output", "multinomial", "regression"])
def test_one_record_more_moves_the_coefficients_within_the_noise(name: str) -> None:
    """With the same draws: output and objective move by at most gradient / (N0 Lambda), and the solver's distance."""
    for count in (0, 1, 999, 1000):
        X, y = rows(count + 1)
        more, less = (MAKERS[name](**PROMISE).fit(X[:k], y[:k]) for k in (count + 1, count))
        task = more.certificate_.task
        strength = more.certificate_.mechanism.effective_regularization
        allowed = task.gradient_sensitivity / (EXPECTED * strength) + 2.0 * task.tolerance / strength
        moved = np.linalg.norm(more.coefficients_ - less.coefficients_)
        assert 0 < moved <= allowed * (1.0 + 1e-6)


def test_a_larger_table_than_was_thought_of_is_solved_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond LARGEST_TABLE times the expected number rounding allows less; to refuse would tell."""
    asked = []
    solve = minimise
    monkeypatch.setattr(
        memory_oracle, "minimise", lambda problem, **k: asked.append(k["tolerance"]) or solve(problem, **k)
    )
    X, y = rows(4000)
    releases = []
    for expected_times in (1, MAX_TABLE_RATIO, 200 * MAX_TABLE_RATIO):
        count = min(4000, 2 * expected_times)
        promise = PROMISE | {"expected_records": 2, "delta": 1e-6}
        releases.append(MAKERS["objective"](**promise).fit(X[:count], y[:count]).release_)
    assert len({public_bytes(release) for release in releases}) == 1
    assert asked[0] == asked[1] < asked[2]


@pytest.mark.parametrize("table", [False, True], ids=["arrays", "table"])
def test_public_counts_still_refuse_an_empty_table(table: bool) -> None:
    for neighbours in ("replace_one", "zero_out"):
        declared = {"schema": census_schema()} if table else ARRAYS
        data = (simulated_census(5, seed=1).slice(0, 0),) if table else rows(0)
        with pytest.raises(DataError, match="no rows"):
            PrivateLogisticRegression(epsilon=1.0, neighbours=neighbours, **declared).fit(*data)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_tables_of_any_length(kind: str) -> None:
    convert = {"arrow": lambda t: t, "pandas": lambda t: t.to_pandas(), "polars": _polars}[kind]
    census = simulated_census(60, seed=1)
    found = {
        public_bytes(
            PrivateLogisticRegression(schema=census_schema(), **PROMISE)
            .fit(convert(census.slice(0, count)))
            .release_
        )
        for count in (0, 1, 59, 60)
    }
    assert len(found) == 1


def test_a_table_without_texts() -> None:
    schema = Schema.from_dict(
        {
            "name": "notes",
            "columns": {"note": {"type": "text"}},
            "target": {"name": "ill", "classes": ["no", "yes"]},
        }
    )
    notes = pa.table({"note": ["a cough", "none"], "ill": ["yes", "no"]})
    for count in (0, 1, 2):
        PrivateLogisticRegression(schema=schema, **PROMISE).fit(notes.slice(0, count))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (PrivateSVC, {"loss": "hinge", "regularization": 1.6001e-8}),
        (PrivateSVC, {"regularization": 5.742e-13}),
        (PrivateLogisticRegression, {"regularization": 1.43544e-13}),
    ],
)
def test_the_least_regularization_stands_any_number_of_rows(kind: Any, settings: dict[str, Any]) -> None:
    """Nothing is left to prove there beyond LARGEST_TABLE times the expected number, and nothing is refused."""
    for count in (0, 100 * MAX_TABLE_RATIO, 100 * MAX_TABLE_RATIO + 1):
        rows = np.ones((count, 1))
        promise = PROMISE | {"expected_records": 100, "delta": 0.0, "mechanism": "output"}
        kind(norm_bound=1.0, classes=[0, 1], fit_intercept=False, **promise | settings).fit(
            rows, np.arange(count) % 2
        )


def _polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


PERSONS = {
    "name": "visits",
    "columns": {"age": {"type": "number", "lower": 0, "upper": 100}},
    "target": {"name": "ill", "classes": ["no", "yes"]},
}


@pytest.mark.parametrize("persons", [{"person": "patient"}, {"rows_per_person": 3}], ids=str)
def test_a_person_is_added_with_all_rows(persons: dict[str, Any]) -> None:
    """Averaged rows weigh 1 together; else as many as the schema allows each weigh 1. Others' weights stay."""
    schema = Schema.from_dict(PERSONS | persons)

    def fit(people: int) -> Any:
        table = {
            "patient": np.repeat(np.arange(people), 3),
            "age": np.tile([10.0, 50.0, 90.0], people),
            "ill": np.array(["no", "yes", "yes"] * people, dtype=object),
        }
        return PrivateLogisticRegression(
            schema=schema, mechanism="output", regularization=0.1, **PROMISE
        ).fit(table)

    found = [fit(people) for people in (0, 1, 2, 40, 41)]
    assert len({public_bytes(model.release_) for model in found}) == 1
    task = found[0].certificate_.task
    assert task.gradient_sensitivity == (1.0 if "person" in persons else 3.0)
    for one, other in ((found[0], found[1]), (found[3], found[4])):
        moved = np.linalg.norm(one.coefficients_ - other.coefficients_)
        assert 0 < moved <= task.minimiser_sensitivity + 1e-7


def test_ledger_and_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = set()
    for count in (0, 1, 900, 901):
        store = tmp_path / f"{count}.db"
        ledger = Ledger.create(store, "census", Guarantee(1.0, 1e-3, "add_remove"))
        model = MAKERS["objective"](**PROMISE | {"random_state": None}, ledger=ledger)
        model.fit(*rows(count))
        entry = ledger.statement().entries[0]
        told.add((entry.purpose, entry.amount, str(model.certificate_)))
        model.release_.save(tmp_path / "model.privlearn")
        assert verify(tmp_path / "model.privlearn").is_private
        (tmp_path / "model.privlearn").unlink()
    assert len(told) == 1
    assert "1000 (public; how many there are is not)" in str(model.certificate_)
    assert capsys.readouterr().out == ""


SEARCHES = ("every_candidate", "random_stopping", "partition")


@pytest.mark.parametrize("method", SEARCHES)
def test_searches(method: str) -> None:
    """All that is not the choice, the error or the coefficients; the chosen candidate's own lines follow from it."""
    found = set()
    for X, y in map(rows, (0, 1, 900, 901)):
        search = PrivateGridSearch(
            PrivateLogisticRegression(**ARRAYS, mechanism="output", expected_records=EXPECTED),
            {"regularization": [0.003, 0.03]},
            epsilon=1e-3,
            delta=1e-6,
            neighbours="add_remove",
            method=method,
            random_state=3,
        ).fit(X, y)
        record = search.certificate_.to_dict()
        for name in ("theorem", "task", "solver"):
            record.pop(name)
        for name in ("chosen", "error"):
            record["search"].pop(name)
        found.add(json.dumps(record))
    assert len(found) == 1


def test_a_record_more_is_in_one_part_of_a_partition() -> None:
    """Each record's part is a draw of its own: the others' parts have the law they had without it."""
    rows, parts = 3000, 4
    split = scatter_rows(rows, parts, SeededRandomness(1))
    assert sorted(np.concatenate(split).tolist()) == list(range(rows))
    assert all(abs(len(part) - rows / parts) < 5 * np.sqrt(rows / parts) for part in split)
    assert (
        len({len(part) for part in split}) > 1
    )  # sizes of equal parts would follow from the number of records


def test_discovery() -> None:
    draft = SchemaDraft.from_dict(
        {
            "name": "census",
            "columns": {
                "age": {"type": "number", "lower": "estimate", "upper": "estimate"},
                "occupation": {"type": "category", "values": "estimate"},
            },
        }
    )
    census = simulated_census(3000, seed=1)
    promise: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6, "neighbours": "add_remove", "random_state": 0}
    receipts = {
        discover(census.slice(0, count), draft, expected_records=20_000, **promise)
        .private_bounds[0]
        .model_dump_json()
        for count in (0, 1, 2999, 3000)
    }
    assert len(receipts) == 1
    with pytest.raises(InvalidParameter, match="expected_records"):
        discover(census, draft, **promise)


REFUSED: dict[str, Any] = {
    "no expectation": ({"neighbours": "add_remove"}, "State how many you expect"),
    "no whole number": ({"neighbours": "add_remove", "expected_records": 10.5}, "whole number"),
    "nothing": ({"neighbours": "add_remove", "expected_records": 0}, "at least 1"),
    "true": ({"neighbours": "add_remove", "expected_records": True}, "whole number"),
    "public number": (
        {"neighbours": "zero_out", "expected_records": 100},
        "goes with neighbours='add_remove'",
    ),
    "default relation": ({"expected_records": 100}, "goes with neighbours='add_remove'"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_before_a_row_is_read(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        PrivateLogisticRegression(epsilon=1.0, **ARRAYS, **given).fit(None, [0])


def test_exact_kernel_sessions_are_refused_before_a_row_is_read() -> None:
    learner = KernelLearner(guarantee=Guarantee(1.0, 1e-6, "add_remove"), expected_records=100, **ARRAYS)
    with pytest.raises(InvalidParameter, match="would reveal that number"):
        learner.read(None)


def test_delta_is_judged_by_the_expected_number() -> None:
    X, y = rows(50)
    promise: dict[str, Any] = PROMISE | {"random_state": None, "delta": 1.0 / EXPECTED}
    with pytest.raises(InvalidParameter, match="1/1000"):
        PrivateLogisticRegression(**ARRAYS, **promise).fit(X, y)
