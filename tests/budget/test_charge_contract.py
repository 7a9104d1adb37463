"""Every public entry point with a ledger: what it refuses costs nothing, and it charges the people of its rows."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privlearn
from privlearn import (
    Guarantee,
    InteractivePredictor,
    InvalidParameter,
    KernelLearner,
    Ledger,
    LedgerError,
    PrivateGLM,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    PrivlearnError,
    SchemaError,
    SessionError,
    curvature,
    describe,
    discover,
    estimate,
    evaluate,
    split,
)
from privlearn.budget import Reservation
from privlearn.data import SplitTable
from privlearn.estimators.kernel_machine import KernelMachine
from privlearn.parties.run import RunBudget
from privlearn.randomness import SecureRandomness
from tests.parties.test_run_budget import AGREEMENT

ROWS = 1200
rng = np.random.default_rng(0)
TABLE: dict[str, Any] = {
    "pid": list(np.repeat(np.arange(ROWS // 2), 2)),
    "age": rng.uniform(0, 100, ROWS).tolist(),
    "y": ["n", "p"] * (ROWS // 2),
    "cost": rng.uniform(0, 9, ROWS).tolist(),
}
AGE: dict[str, Any] = {"type": "number", "lower": 0, "upper": 100}
CLASSES: dict[str, Any] = {"name": "y", "classes": ["n", "p"]}
COST: dict[str, Any] = {"name": "cost", "lower": 0, "upper": 9}
BY_ROW: dict[str, Any] = {"one_row_per_person": True}
BY_PERSON: dict[str, Any] = {"person": "pid"}
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-4}


def schema(
    persons: dict[str, Any], age: dict[str, Any] = AGE, target: dict[str, Any] = CLASSES
) -> dict[str, Any]:
    return {"name": "v", "columns": {"age": age}, "target": target} | persons


class Use:
    """One entry point: called with rows, what a person is, a ledger, and changed parameters."""

    def __init__(self, parameters: Callable[..., Any], call: Callable[..., Any]) -> None:
        self.parameters = [
            name
            for name in inspect.signature(parameters).parameters
            if name not in ("self", "ledger", "schema")
        ]
        self.call = call


def fitted(kind: Any, target: dict[str, Any] = CLASSES, **usual: Any) -> Callable[..., Any]:
    def fit(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
        settings: dict[str, Any] = PROMISE | usual | {"schema": schema(persons, target=target)} | changed
        return kind(ledger=ledger, **settings).fit(rows)

    return fit


def searched(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
    model = PrivateLogisticRegression(schema=schema(persons), mechanism="output")
    usual: dict[str, Any] = {"estimator": model, "param_grid": {"regularization": [0.1, 1.0]}, **PROMISE}
    return PrivateGridSearch(ledger=ledger, **usual | changed).fit(rows)


def opened(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
    guarantee = Guarantee(1.0, 1e-4, changed.pop("neighbours", "replace_one"))
    learner = KernelLearner(schema=schema(persons), regularization=0.1).read(rows)
    usual: dict[str, Any] = {"learner": learner, "guarantee": guarantee, "state": folder / "state"}
    with InteractivePredictor(ledger=ledger, **usual | changed) as session:
        return session.certificate


def described(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
    usual: dict[str, Any] = {"table": rows, "schema": schema(persons), **PROMISE}
    return describe(ledger=ledger, **usual | changed)


def estimated(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
    usual: dict[str, Any] = {"table": rows, "schema": schema(persons), "formula": "y ~ age", **PROMISE}
    return estimate(ledger=ledger, **usual | changed)


def bought(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
    draft = schema(persons, age={"type": "number", "lower": "estimate", "upper": "estimate"})
    usual: dict[str, Any] = {"table": rows, "draft": draft, **PROMISE}
    return discover(ledger=ledger, **usual | changed)


def measured(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
    model = PrivateLogisticRegression(schema=schema(BY_ROW), **PROMISE, random_state=0).fit(TABLE)
    usual: dict[str, Any] = {"model": model, "table": rows, "schema": schema(persons), **PROMISE}
    return evaluate(ledger=ledger, **usual | changed)


def curved(rows: Any, persons: dict[str, Any], ledger: Any, folder: Path, **changed: Any) -> Any:
    neighbours = changed.pop("neighbours", "replace_one")
    release = (
        PrivateLogisticRegression(
            schema=schema(BY_ROW), **PROMISE, neighbours=neighbours, centre=False, random_state=0
        )
        .fit(getattr(rows, "table", lambda: rows)())
        .release_
    )
    return curvature(ledger=ledger, **{"release": release, "X": rows, **PROMISE} | changed)


ENTRY_POINTS = {
    "PrivateLogisticRegression": Use(PrivateLogisticRegression, fitted(PrivateLogisticRegression)),
    "PrivateSVC": Use(PrivateSVC, fitted(PrivateSVC, kernel="rbf", fourier_pairs=5)),
    "PrivateRegressor": Use(PrivateRegressor, fitted(PrivateRegressor, COST)),
    "PrivateGridSearch": Use(PrivateGridSearch, searched),
    "InteractivePredictor": Use(InteractivePredictor, opened),
    "describe": Use(describe, described),
    "estimate": Use(estimate, estimated),
    "PrivateGLM": Use(PrivateGLM, fitted(PrivateGLM, formula="y ~ age")),
    "discover": Use(discover, bought),
    "evaluate": Use(evaluate, measured),
    "curvature": Use(curvature, curved),
}


@pytest.fixture(params=ENTRY_POINTS.values(), ids=list(ENTRY_POINTS))
def use(request: pytest.FixtureRequest) -> Use:
    found: Use = request.param
    return found


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budgets.db", "v", Guarantee(5.0, 1e-3))


@pytest.fixture(scope="module")
def parts() -> SplitTable:
    return split(TABLE, schema(BY_ROW), test=0.5)


@pytest.fixture(scope="module")
def parts_of_persons() -> SplitTable:
    return split(TABLE, schema(BY_PERSON), test=0.5)


def test_every_entry_point_is_here() -> None:
    takers = {
        name
        for name in privlearn.__all__
        if callable(getattr(privlearn, name)) and "ledger" in _parameters(getattr(privlearn, name))
    }
    assert takers == ENTRY_POINTS.keys()


def _parameters(public: Any) -> set[str]:
    try:
        return set(inspect.signature(public).parameters)
    except ValueError:  # an exception of Python's
        return set()


def test_the_part_of_the_rows_is_charged(use: Use, ledger: Ledger, parts: SplitTable, tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
        use.call(getattr(parts, name), BY_ROW, ledger, tmp_path / name)
        stated = ledger.of_part(parts.split.part(name))
        (tmp_path / f"{name} again").mkdir()
        use.call(getattr(parts, name), BY_ROW, stated, tmp_path / f"{name} again")
    statement = ledger.statement()
    assert [entry.part for entry in statement.entries] == ["train", "train", "test", "test"]
    assert statement.spent.epsilon == 2.0


def test_rows_that_know_no_part_are_charged_as_the_whole(
    use: Use, ledger: Ledger, parts: SplitTable, tmp_path: Path
) -> None:
    use.call(parts.train.table(), BY_ROW, ledger, tmp_path)
    assert [entry.part for entry in ledger.statement().entries] == [""]


def test_another_part_than_that_of_the_rows_is_refused(
    use: Use, ledger: Ledger, parts: SplitTable, tmp_path: Path
) -> None:
    other_split = split(TABLE, schema(BY_ROW), test=0.5)
    for rows in (parts.train, parts.train.table(), other_split.test):
        with pytest.raises(LedgerError, match="the ledger charges the part 'test'"):
            use.call(rows, BY_ROW, ledger.of_part(parts.split.part("test")), tmp_path)
    assert ledger.statement().entries == ()


@pytest.mark.parametrize("persons", [BY_PERSON, {"rows_per_person": 2}], ids=str)
def test_parts_by_row_are_refused_where_persons_are_protected(
    use: Use, ledger: Ledger, parts: SplitTable, persons: dict[str, Any], tmp_path: Path
) -> None:
    if use.call is curved:
        pytest.skip("it is sold for one row per person only; its schema is the release's")
    # regression tables refuse `rows_per_person` itself, before they look at the part
    with pytest.raises(
        (SchemaError, InvalidParameter), match=r"a different `person`|no column names the person"
    ):
        use.call(parts.train, persons, ledger, tmp_path)
    assert ledger.statement().entries == ()


def test_parts_by_person_are_refused_where_rows_are_protected(
    use: Use, ledger: Ledger, parts_of_persons: SplitTable, tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match="a different `person`"):
        use.call(parts_of_persons.train, BY_ROW, ledger, tmp_path)
    assert ledger.statement().entries == ()


def test_a_seed_and_a_ledger_do_not_go_together(use: Use, ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="guarantees nothing, so a ledger cannot state its cost"):
        use.call(TABLE, BY_ROW, ledger, tmp_path, random_state=0)
    assert ledger.statement().entries == ()


@pytest.mark.parametrize("mistaken", ["budgets.db", Path("budgets.db"), 3])
def test_a_ledger_is_no_path(use: Use, mistaken: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="ledger must be a Ledger"):
        use.call(TABLE, BY_ROW, mistaken, tmp_path)


def test_another_relation_than_the_budgets_is_refused(use: Use, ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(PrivlearnError, match=r"neighbours|zero_out"):
        use.call(TABLE, BY_ROW, ledger, tmp_path, neighbours="zero_out")
    assert ledger.statement().entries == ()


GARBAGE: tuple[Any, ...] = (True, "nonsense", -1, math.nan, object(), [])


@pytest.mark.filterwarnings("ignore")
def test_what_is_refused_is_refused_before_the_reservation(
    use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a parameter is: the call works, or it fails and the ledger has no entry."""
    monkeypatch.chdir(tmp_path)
    for number, (name, value) in enumerate((name, value) for name in use.parameters for value in GARBAGE):
        folder = tmp_path / str(number)
        folder.mkdir()
        ledger = Ledger.create(folder / "budgets.db", "v", Guarantee(50.0, 0.5))
        failure = ""
        try:
            use.call(TABLE, BY_ROW, ledger, folder, **{name: value})
        except Exception as error:
            failure = f"{name}={value!r}: {type(error).__name__}: {error}"
        assert not (failure and ledger.statement().entries), failure


