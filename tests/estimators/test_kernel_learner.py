"""The trusted side's kernel machine, and sessions that answer from it."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.svm import SVC

from privlearn import Ledger
from privlearn.arrays import Array
from privlearn.data import ArrayEncoder, Schema, census_schema
from privlearn.errors import DataError, InvalidParameter, SessionError
from privlearn.estimators import KernelLearner, PrivateSVC, kernel_fit
from privlearn.features import KERNEL_ROUNDING, Kernel, kernel_from_name, kernel_names
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session import kernel_rounding
from privlearn.sessions import InteractivePredictor
from privlearn.solvers import HuberHinge, minimise_kernel

PROMISE = Guarantee(2.0, 1e-5)


def ring(count: int = 300, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    X = np.random.default_rng(seed).uniform(-1, 1, size=(count, 2))
    return X, (np.linalg.norm(X, axis=1) < 0.8).astype(np.int64)


def learner(**settings: Any) -> KernelLearner:
    plain: dict[str, Any] = {"gamma": 4.0, "regularization": 0.05, "norm_bound": 1.5, "classes": [0, 1]}
    return KernelLearner(**(plain | settings))


KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "polynomial", "degree": 2, "gamma": 3.0},
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
    {"kernel": "cauchy"},
    {"kernel": lambda X, Z: (X @ Z.T) ** 2, "kernel_bound": 1.0},
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_one_record_moves_every_answer_by_no_more_than_the_sensitivity(
    kernel: dict[str, Any], neighbours: str
) -> None:
    """The changed record at its worst: it sits where we look, with the other label or, zeroed out, with weight 0."""
    X, y = ring(60)
    X[0] = [0.05, 0.05]
    probes = np.vstack([X[:1], ring(200, seed=9)[0]])
    for scale in (0.005, 0.3):
        fitted = learner(regularization=scale, **kernel).fit(X, y)
        facts = fitted.freeze().kernel_task(neighbours)
        before = fitted.decision_function(probes)
        if neighbours == "replace_one":
            other = learner(regularization=scale, **kernel).fit(X, np.where(np.arange(60) == 0, 1 - y, y))
        else:
            other = _without_first(learner(regularization=scale, **kernel), X, y)
        moved = np.max(np.abs(other.decision_function(probes) - before))
        assert moved <= facts.sensitivity


def _without_first(fitted: KernelLearner, X: Array, y: NDArray[np.int64]) -> KernelLearner:
    fitted.fit(X, y)
    weights = (np.arange(len(y)) > 0).astype(float)
    machine = fitted.freeze()
    rows = dataclasses.replace(machine.rows, person_weights=weights)
    fitted._machine = dataclasses.replace(machine, rows=rows, function=None).solve()
    return fitted


def test_the_sensitivity_is_nearly_reached() -> None:
    """A lone record, replaced by its opposite under strong regularization, moves the function by 2 L / (N Lambda)."""
    X = np.array([[1.0, 0.0]])
    settings: dict[str, Any] = {
        "kernel": "linear",
        "fit_intercept": False,
        "norm_bound": 1.0,
        "regularization": 10.0,
    }
    one, two = (learner(**settings).fit(X, [label]) for label in (0, 1))
    moved = abs(two.decision_function(X) - one.decision_function(X))[0, 0]
    assert (
        0.999 * one.freeze().kernel_task("replace_one").sensitivity
        < moved
        <= one.freeze().kernel_task("replace_one").sensitivity
    )


def test_the_function_is_that_of_a_support_vector_machine() -> None:
    X, y = ring()
    ours = learner(kernel="rbf", loss="hinge", regularization=0.01).fit(X, y)
    machine = ours.freeze()
    rows = machine.encode(X)
    theirs = SVC(C=1 / (0.01 * len(y)), kernel="precomputed", tol=1e-8).fit(machine.similarity(rows, rows), y)

    # SVC has a free intercept, ours none: compare the objective at our function and at theirs without it
    def objective(values: Array, norm: Any) -> float:
        return float(np.mean(np.maximum(0, 1 - (2 * y - 1) * values)) + 0.005 * norm)

    gram = machine.similarity(rows, rows)
    dual = np.zeros(len(y))
    dual[theirs.support_] = theirs.dual_coef_[0]
    assert machine.function is not None
    ours_value = objective(gram @ machine.function[0], machine.function[0] @ gram @ machine.function[0])
    assert ours_value <= objective(gram @ dual, dual @ gram @ dual) + 1e-9
    assert np.mean((ours.decision_function(X)[:, 0] > 0) == y) > 0.9


@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_a_session_from_fit_to_reopening(tmp_path: Path, mechanism: str) -> None:
    X, y = ring(1200)
    path = tmp_path / "ring.session"
    auto = {"regularization": "auto", "guarantee": Guarantee(8.0, 1e-5)}
    session = InteractivePredictor(
        learner(**auto).fit(X, y), Guarantee(8.0, 1e-5), mechanism, state=path, random_state=0
    )
    test, truth = ring(100, seed=5)
    labels = session.predict(test)
    if mechanism == "function_release":
        assert np.mean(labels == truth) > 0.8
    session.close()
    again = InteractivePredictor.reopen(path, learner(**auto).fit(X, y), random_state=1)
    assert np.array_equal(again.predict(test[::-1]), labels[::-1])
    again.close()
    with pytest.raises(SessionError, match="other records"):
        InteractivePredictor.reopen(path, learner(**auto).fit(X, 1 - y))


def test_a_learner_that_only_read_is_solved_after_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = ring(100)
    ledger = Ledger.create(tmp_path / "budgets.db", "ring", Guarantee(8.0, 1e-5))
    promise, seen = Guarantee(4.0, 1e-6), []
    solve = minimise_kernel

    def solve_and_look(*given: Any, **settings: Any) -> Any:
        seen.append(ledger.statement().reserved.epsilon)
        return solve(*given, **settings)

    monkeypatch.setattr(kernel_fit, "minimise_kernel", solve_and_look)
    read = learner().read(X, y)
    with InteractivePredictor(read, promise, state=tmp_path / "new.session", ledger=ledger) as session:
        assert seen == [4.0]
        assert session._learner.function_bytes() == learner().fit(X, y).freeze().function_bytes()


@pytest.mark.parametrize("regularization", [1e-8, 1e-12])
def test_a_regularization_that_some_table_cannot_stand_is_refused_before_it_is_solved(
    regularization: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_fit, "minimise_kernel", _unwanted)
    X, y = ring(60)
    twins = np.repeat(X[:30], 2, axis=0)
    for rows in (X, twins):
        with pytest.raises(InvalidParameter, match="too small for this kernel"):
            learner(regularization=regularization).fit(rows, y)


def test_twins_with_opposite_labels_do_not_stop_the_solver() -> None:
    """The review's neighbours: one record replaced by another's twin with the other label."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y == 1, 0.3, -0.3)
    twins, labels = X.copy(), y.copy()
    twins[0], labels[0] = X[1], 1 - y[1]
    for regularization in (1e-6, 1e-7):
        for rows, answers in ((X, y), (twins, labels)):
            settings: dict[str, Any] = {"gamma": 1.0, "norm_bound": 2.0, "classes": [0, 1]}
            KernelLearner(regularization=regularization, **settings).fit(rows, answers)


