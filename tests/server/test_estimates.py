"""What is told before anything is spent is what then happens; and it is told from public facts alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn.data import CategoryColumn, NumberColumn, Schema, SchemaEncoder, Target, TextColumn
from privlearn.errors import InvalidParameter, PrivlearnError
from privlearn.estimators.forecast import forecast_session, plan, synthetic_table
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import FunctionRelease, TightPINP
from privlearn.server import TooLarge
from privlearn.server.holder import Catalog, OfferedDataSet, Recipe, estimator, kernel_learner
from privlearn.server.job_kinds import training
from privlearn.server.job_kinds.training import calibrate_training, estimate_training
from privlearn.sessions import InteractivePredictor
from tests.support.service_support import SCHEMA, load_clinic

PROMISE = Guarantee(1.0, 1e-6)
SVM = Recipe(model="svm")
POLYNOMIAL = Recipe(model="svm", kernel="polynomial")
NUMBER = Schema(
    name="houses",
    columns={
        "area": NumberColumn(lower=10, upper=500, scale="log"),
        "quiet": CategoryColumn(values=(True, False)),
    },
    target=Target(name="price", lower=1000, upper=9000),
    person="owner",
)
SEVERAL = Schema(
    name="letters",
    columns={"text": TextColumn(features=512), "year": CategoryColumn(values=(1, 2, 3), unknown="other")},
    target=Target(name="author", classes=(7, 8, 9)),
)


@pytest.fixture
def offered(tmp_path: Path) -> OfferedDataSet:
    return Catalog(load_clinic(tmp_path, rows=2000)).find("clinic")


@settings(max_examples=20)
@given(
    schema=st.sampled_from([SCHEMA, NUMBER, SEVERAL]), rows=st.integers(1, 60), seed=st.integers(0, 2**32 - 1)
)
def test_made_up_rows_fit_their_schema(schema: Schema, rows: int, seed: int) -> None:
    table = synthetic_table(schema, rows, seed)
    encoder, target = SchemaEncoder(schema), schema.target
    assert target is not None
    assert encoder.encode(table).shape[0] == rows
    answers = table[target.name]
    if target.classes:
        assert set(answers.to_pylist()) <= set(target.classes)
    else:
        assert min(answers.to_pylist()) >= 1000
        assert max(answers.to_pylist()) <= 9000
    assert encoder.person_weights(table)[1] == rows
    assert table.equals(synthetic_table(schema, rows, seed))


def test_another_seed_gives_other_rows_under_the_same_rule() -> None:
    train, test = synthetic_table(SCHEMA, 3000, seed=0), synthetic_table(SCHEMA, 3000, seed=1)
    assert not train.equals(test)
    found = estimator(Recipe(model="logistic"), SCHEMA, Guarantee(float("inf"))).fit(train)
    assert 0.70 < found.score(test) < 0.85  # the best there is, by the typical problem, is 0.78
    balance = np.mean(np.array(test["outcome"].to_pylist()) == "ill")
    assert 0.4 < balance < 0.6


@pytest.mark.parametrize(("rows", "seed"), [(0, 0), (10**7, 0), (10, -1), (10, 2**32)])
def test_made_up_rows_have_limits(rows: int, seed: int) -> None:
    with pytest.raises(InvalidParameter):
        synthetic_table(SCHEMA, rows, seed)


def test_rows_without_a_target() -> None:
    assert synthetic_table(SCHEMA.model_copy(update={"target": None}), 5, seed=0).column_names == [
        "age",
        "dose",
        "sex",
    ]


def test_an_estimate_is_the_plan(offered: OfferedDataSet) -> None:
    told = estimate_training(offered, SVM, PROMISE)
    made = plan(estimator(SVM, offered.schema, PROMISE), offered.records)
    assert told == json.loads(json.dumps(made.to_dict())) | {"curve": told["curve"]}
    assert told["rows"] == 2000
    lost = [entry["lost"] for entry in told["curve"]]
    assert len(lost) == 25
    assert lost[0] > 0.9 > 0.2 > lost[-1]
    assert told["curve"][-1]["lost"] == made.at(epsilon=10.0).lost
    assert json.dumps(told)


def test_what_is_told_is_what_a_fit_runs(offered: OfferedDataSet) -> None:
    told = estimate_training(offered, SVM, PROMISE)
    mechanism = estimator(SVM, offered.schema, PROMISE).fit(offered.read_rows()).certificate_.mechanism
    assert told["noise_scale"] == mechanism.noise_scale
    assert told["regularization"] == mechanism.effective_regularization


@pytest.mark.parametrize("recipe", [SVM, POLYNOMIAL, Recipe(model="logistic", regularization=0.05)])
@pytest.mark.parametrize("name", ["function_release", "pinp"])
def test_what_is_told_is_what_a_session_runs(tmp_path: Path, recipe: Recipe, name: str) -> None:
    offered = Catalog(load_clinic(tmp_path, rows=150)).find("clinic")
    promise = Guarantee(4.0, 1e-5)
    told = estimate_training(offered, recipe, promise, name)
    learner = kernel_learner(recipe, offered.schema, promise).fit(offered.read_rows())
    with InteractivePredictor(learner, promise, name, state=tmp_path / "state") as session:
        mechanism = session.certificate.mechanism
    if isinstance(mechanism, FunctionRelease):
        assert told["noise_scale"] == told["worst_case"] == mechanism.noise_scale
        assert told["noise"] == pytest.approx(
            mechanism.noise_scale
        )  # these kernels are equally large everywhere
    else:
        assert isinstance(mechanism, TightPINP)
        assert told["noise_scale"] == mechanism.answer_scale
        assert told["noise"] == max(mechanism.threshold, mechanism.answer_scale)
    assert told["regularization"] == mechanism.kernel_task.task.regularization
    assert told["mechanism"] == name


def test_more_epsilon_is_never_worse_in_a_session(offered: OfferedDataSet) -> None:
    curve = estimate_training(offered, SVM, PROMISE, "function_release")["curve"]
    lost = [entry["lost"] for entry in curve]
    assert lost == sorted(lost, reverse=True)


def test_points_make_any_kernel_a_model(offered: OfferedDataSet) -> None:
    points = offered.synthetic(40, seed=3).drop_columns(["outcome"])
    with pytest.raises(InvalidParameter, match="public points"):
        estimate_training(offered, POLYNOMIAL, PROMISE)
    told = estimate_training(offered, POLYNOMIAL, PROMISE, points=points)
    assert told["verdict"] in ("clear", "noisy", "drowned")
    calibrate_training(offered, POLYNOMIAL, PROMISE, "model", points)


@pytest.mark.parametrize(
    ("recipe", "guarantee", "mechanism", "points", "error"),
    [
        (POLYNOMIAL, PROMISE, "model", None, InvalidParameter),
        (SVM, PROMISE, "magic", None, InvalidParameter),
        (SVM, Guarantee(1.0), "function_release", None, InvalidParameter),
        (SVM, PROMISE, "function_release", "some", InvalidParameter),
        (SVM, PROMISE, "model", "many", TooLarge),
        (SVM, PROMISE, "model", "other", PrivlearnError),
    ],
    ids=[
        "no points",
        "no mechanism",
        "no delta",
        "session's points",
        "too many",
        "misfits",
    ],
)
def test_requests_that_are_refused_at_once(
    offered: OfferedDataSet,
    recipe: Recipe,
    guarantee: Guarantee,
    mechanism: str,
    points: Any,
    error: type[Exception],
) -> None:
    tables = {
        None: None,
        "some": offered.synthetic(5),
        "many": offered.synthetic(2001),
        "other": pa.table({"age": ["old"], "dose": [1.0], "sex": ["male"]}),
    }
    with pytest.raises(error):
        calibrate_training(offered, recipe, guarantee, mechanism, tables[points])


def test_requests_that_can_be_run(offered: OfferedDataSet) -> None:
    for mechanism in ("model", "function_release", "pinp"):
        calibrate_training(offered, SVM, PROMISE, mechanism, None)


def test_kernel_machines_have_a_size() -> None:
    learner = kernel_learner(SVM, SCHEMA, PROMISE)
    with pytest.raises(InvalidParameter, match=r"at most 32,768 records"):
        forecast_session(learner, 32_769, PROMISE, "function_release")
    with pytest.raises(InvalidParameter, match="mechanism is one of"):
        forecast_session(learner, 100, PROMISE, "tddl")
    with pytest.raises(InvalidParameter, match="needs a schema"):
        forecast_session(learner.set_params(schema=None), 100, PROMISE, "pinp")


@pytest.mark.parametrize("name", ["function_release", "pinp"])
def test_what_is_told_of_a_session_on_public_points_is_what_it_runs(tmp_path: Path, name: str) -> None:
    offered = Catalog(load_clinic(tmp_path, rows=150)).find("clinic")
    promise, points = Guarantee(4.0, 1e-5), offered.synthetic(20)
    recipe = Recipe(model="svm", kernel="rbf", gamma="auto")
    learner = kernel_learner(recipe, offered.schema, promise).set_params(public_points=points)
    made = forecast_session(learner, 150, promise, name)
    with InteractivePredictor(
        learner.fit(offered.read_rows()), promise, name, state=tmp_path / "a"
    ) as session:
        assert made.mechanism == session.certificate.mechanism
    assert forecast_session(learner, 10**6, promise, name).mechanism.task.total == 10**6


def test_points_of_the_schema_are_made_up_once(
    offered: OfferedDataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, other = offered.recipe("kernel"), Guarantee(0.5, PROMISE.delta)
    fresh = plan(estimator(kernel, offered.schema, other, public_points="schema"), offered.records)
    first = estimate_training(offered, kernel, PROMISE, points="schema")
    calibrate_training(offered, kernel, PROMISE, "model", "schema")
    monkeypatch.setattr(training, "fit_on_stand_ins", None)
    monkeypatch.setattr(training, "plan", None)  # whatever is planned anew now fails
    assert estimate_training(offered, kernel, PROMISE, points="schema") == first
    assert calibrate_training(offered, kernel, other, "model", "schema") == fresh.mechanism


@pytest.mark.parametrize("recipe", [SVM, Recipe(model="svm", kernel="rbf")])
def test_estimates_of_every_delta_share_one_set_up(
    offered: OfferedDataSet, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set-up takes a second and megabytes: each new delta of a request would let anybody fill the memory."""
    made: list[object] = []
    monkeypatch.setattr(training, "plan", lambda *args: made.append(args) or plan(*args))
    for delta in (1e-9, 3e-8, 1e-6):
        told = estimate_training(offered, recipe, Guarantee(0.5, delta))
        exact = plan(estimator(recipe, SCHEMA, Guarantee(0.5, delta)), offered.records).to_dict()
        assert {name: told[name] for name in exact} == exact
    assert len(made) == 1
