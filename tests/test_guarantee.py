"""Guarantees: a weak one needs a confirmation and stays marked, and a relation states all its properties."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import (
    Guarantee,
    InteractivePredictor,
    InvalidParameter,
    KernelLearner,
    Ledger,
    NothingRecorded,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    SchemaDraft,
    discover,
    plan,
    verify,
)
from privlearn.audit import audit_release
from privlearn.budget.charge import _warn_that_nothing_is_recorded
from privlearn.data import PrivateBounds, Schema, census_schema, simulated_census
from privlearn.data.schema import add_private_bounds
from privlearn.guarantee import (
    RELATIONS,
    Relation,
    check_strength,
    get_relation,
    register_relation,
    weakness,
)
from privlearn.mechanisms import Partition, Task
from privlearn.parties import JointTraining
from privlearn.solvers import Logistic

ROWS = 400
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 2)) / 2.0
Y = (X[:, 0] > 0).astype(int)
ARRAYS: dict[str, Any] = {"norm_bound": 1.0, "classes": [0, 1]}
WEAK: dict[str, dict[str, Any]] = {
    "large epsilon": {"epsilon": 20.5, "delta": 1e-6},
    "large delta": {"epsilon": 1.0, "delta": 1.0 / ROWS},
}
weak_promises = pytest.mark.parametrize("promise", WEAK.values(), ids=WEAK)


@pytest.mark.parametrize(
    ("epsilon", "delta", "weak"),
    [
        (20.0, 0.0, False),
        (math.nextafter(20.0, math.inf), 0.0, True),
        (1.0, math.nextafter(1e-3, 0.0), False),
        (1.0, 1e-3, True),
        (math.inf, 0.5, False),  # promises nothing, and says so itself
    ],
)
def test_where_weakness_begins(epsilon: float, delta: float, weak: bool) -> None:
    assert (weakness(Guarantee(epsilon, delta), records=1000) is not None) == weak


def test_both_reasons_are_told_in_plain_words() -> None:
    text = weakness(Guarantee(30.0, 0.1), records=100)
    assert text is not None
    assert text.startswith("hardly private: epsilon 30 is above 20")
    assert "delta 0.1 is not below 1/100" in text


def test_the_word_is_a_word() -> None:
    check_strength(Guarantee(30.0), 100, accepted=True)
    with pytest.raises(InvalidParameter, match=r"accept_weak_privacy=True .* --accept-weak-privacy"):
        check_strength(Guarantee(30.0), 100, accepted=False)
    with pytest.raises(InvalidParameter, match="must be True or False"):
        check_strength(Guarantee(1.0), 100, accepted="no")  # type: ignore[arg-type]


def made_by_estimator(tmp_path: Path, **promise: Any) -> Any:
    return PrivateLogisticRegression(**ARRAYS, **promise).fit(X, Y).certificate_


def made_by_machine(tmp_path: Path, **promise: Any) -> Any:
    return PrivateSVC(**ARRAYS, **promise).fit(X, Y).certificate_


def made_by_regression(tmp_path: Path, **promise: Any) -> Any:
    return PrivateRegressor(norm_bound=1.0, target_bounds=(0, 1), **promise).fit(X, Y).certificate_


def made_by_search(tmp_path: Path, method: str = "auto", **promise: Any) -> Any:
    model = PrivateLogisticRegression(**ARRAYS, mechanism="output")
    search = PrivateGridSearch(model, {"regularization": [0.1, 0.2]}, method=method, **promise)
    return search.fit(X, Y).certificate_


def made_by_partition(tmp_path: Path, **promise: Any) -> Any:
    return made_by_search(tmp_path, "partition", **promise)


def made_by_session(tmp_path: Path, epsilon: float, delta: float, **words: Any) -> Any:
    guarantee = Guarantee(epsilon, delta)
    learner = KernelLearner(guarantee=guarantee, **ARRAYS).fit(X, Y)
    with InteractivePredictor(learner, guarantee, state=tmp_path / "state", **words) as session:
        return session.certificate


def made_by_discovery(tmp_path: Path, **promise: Any) -> Any:
    draft = SchemaDraft.from_dict(
        {"name": "census", "columns": {"age": {"type": "number", "lower": "estimate", "upper": "estimate"}}}
    )
    return discover(simulated_census(ROWS, seed=1), draft, **promise).private_bounds[-1]


Maker = Callable[..., Any]
MAKERS: list[Maker] = [
    made_by_estimator,
    made_by_machine,
    made_by_regression,
    made_by_search,
    made_by_partition,
    made_by_session,
    made_by_discovery,
]


@weak_promises
@pytest.mark.parametrize("make", MAKERS)
def test_a_weak_promise_needs_a_word(make: Maker, promise: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="hardly private"):
        make(tmp_path, **promise)
    made = make(tmp_path, **promise, accept_weak_privacy=True)
    assert made.guarantee == Guarantee(**promise)
    if make is not made_by_discovery:
        assert "hardly private" in made.weakness
        assert made.to_dict()["weakness"] == made.weakness
        assert "hardly private" in str(made)


def test_refused_before_anything_is_paid(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "people", Guarantee(100.0, 0.5))
    for promise in WEAK.values():
        with pytest.raises(InvalidParameter, match="hardly private"):
            PrivateLogisticRegression(**ARRAYS, **promise, ledger=ledger).fit(X, Y)
    assert not ledger.statement().entries


def test_the_noise_decides_what_delta_is() -> None:
    pure = PrivateLogisticRegression(**ARRAYS, epsilon=1.0, delta=0.1, noise="norm_gamma").fit(X, Y)
    assert pure.certificate_.guarantee.delta == 0.0
    assert pure.certificate_.weakness is None


@weak_promises
def test_what_promises_nothing_needs_no_word(promise: dict[str, Any]) -> None:
    seeded = PrivateLogisticRegression(**ARRAYS, **promise, random_state=0).fit(X, Y)
    assert not seeded.certificate_.is_private
    assert (
        not PrivateLogisticRegression(**ARRAYS, epsilon=math.inf, delta=0.1).fit(X, Y).certificate_.is_private
    )


def test_persons_count_not_rows() -> None:
    schema = Schema.from_dict(
        {
            "name": "visits",
            "person": "who",
            "columns": {"x": {"type": "number", "lower": -2, "upper": 2}},
            "target": {"name": "y", "classes": [0, 1]},
        }
    )
    table = {"x": X[:, 0].tolist(), "y": Y.tolist(), "who": (np.arange(ROWS) // 4).tolist()}
    enough = PrivateLogisticRegression(schema=schema, epsilon=1.0, delta=0.9 / (ROWS / 4))
    assert enough.fit(table).certificate_.weakness is None
    with pytest.raises(InvalidParameter, match="not below 1/100"):
        PrivateLogisticRegression(schema=schema, epsilon=1.0, delta=1.0 / (ROWS / 4)).fit(table)


def receipt(epsilon: float, **changed: Any) -> PrivateBounds:
    facts: dict[str, Any] = {
        "bounds": ("age lower",),
        "quantile_epsilon": epsilon / 2,
        "records": ROWS,
        "rows_per_person": 1,
        "person": False,
    }
    facts |= {"delta": 0.0, "neighbours": "replace_one", "randomness": "secure", "secure": True}
    return PrivateBounds(epsilon=epsilon, **facts | changed)


def test_what_was_bought_counts() -> None:
    assert add_private_bounds(Guarantee(12.0), [receipt(9.0)]) == Guarantee(21.0)
    with pytest.raises(InvalidParameter, match="Set neighbours='zero_out' here as well"):
        add_private_bounds(Guarantee(12.0), [receipt(9.0, neighbours="zero_out")])
    schema = census_schema().model_copy(update={"private_bounds": (receipt(9.0),)})
    settings: dict[str, Any] = {"schema": schema, "delta": 1e-6}
    people = simulated_census(ROWS, seed=1)
    with pytest.raises(InvalidParameter, match="epsilon 21 is above 20"):
        PrivateLogisticRegression(**settings, epsilon=12.0).fit(people)
    accepted = PrivateLogisticRegression(**settings, epsilon=12.0, accept_weak_privacy=True).fit(people)
    assert "epsilon 21" in str(accepted.certificate_.weakness)
    guarantee = Guarantee(12.0, 1e-6)
    learner = KernelLearner(schema=schema, guarantee=guarantee).fit(people)
    with pytest.raises(InvalidParameter, match="epsilon 21 is above 20"):
        InteractivePredictor(learner, guarantee, state="never-written")
    with pytest.raises(ValueError, match="epsilon 21 is above 20"):
        JointTraining(schema=schema, parties={"a": 500, "b": 500}, epsilon=12.0, delta=1e-6)


def test_a_partition_is_about_all_its_records(tmp_path: Path) -> None:
    made = made_by_partition(tmp_path, epsilon=1.0, delta=1e-6)
    assert isinstance(made.mechanism.search, Partition)
    assert made.records == ROWS > made.task.total


@weak_promises
def test_a_release_says_it_to_strangers(promise: dict[str, Any], tmp_path: Path) -> None:
    model = PrivateLogisticRegression(**ARRAYS, **promise, accept_weak_privacy=True).fit(X, Y)
    model.release_.save(tmp_path / "weak.privlearn")
    proven = verify(tmp_path / "weak.privlearn")
    assert proven.is_private  # the constants support the claim
    assert proven.weakness == model.certificate_.weakness
    noted = [
        finding
        for finding in audit_release(tmp_path / "weak.privlearn").findings
        if finding.check == "strength"
    ]
    assert [finding.status for finding in noted] == ["noted"]


@weak_promises
def test_a_plan_says_it_and_refuses_nothing(promise: dict[str, Any]) -> None:
    made = plan(PrivateLogisticRegression(**ARRAYS, **promise), ROWS, columns=2)
    assert "WEAK: this guarantee is hardly private" in str(made)
    assert made.to_dict()["weakness"] == made.weakness
    strong = made.at(epsilon=1.0, delta=1e-6)
    assert strong.weakness is None
    assert "WEAK" not in str(strong)


PARTIES: dict[str, Any] = {"schema": census_schema(), "parties": {"a": 500, "b": 1500}}


@pytest.mark.parametrize("promise", [(20.5, 1e-6), (1.0, 1.0 / 2000)])
def test_parties_sign_the_word(promise: tuple[float, float]) -> None:
    asked: dict[str, Any] = {"epsilon": promise[0], "delta": promise[1]}
    with pytest.raises(ValueError, match="hardly private"):
        JointTraining(**PARTIES, **asked)
    accepted = JointTraining(**PARTIES, **asked, accept_weak_privacy=True)
    assert "hardly private" in str(accepted.weakness)
    assert b'"accept_weak_privacy":true' in accepted.canonical()


class TestEpsilonMustBeStated:
    @pytest.mark.parametrize(
        "estimator",
        [
            PrivateLogisticRegression(**ARRAYS),
            PrivateSVC(**ARRAYS),
            PrivateRegressor(norm_bound=1.0, target_bounds=(0, 1)),
            PrivateSVC(**ARRAYS, kernel="rbf", public_points=X[:5], mechanism="function_release"),
        ],
        ids=lambda estimator: type(estimator).__name__,
    )
    def test_in_fit_and_in_plan(self, estimator: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"epsilon is not stated. .*epsilon=1\.0"):
            estimator.fit(X, Y)
        with pytest.raises(InvalidParameter, match="epsilon is not stated"):
            plan(estimator, 100)

    def test_in_a_search(self) -> None:
        with pytest.raises(InvalidParameter, match="epsilon is not stated"):
            PrivateGridSearch(
                PrivateLogisticRegression(**ARRAYS),
                {"regularization": [0.1, 0.2]},
                epsilon=None,  # type: ignore[arg-type]
            ).fit(X, Y)


class TestNothingRecorded:
    @pytest.fixture(autouse=True)
    def _not_yet_said(self) -> Iterator[None]:
        _warn_that_nothing_is_recorded.cache_clear()
        yield
        _warn_that_nothing_is_recorded.cache_clear()

    @pytest.mark.parametrize("make", MAKERS)
    def test_said_once(self, make: Maker, tmp_path: Path) -> None:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            make(tmp_path, epsilon=1.0, delta=1e-6)
            made_by_estimator(tmp_path, epsilon=1.0)
        assert [warning.category for warning in said] == [NothingRecorded]
        assert "ledger=" in str(said[0].message)

    def test_with_a_ledger_or_without_a_promise_there_is_nothing_to_say(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "budgets.db", "people", Guarantee(5.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made_by_estimator(tmp_path, epsilon=1.0, ledger=ledger)
            made_by_estimator(tmp_path, epsilon=1.0, random_state=0)
            made_by_estimator(tmp_path, epsilon=math.inf)

    def test_a_filter_silences_it(self) -> None:
        code = (
            "import warnings, numpy as np, privlearn\n"
            "warnings.simplefilter('error')\n"
            "warnings.simplefilter('ignore', privlearn.NothingRecorded)\n"
            "model = privlearn.PrivateLogisticRegression(epsilon=1.0, norm_bound=1.0, classes=[0, 1])\n"
            "model.fit(np.eye(2), [0, 1])\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["add_one", "", None, 1, ["zero_out"]])
def test_an_unknown_relation_is_refused_wherever_it_is_named(name: object) -> None:
    with pytest.raises(InvalidParameter, match="replace_one"):
        get_relation(name)
    with pytest.raises(InvalidParameter, match="neighbours must be one of"):
        Guarantee(1.0, 0.0, name)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="neighbours must be one of"):
        Task(Logistic(), 10, 2, 1, 0.1, 1e-10, name)  # type: ignore[arg-type]


def test_no_fact_has_a_default() -> None:
    assert all(
        field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        for field in dataclasses.fields(Relation)
    )


def test_a_name_is_given_once() -> None:
    with pytest.raises(InvalidParameter, match="already"):
        register_relation(dataclasses.replace(RELATIONS["zero_out"], gradients=2))
    register_relation(RELATIONS["zero_out"])  # a module that is imported again


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_facts_follow_from_how_many_records_are_at_stake(relation: Relation) -> None:
    assert relation.gradients == (2 if relation.replaces else 1)
    assert relation.moments**2 == pytest.approx(relation.gradients)
    assert relation.counts**2 == pytest.approx(relation.gradients)
    assert relation.replacing == (1 if relation.replaces else 2)