def test_a_learner_that_only_read_goes_on_with_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = ring(100)
    path, test = tmp_path / "ring.session", ring(20, seed=5)[0]
    promise = Guarantee(4.0, 1e-6)
    fitted = learner().fit(X, y)
    with InteractivePredictor(fitted, promise, state=path, random_state=0) as session:
        session.predict(test)
    monkeypatch.setattr(kernel_fit, "minimise_kernel", _unwanted)
    read = learner().read(X, y)
    for private in (read.freeze().function_bytes, lambda: read.decision_function(test)):
        with pytest.raises(SessionError, match="not been fitted"):
            private()
    with InteractivePredictor.reopen(path, read, random_state=1) as again:
        again.predict(test / 2)
        assert again._learner.function_bytes() == fitted.freeze().function_bytes()
    with pytest.raises(SessionError, match="other rows"):
        learner().read(X[:50], y[:50]).freeze().restore_function(fitted.freeze().function_bytes())


def _unwanted(problem: object) -> None:
    raise AssertionError("solved a second time")


def test_a_schema_and_a_single_record(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "name": "clinic",
            "columns": {
                "age": {"type": "number", "lower": 0, "upper": 100},
                "sex": {"type": "category", "values": ["f", "m"]},
            },
            "target": {"name": "ill", "classes": ["no", "yes"]},
        }
    )
    rng = np.random.default_rng(0)
    age, sex = rng.integers(0, 100, 200), rng.choice(["f", "m"], 200)
    table = {"age": age, "sex": sex, "ill": np.where(age > 50, "yes", "no")}
    fitted = KernelLearner(schema=schema, regularization=0.1).fit(table)
    session = InteractivePredictor(fitted, PROMISE, state=tmp_path / "a.session")
    label = session.predict({"age": 70, "sex": "f"})
    assert label in ("no", "yes")
    assert session.predict({"age": [70, 20], "sex": ["f", "m"]})[0] == label
    assert session.certificate.is_private
    assert session.certificate.to_dict()["learner"]["encoding"]["dataset"] == "clinic"


