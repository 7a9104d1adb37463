"""What every mechanism, loss and estimator must do, over the lists."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from privlearn import PrivateLogisticRegression, PrivateRegressor, PrivateSVC
from privlearn.arrays import Array
from privlearn.data import ArrayEncoder, Schema
from privlearn.errors import InvalidParameter
from privlearn.estimators import ESTIMATORS
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import ObjectivePerturbation, Task
from privlearn.solvers import LOSSES, HuberHinge, Multinomial, loss_from_name, losses_of
from tests.support.combinations import PLANS, Plan, every_plan
from tests.support.rows import dense

RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=80) > 0).astype(int) + (X[:, 1] > 1.0)
OWNERS = {name: e for e in ESTIMATORS for name, kind in LOSSES.items() if e._takes(kind)}
LAWFUL = [(estimator, loss) for loss, estimator in OWNERS.items() if loss in losses_of("margin")]


def fitted(estimator: Any, **parameters: Any) -> Any:
    return estimator(norm_bound=3.0, **parameters)


def gradient(
    rows: Array, signs: Array, loss: Any, regularization: float, w: Array, offset: float = 0.0
) -> Array:
    """Return the gradient of J, written independently."""
    slopes = loss.first_derivative(signs * (rows @ w + offset))
    return np.asarray(rows.T @ (signs * slopes) / len(rows) + regularization * w)


@pytest.mark.parametrize(("estimator", "loss"), LAWFUL, ids=str)
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_infinite_epsilon_is_the_plain_minimiser(
    estimator: Any, loss: str, mechanism: str, n_classes: int
) -> None:
    """To 1e-8: strong convexity turns the gradient found here into a distance from the exact minimiser."""
    if loss == "hinge" and mechanism == "objective":
        pytest.skip("the hinge has no curvature bound: objective perturbation refuses it")
    y = np.minimum(Y, n_classes - 1)
    strength = 0.05
    model = fitted(
        estimator,
        epsilon=math.inf,
        loss=loss,
        mechanism=mechanism,
        classes=list(range(n_classes)),
        regularization=strength,
    ).fit(X, y)
    rows = dense(ArrayEncoder(3.0, 3).encode(X))
    positives = [1] if n_classes == 2 else range(n_classes)
    offsets = model.release_.model.constants
    for w, positive, offset in zip(model.coefficients_, positives, offsets, strict=True):
        signs = np.where(y == positive, 1.0, -1.0)
        share = np.mean(y == positive)
        assert offset == pytest.approx(math.log(share / (1.0 - share)) if loss == "logistic" else 0.0)
        if loss == "hinge":
            assert w == pytest.approx(hinge_minimiser(rows, signs, strength), abs=2e-5)
        else:
            left = np.linalg.norm(gradient(rows, signs, loss_from_name(loss), strength, w, offset))
            assert left / strength <= 1e-8


def hinge_minimiser(rows: Array, signs: Array, regularization: float) -> Array:
    """Return the minimiser by its dual, a quadratic programme in a box, with scipy."""
    signed = rows * signs[:, np.newaxis]
    kappa = regularization * len(rows)

    def dual(alpha: Array) -> tuple[float, Array]:
        pull = signed.T @ alpha
        return float(pull @ pull / (2.0 * kappa) - alpha.sum()), signed @ pull / kappa - 1.0

    found = minimize(
        dual,
        np.full(len(rows), 0.5),
        jac=True,
        bounds=[(0.0, 1.0)] * len(rows),
        method="L-BFGS-B",
        options={"maxiter": 20_000, "ftol": 1e-16, "gtol": 1e-12},
    )
    return np.asarray(signed.T @ found.x / kappa)


def test_infinite_epsilon_of_the_multinomial_loss() -> None:
    model = PrivateLogisticRegression(
        epsilon=math.inf, loss="multinomial", classes=[0, 1, 2], norm_bound=3.0, regularization=0.05
    ).fit(X, Y)
    rows = ArrayEncoder(3.0, 3).encode(X)
    scores = rows @ model.coefficients_.T + np.log(np.bincount(Y) / len(Y))
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    residuals = odds / odds.sum(axis=1, keepdims=True) - np.eye(3)[Y]
    left = residuals.T @ rows / len(rows) + 0.05 * model.coefficients_
    assert np.linalg.norm(left) / 0.05 <= 1e-8


@every_plan
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_infinite_epsilon_promises_nothing_and_adds_nothing(plan: Plan, loss: str) -> None:
    parameters = plan.parameters(1.0, expected=len(X)) | {"epsilon": math.inf, "delta": 0.0}
    settings: dict[str, Any] = {"classes": [0, 1, 2], "loss": loss, "regularization": 0.05}
    model = fitted(PrivateLogisticRegression, **parameters, **settings, centre=False).fit(X, Y)
    # the papers' calibrations have no offsets
    settings |= {"calibration": plan.calibration, "noise": plan.noise, "mechanism": plan.mechanism}
    plain = fitted(PrivateLogisticRegression, epsilon=math.inf, **settings, centre=False).fit(X, Y)
    # where more records than expected must not stop it, the solver may be less precise
    exact = model.certificate_.task.tolerance == plain.certificate_.task.tolerance
    assert model.coefficients_ == pytest.approx(plain.coefficients_, abs=0.0 if exact else 2e-8)
    assert exact or plan.neighbours == "add_remove"
    assert not model.certificate_.is_private
    assert "no privacy" in str(model.certificate_)


@every_plan
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_huge_epsilon_comes_near_the_plain_minimiser(plan: Plan, loss: str) -> None:
    """Continuity: nothing but noise stands between the private and the plain model."""
    settings: dict[str, Any] = {"classes": [0, 1, 2], "loss": loss, "regularization": 0.05}
    parameters = plan.parameters(1e4, 0.5, expected=len(X)) | settings
    parameters |= {"random_state": 0}
    model = fitted(PrivateLogisticRegression, **parameters).fit(X, Y)
    plain = fitted(PrivateLogisticRegression, **parameters | {"epsilon": math.inf}).fit(X, Y)
    assert type(model.release_.model.encoder) is type(plain.release_.model.encoder)
    assert model.decision_function(X) == pytest.approx(plain.decision_function(X), abs=0.1)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, PrivateRegressor], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("from_schema", [False, True])
def test_the_limit_of_private_models_is_that_without_privacy(
    estimator: Any, delta: float, from_schema: bool
) -> None:
    """All defaults but the regularization: encoding, statistics, offsets and centring are the limit's."""
    generator = np.random.default_rng(3)
    rows = generator.uniform(-1.0, 1.0, size=(1500, 2))
    answers = (rows[:, 0] + 0.3 * generator.normal(size=1500) > 0.7).astype(int)
    settings: dict[str, Any] = {"delta": delta, "random_state": 0, "accept_weak_privacy": True}
    settings |= {"regularization": 1e-3}
    target: dict[str, Any] = (
        {"lower": -10.0, "upper": 10.0} if "Regressor" in estimator.__name__ else {"classes": [0, 1]}
    )
    if from_schema:
        columns = {name: {"type": "number", "lower": -1, "upper": 1} for name in "ab"}
        settings["schema"] = {
            "name": "t", "columns": columns, "target": {"name": "y", **target}, "one_row_per_person": True
        }  # fmt: skip
        table: Any = {"a": rows[:, 0], "b": rows[:, 1]}
    else:
        bounds = {"target_bounds": (-10.0, 10.0)} if "lower" in target else {"classes": [0, 1]}
        settings |= {"norm_bound": 1.5, **bounds}
        table = rows
    near, plain = (
        estimator(epsilon=epsilon, **settings).fit(table, answers).release_.model
        for epsilon in (1e7, math.inf)
    )
    assert type(near.encoder) is type(plain.encoder)
    assert near.encoder.dimension == plain.encoder.dimension
    assert (near.score_map is None) == (plain.score_map is None)
    scores = [
        model.predict(table) if "lower" in target else model.decision_function(table)
        for model in (near, plain)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.02 * float(np.ptp(scores[1])))