@pytest.mark.parametrize("failing", ["the noise", "the commit"])
def test_a_failure_after_the_reservation_states_what_stays_reserved(
    use: Use, ledger: Ledger, tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("broken")

    if failing == "the noise":
        for name in ("bits", "discrete_gaussian", "discrete_laplace"):
            monkeypatch.setattr(SecureRandomness, name, fail)
        monkeypatch.setattr(KernelMachine, "solve", fail)  # a session draws its noise later
    if failing == "the commit":
        monkeypatch.setattr(Reservation, "commit", fail)
    with pytest.raises(RuntimeError) as raised:
        use.call(TABLE, BY_ROW, ledger, tmp_path)
    assert any("stays reserved in the ledger: (epsilon = 1" in note for note in raised.value.__notes__)
    statement = ledger.statement()
    assert (statement.spent.epsilon, statement.reserved.epsilon) == (0.0, 1.0)


def test_a_session_whose_file_cannot_be_created_costs_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="directory that you can write to"):
        opened(TABLE, BY_ROW, ledger, tmp_path, state=tmp_path / "missing" / "state")
    assert ledger.statement().entries == ()


def test_a_progress_that_raises_states_what_stays_reserved(ledger: Ledger) -> None:
    def broken(*_: int) -> None:
        raise RuntimeError("the terminal is gone")

    model = PrivateLogisticRegression(schema=schema(BY_ROW), **PROMISE, ledger=ledger, progress=broken)
    with pytest.raises(RuntimeError) as raised:
        model.fit(TABLE)
    assert "stays reserved in the ledger" in raised.value.__notes__[0]
    assert ledger.statement().reserved.epsilon == 1.0


def test_a_run_of_several_holders_is_about_the_whole(tmp_path: Path) -> None:
    own = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(9.0, 0.1))
    some = split(TABLE, schema(BY_ROW) | {"name": "census"}, test=0.5).split.part("train")
    with pytest.raises(LedgerError, match="the ledger charges the part 'train'"):
        RunBudget(AGREEMENT, "north", own.of_part(some)).reserve()
    assert own.statement().entries == ()