def wave(count: int = 300, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(count, 2))
    return X, 50.0 + 40.0 * np.sin(3 * X[:, 0]) * X[:, 1] + rng.normal(size=count)


def thirds(count: int = 300, seed: int = 0) -> tuple[Array, NDArray[np.str_]]:
    X = np.random.default_rng(seed).uniform(-1, 1, size=(count, 2))
    return X, np.array(["in", "mid", "out"])[np.digitize(np.linalg.norm(X, axis=1), [0.6, 1.0])]


NUMBER = {"classes": None, "target_bounds": (0.0, 100.0)}
THREE = {"classes": ["in", "mid", "out"]}


@pytest.mark.parametrize("loss", ["huber", "clipped_square"])
@pytest.mark.parametrize("kernel", [{"kernel": "rbf"}, {"kernel": "polynomial", "gamma": 3.0}])
def test_one_record_moves_a_regression_by_no_more_than_the_sensitivity(
    kernel: dict[str, Any], loss: str
) -> None:
    """The changed record at its worst: where we look, its number at the other bound."""
    X, y = wave(60)
    X[0] = [0.05, 0.05]
    probes = np.vstack([X[:1], wave(200, seed=9)[0]])
    for scale in (0.005, 0.3):
        settings: dict[str, Any] = NUMBER | kernel | {"regularization": scale, "loss": loss}
        low, high = (
            learner(**settings).fit(X, np.where(np.arange(60) == 0, bound, y)) for bound in (0.0, 100.0)
        )
        moved = np.max(np.abs(low.decision_function(probes) - high.decision_function(probes)))
        allowed = low.freeze().kernel_task("replace_one").sensitivity
        assert moved <= allowed
        assert low.freeze().kernel_task("replace_one").task.loss.lipschitz == (
            1.0 if loss == "huber" else 0.5
        )


def test_the_sensitivity_of_a_regression_is_nearly_reached() -> None:
    X = np.array([[1.0, 0.0]])
    settings: dict[str, Any] = {
        "kernel": "linear",
        "fit_intercept": False,
        "norm_bound": 1.0,
        "regularization": 10.0,
    }
    low, high = (learner(**NUMBER | settings).fit(X, [number]) for number in (0.0, 100.0))
    moved = abs(high.decision_function(X) - low.decision_function(X))[0, 0]
    assert (
        0.999 * low.freeze().kernel_task("replace_one").sensitivity
        < moved
        <= low.freeze().kernel_task("replace_one").sensitivity
    )