@every_plan
def test_more_privacy_means_more_noise(plan: Plan) -> None:
    scales = [plan.calibrate(epsilon).noise_scale for epsilon in (0.1, 0.5, 1.0, 4.0)]
    assert all(a > 1.1 * b for a, b in pairwise(scales))


@every_plan
def test_promise_is_stated_as_asked(plan: Plan) -> None:
    model = fitted(PrivateLogisticRegression, **plan.parameters(0.7), classes=[0, 1, 2]).fit(X, Y)
    assert model.certificate_.guarantee == plan.guarantee(0.7)
    assert model.certificate_.is_private
    assert model.certificate_.mechanism.spends() <= plan.guarantee(0.7)


@every_plan
def test_seeded_release_says_it_is_not_private(plan: Plan) -> None:
    model = fitted(PrivateLogisticRegression, **plan.parameters(0.7), classes=[0, 1, 2], random_state=1)
    model.fit(X, Y)
    assert not model.certificate_.is_private
    assert "NOT PRIVATE" in str(model.certificate_)


@every_plan
def test_unknown_combination_is_refused(plan: Plan) -> None:
    for other in PLANS:
        lawful = any(
            (p.mechanism, p.noise, p.calibration) == (plan.mechanism, other.noise, other.calibration)
            for p in PLANS
        )
        if not lawful:
            with pytest.raises(InvalidParameter):
                Plan(plan.mechanism, other.noise, other.calibration, plan.neighbours).calibrate(1.0)