def test_one_record_moves_each_of_several_functions_by_no_more_than_the_sensitivity() -> None:
    X, y = thirds(60)
    X[0] = [0.05, 0.05]
    probes = np.vstack([X[:1], thirds(200, seed=9)[0]])
    for scale in (0.005, 0.3):
        one, two = (
            learner(**THREE, loss="huber_hinge", regularization=scale).fit(
                X, np.where(np.arange(60) == 0, label, y)
            )
            for label in ("in", "out")
        )
        moved = np.abs(one.decision_function(probes) - two.decision_function(probes))
        assert np.max(moved) <= one.freeze().kernel_task("replace_one").sensitivity
        assert moved.shape == (201, 3)


def test_one_record_moves_the_softmax_by_no_more_than_the_sensitivity_of_all_functions_together() -> None:
    """sqrt(2) for one function's 1, whatever the number of classes; nearly reached by a lone record."""
    X, y = thirds(60)
    X[0] = [0.05, 0.05]
    probes = np.vstack([X[:1], thirds(200, seed=9)[0]])
    for scale in (0.005, 0.3):
        one, two = (
            learner(**THREE, regularization=scale).fit(X, np.where(np.arange(60) == 0, label, y))
            for label in ("in", "out")
        )
        moved = np.linalg.norm(one.decision_function(probes) - two.decision_function(probes), axis=1)
        facts = one.freeze().kernel_task("replace_one")
        assert np.max(moved) <= facts.sensitivity
        assert facts.task.minimiser_sensitivity == pytest.approx(2.0 * math.sqrt(2.0) / (60 * scale))
        assert (facts.functions, facts.task.problems) == (3, 1)


@pytest.mark.parametrize("landmarks", [False, True])
def test_a_softmax_session_has_probabilities(tmp_path: Path, landmarks: bool) -> None:
    X, y = thirds(900)
    promise = Guarantee(8.0, 1e-5)
    settings: dict[str, Any] = THREE | {"regularization": "auto", "guarantee": promise}
    if landmarks:
        settings["public_points"] = thirds(80, seed=8)[0]
    fitted = learner(**settings).fit(X, y)
    with InteractivePredictor(fitted, promise, state=tmp_path / "p.session", random_state=0) as session:
        test, truth = thirds(200, seed=5)
        found = session.predict_proba(test)
        assert found.sum(axis=1) == pytest.approx(1.0)
        assert np.mean(np.array(THREE["classes"])[np.argmax(found, axis=1)] == truth) > 0.6
        assert np.array_equal(session.predict(test), np.array(THREE["classes"])[np.argmax(found, axis=1)])


def test_one_record_can_move_all_functions_at_once() -> None:
    """A lone record, replaced by its mirror image: hence the root of the number of classes in the noise."""
    X = np.array([[1.0, 0.0]])
    settings: dict[str, Any] = {
        "kernel": "linear",
        "fit_intercept": False,
        "norm_bound": 1.0,
        "regularization": 10.0,
    }
    settings |= {"loss": "huber_hinge"}
    one, two = (learner(**THREE, **settings).fit(sign * X, ["mid"]) for sign in (1.0, -1.0))
    moved = np.abs(one.decision_function(X) - two.decision_function(X))[0]
    allowed = one.freeze().kernel_task("replace_one").sensitivity
    assert np.all(moved <= allowed)
    assert np.all(moved > 0.999 * allowed)


def test_a_session_answers_with_numbers(tmp_path: Path) -> None:
    X, y = wave(1500)
    path, promise = tmp_path / "wave.session", Guarantee(8.0, 1e-5)
    settings: dict[str, Any] = NUMBER | {"regularization": "auto", "guarantee": promise, "gamma": 2.0}
    session = InteractivePredictor(learner(**settings).fit(X, y), promise, state=path, random_state=0)
    test, truth = wave(200, seed=5)
    answers = session.decide(test)
    assert np.mean((answers.predictions - truth) ** 2) < 0.5 * np.var(truth)
    assert np.all((answers.predictions >= 0.0) & (answers.predictions <= 100.0))
    inside = np.abs(answers.scores) < 1.0
    assert np.allclose(answers.predictions[inside], 50.0 + 50.0 * answers.scores[inside])
    assert isinstance(session.predict(test[0]), float)
    assert session.certificate.to_dict()["learner"]["target_bounds"] == [0.0, 100.0]
    session.close()
    again = InteractivePredictor.reopen(path, learner(**settings).fit(X, y), random_state=1)
    assert np.array_equal(again.predict(test), answers.predictions)
    again.close()
    with pytest.raises(SessionError, match="other records"):
        InteractivePredictor.reopen(path, learner(**settings).fit(X, y[::-1]))


def test_a_session_tells_several_classes_apart(tmp_path: Path) -> None:
    X, y = thirds(1500)
    path, promise = tmp_path / "thirds.session", Guarantee(8.0, 1e-5)
    settings: dict[str, Any] = THREE | {"regularization": "auto", "guarantee": promise}
    fitted = learner(**settings).fit(X, y)
    session = InteractivePredictor(fitted, promise, state=path, random_state=0)
    test, truth = thirds(200, seed=5)
    answers = session.decide(test)
    assert np.mean(answers.predictions == truth) > 0.6
    assert answers.scores.shape == (200, 3)
    assert session.decide(test[0]).scores.shape == (3,)
    assert session.predict(test[0]) == answers.predictions[0]
    session.close()
    again = InteractivePredictor.reopen(path, fitted, random_state=1)
    assert np.array_equal(again.decide(test[::-1]).scores, answers.scores[::-1])
    again.close()


def test_a_schema_whose_target_is_a_number(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "name": "flats",
            "columns": {"area": {"type": "number", "lower": 0, "upper": 100}},
            "target": {"name": "rent", "lower": 0, "upper": 2000},
        }
    )
    area = np.random.default_rng(0).uniform(0, 100, 300)
    fitted = KernelLearner(schema=schema, regularization=1e-4).fit({"area": area, "rent": 15.0 * area})
    session = InteractivePredictor(fitted, Guarantee(math.inf), state=tmp_path / "a.session", random_state=0)
    assert session.predict({"area": 50.0}) == pytest.approx(750.0, abs=20.0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"target_bounds": (0.0, 1.0)}, "Leave one of them out"),
        ({"classes": None}, "classes="),
        (NUMBER | {"loss": "hinge"}, "huber, clipped_square"),
        ({"loss": "huber"}, "huber_hinge"),
        (NUMBER | {"class_weight": {0: 2.0}}, "Leave class_weight out"),
        (NUMBER | {"target_bounds": (1.0, 0.0)}, "target_bounds"),
        ({"schema": census_schema()}, "schema declares columns and target"),
    ],
)
def test_what_contradicts_itself_is_refused(settings: dict[str, Any], says: str) -> None:
    X, y = ring(30)
    with pytest.raises(InvalidParameter, match=says):
        learner(**settings).fit(X, y)


def test_a_foreign_loss_is_refused() -> None:
    """It could be steeper than its constants say."""

    class Steep(HuberHinge):
        pass

    X, y = ring(30)
    with pytest.raises(InvalidParameter, match="loss must be one of"):
        learner(loss=Steep()).fit(X, y)
    assert learner(loss=HuberHinge(0.2)).fit(X, y).freeze().kernel_task("zero_out").task.loss == HuberHinge(
        0.2
    )