def test_objective_perturbation_refuses_what_it_has_no_proof_for() -> None:
    with pytest.raises(InvalidParameter, match="output"):
        fitted(PrivateSVC, epsilon=1.0, classes=[0, 1, 2], loss="hinge", mechanism="objective").fit(X, Y)
    unknown = Task(Multinomial(), 1000, 12, 1, 0.05, 1e-10, "zero_out")
    assert "number of classes" in str(ObjectivePerturbation.explain_refusal(unknown, "norm_gamma"))


def test_gaussian_noise_needs_a_delta() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        fitted(PrivateSVC, epsilon=1.0, classes=[0, 1, 2], noise="gaussian").fit(X, Y)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_class_weights_enter_the_sensitivity(mechanism: str) -> None:
    weights = {0: 0.5, 2: 4.0}
    model = fitted(PrivateSVC, epsilon=1.0, classes=[0, 1, 2], mechanism=mechanism, class_weight=weights)
    together = model.fit(X, Y).certificate_.mechanism.task
    assert together.gradient_sensitivity == 2.0 * 4.0 * math.sqrt(2.0)
    assert together.curvature_ratio(1.0) == pytest.approx(4.0 * (2 / 3) / 80)
    task = model.set_params(loss="huber_hinge").fit(X, Y).certificate_.mechanism.task
    assert task.gradient_sensitivity == 2.0 * 4.0
    assert task.curvature_ratio(1.0) == pytest.approx(4.0 * task.loss.smoothness / 80)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_rows_of_a_person_enter_the_sensitivity(mechanism: str) -> None:
    """Without a column for persons each of a person's rows counts; with one they are averaged and count as one."""
    columns = {name: {"type": "number", "lower": -3, "upper": 3} for name in "abc"}
    target = {"name": "y", "classes": [0, 1, 2]}
    table = {name: X[:, j] for j, name in enumerate("abc")} | {"y": Y, "who": np.arange(80) // 4}
    facts = {"name": "t", "columns": columns, "target": target}
    for more, total, sensitivity in (({"rows_per_person": 4}, 80, 8.0), ({"person": "who"}, 20, 2.0)):
        schema = Schema.from_dict(facts | more)
        task = (
            PrivateSVC(epsilon=1.0, schema=schema, mechanism=mechanism).fit(table).certificate_.mechanism.task
        )
        assert (task.total, task.gradient_sensitivity) == (total, sensitivity * math.sqrt(2.0))
        assert task.averaged == ("person" in more)


def test_foreign_loss_under_a_listed_name_is_refused() -> None:
    """Its slopes need not be what its constants say."""

    class Steeper(HuberHinge):
        def first_derivative(self, z: Array) -> Array:
            return 100.0 * super().first_derivative(z)

    with pytest.raises(InvalidParameter, match="loss"):
        fitted(PrivateSVC, epsilon=1.0, classes=[0, 1, 2], loss=Steeper()).fit(X, Y)
    assert fitted(PrivateSVC, epsilon=1.0, classes=[0, 1, 2], loss=HuberHinge(0.2)).fit(X, Y)


def test_guarantees_compare_and_add() -> None:
    assert Guarantee(1.0) <= Guarantee(1.0, 1e-9)
    assert not Guarantee(1.0, 1e-9) <= Guarantee(1.0)
    assert Guarantee(0.5, 0.1) + Guarantee(0.25, 0.2) == Guarantee(0.75, 0.1 + 0.2)
    with pytest.raises(InvalidParameter, match="do not mix"):
        Guarantee(1.0, 0.0, "zero_out") + Guarantee(1.0)
    with pytest.raises(InvalidParameter, match="do not mix"):
        _ = Guarantee(1.0, 0.0, "zero_out") <= Guarantee(1.0)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, True, "1"])
def test_impossible_epsilons_are_refused(epsilon: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        Guarantee(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, True, "0"])
def test_impossible_deltas_are_refused(delta: Any) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        Guarantee(1.0, delta)