def test_auto_regularization_looks_at_public_numbers_only() -> None:
    X, y = ring()
    settings: dict[str, Any] = {"regularization": "auto", "guarantee": PROMISE}
    one, two = learner(**settings).fit(X, y), learner(**settings).fit(X / 2, 1 - y)
    assert one.freeze().kernel_task("replace_one") == two.freeze().kernel_task("replace_one")
    for guarantee, says in ((None, "epsilon="), (1.0, "Guarantee"), (Guarantee(1.0), "delta > 0")):
        with pytest.raises(InvalidParameter, match=says):
            learner(regularization="auto", guarantee=guarantee).fit(X, y)


def test_refusals() -> None:
    X, y = ring(30)
    for settings in ({"kernel": "precomputed", "kernel_bound": 1.0}, {"loss": "squared"}, {"regularization": 0.0},
                     {"classes": None}, {"norm_bound": None}, {"gamma": 1e6}):  # fmt: skip
        with pytest.raises(InvalidParameter):
            learner(**settings).fit(X, y)
    long = learner(kernel=lambda A, B: 9.0 * A @ B.T, kernel_bound=1.0)
    with pytest.raises(DataError, match="bound"):
        long.fit(X, y)


def test_private_rows_do_not_travel() -> None:
    X, y = ring(30)
    fitted = learner().fit(X, y)
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SessionError, match="private rows"):
            travel(fitted)
    assert repr(fitted) == repr(learner())


@pytest.mark.parametrize("name", kernel_names())
@pytest.mark.parametrize("gamma", [0.1, 2.0, 20.0])
def test_kernel_values_are_as_precise_as_stated(name: str, gamma: float) -> None:
    """Against the formulas in extended precision."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 30))
    points /= np.linalg.norm(points, axis=1, keepdims=True) * (1 + 1e-12)
    points[1] = points[0] + 1e-9
    points[1] /= 1 + 1e-8
    kernel: Kernel = kernel_from_name(name, gamma=gamma)
    wide = points.astype(np.longdouble)
    product, difference = wide @ wide.T, wide[:, None] - wide[None]
    formulas = {
        "linear": product,
        "polynomial": (np.longdouble(gamma) * product + 1) ** 3,
        "rbf": np.exp(-np.longdouble(gamma) * np.sum(difference**2, axis=2)),
        "laplacian": np.exp(-np.longdouble(gamma) * np.sum(np.abs(difference), axis=2)),
        "cauchy": 1 / np.prod(1 + (np.longdouble(gamma) * difference) ** 2, axis=2),
    }
    assert name in formulas, f"write the formula of the kernel {name} out in extended precision"
    exact = formulas[name]
    error = float(np.max(np.abs(kernel(points, points) - exact))) / kernel.bound
    assert error <= kernel_rounding(kernel, 30) <= KERNEL_ROUNDING
    assert math.isfinite(error)


def test_gamma_auto_is_the_rule_of_the_other_estimators() -> None:
    X, y = ring()
    read = learner(gamma="auto").read(X, y)
    assert read.kernel_.to_dict() == {"kernel": "rbf", "gamma": 1.0 + 24.0 / 2}
    fitted = PrivateSVC(kernel="rbf", gamma="auto", norm_bound=1.5, classes=[0, 1], epsilon=1.0, delta=1e-6)
    assert isinstance(read.encoder_, ArrayEncoder)
    assert read.kernel_ == fitted.select_kernel(read.encoder_)
    bounded = learner(gamma="auto", norm_bound=None, column_bounds=[(-1, 1), (-1, 1)])
    assert bounded.read(X, y).kernel_.to_dict()["gamma"] == 0.5
    on_points = learner(gamma="auto", public_points=X[:20]).read(X[20:], y[20:])
    assert on_points.freeze().describe()["encoding"]["landmarks"] == {"kernel": "rbf", "gamma": 13.0}
    assert learner(gamma="auto", kernel="polynomial").read(X, y).kernel_.to_dict()["gamma"] == 1.0
    with pytest.raises(InvalidParameter, match="gamma must be 'auto'"):
        learner(gamma="scale").read(X, y)
