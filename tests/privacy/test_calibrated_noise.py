"""How much noise leaves, for every plan: against the theorems written out anew, and in released coefficients."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from privlearn import PrivateLogisticRegression
from privlearn.arrays import Array
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import ObjectivePerturbation, OutputPerturbation, PrecomputedMinimisers, Task
from privlearn.randomness import SeededRandomness
from privlearn.solvers import HuberHinge, Logistic, Multinomial
from tests.support.combinations import PLANS, Plan, every_plan, hockey_stick, max_ratio
from tests.support.oracles import Solver

EPSILON, DELTA = 1.3, 1e-4
MAIN = 1.0 - 1e-2  # pure noise and RA12's keep a hundredth of epsilon for the solver's tolerance
BESIDE = 0.1  # elsewhere its noise has a tenth of the objective's ratio
ALARM = 1e-6


def expected_scale(plan: Plan, task: Task) -> float:
    """Return the noise scale by the theorems of docs/theory; for objective perturbation that need not raise Lambda."""
    moved = (2.0 if plan.neighbours == "replace_one" else 1.0) * task.loss.lipschitz
    moved *= task.weight_bound * task.rows_per_person
    kappa, problems, d = task.total * task.regularization, task.problems, task.dimension
    if plan.mechanism == "output":
        lemma = 2.0 if plan.calibration == "rbht" else 1.0
        distance = lemma * moved / kappa + 2.0 * task.tolerance / task.regularization
        pure = {"norm_gamma": problems * distance, "laplace": problems * math.sqrt(d) * distance}
        if plan.noise in pure:
            return pure[plan.noise] / EPSILON
        return math.sqrt(problems) * distance / max_ratio(EPSILON, DELTA)
    curvature = task.loss.smoothness * task.weight_bound / kappa
    rank = max(task.classes - 1, 1)
    if task.classes:
        curvature = (1.0 - 1.0 / task.classes) * task.weight_bound / kappa
    slack = curvature if task.averaged else task.rows_per_person * rank * math.log1p(curvature / rank)
    slack *= 1.0 if plan.calibration == "tight" else 2.0
    share = MAIN * EPSILON / problems - slack
    if plan.noise == "norm_gamma":
        return moved / share
    if plan.calibration == "ra12":
        quantile = stats.chi.isf(MAIN * DELTA / problems, d)
        return float(moved * (quantile + math.sqrt(quantile**2 + 2.0 * share)) / (2.0 * share))
    if problems == 1:
        return moved / corner_ratio(EPSILON - slack, DELTA, rank)
    # The slack is taken to be small and counted K times, and the curves to be those of Gaussian noise.
    ratio = max_ratio(EPSILON - problems * slack, DELTA) / math.hypot(1.0, BESIDE)
    return moved * math.sqrt(problems) / ratio


def corner_ratio(epsilon: float, delta: float, corners: int) -> float:
    """Return the ratio at which the deltas of all corners, and of 0 with the tolerance's noise, add up to delta."""

    def excess(ratio: float) -> float:
        return (
            corners * hockey_stick(epsilon, math.hypot(1.0, BESIDE) * ratio)
            + hockey_stick(epsilon, BESIDE * ratio)
            - delta
        )

    return float(brentq(excess, 1e-9, 100.0, xtol=1e-14))


FACTS = {
    "plain": {},
    "slack takes a third": {"total": 10, "regularization": 0.05},
    "heavy class": {"weight_bound": 3.0},
    "steep corner": {"loss": HuberHinge(0.1)},
    "several rows per person": {"rows_per_person": 3},
    "averaged persons": {"averaged": True},
    "loose solver": {"tolerance": 1e-3},
    "many coefficients": {"dimension": 1000},
}


@every_plan
@pytest.mark.parametrize("facts", FACTS.values(), ids=FACTS)
def test_scale_is_that_of_the_theorem(plan: Plan, facts: dict[str, Any]) -> None:
    mechanism = plan.calibrate(EPSILON, DELTA, **facts)
    if mechanism.explain_refusal(mechanism.task, plan.noise):
        pytest.skip("no theorem covers this, and the estimators refuse it")
    assert mechanism.noise_scale == pytest.approx(expected_scale(plan, mechanism.task), rel=1e-6)
    assert mechanism.effective_regularization == mechanism.task.regularization


@every_plan
def test_scale_for_several_classes(plan: Plan) -> None:
    mechanism = plan.calibrate(EPSILON, DELTA, problems=3, total=100_000)
    composed = plan.mechanism == "objective" and plan.noise == "gaussian" and plan.calibration == "tight"
    assert mechanism.noise_scale == pytest.approx(
        expected_scale(plan, mechanism.task), rel=2e-3 if composed else 1e-4
    )


SOFTMAX = {
    "three classes": {"classes": 3},
    "ten classes": {"classes": 10, "dimension": 20},
    "two classes": {"classes": 2},
    "heavy class": {"classes": 3, "weight_bound": 3.0},
    "slack takes a third": {"classes": 3, "total": 10, "regularization": 0.2},
    "several rows per person": {"classes": 3, "rows_per_person": 3},
    "averaged persons": {"classes": 3, "averaged": True},
}


@every_plan
@pytest.mark.parametrize("facts", SOFTMAX.values(), ids=SOFTMAX)
def test_scale_of_the_softmax_loss_is_that_of_the_theorem(plan: Plan, facts: dict[str, Any]) -> None:
    mechanism = plan.calibrate(EPSILON, DELTA, **{"loss": Multinomial(), "dimension": 6} | facts)
    if mechanism.explain_refusal(mechanism.task, plan.noise):
        assert {"rows_per_person", "averaged"} & set(facts)
        pytest.skip("no theorem covers this, and the estimators refuse it")
    assert mechanism.noise_scale == pytest.approx(expected_scale(plan, mechanism.task), rel=1e-6)
    assert mechanism.effective_regularization == mechanism.task.regularization


@pytest.mark.parametrize("noise", ["gaussian", "norm_gamma", "laplace"])
def test_scale_for_the_multinomial_loss(noise: str) -> None:
    plan = Plan("output", noise, "tight", "replace_one")
    mechanism = plan.calibrate(EPSILON, DELTA, loss=Multinomial(), dimension=12)
    assert mechanism.noise_scale == pytest.approx(expected_scale(plan, mechanism.task), rel=1e-6)
    moved = 2.0 * math.sqrt(2.0) / (1000 * 0.05)
    assert mechanism.task.minimiser_sensitivity == pytest.approx(moved)


@pytest.mark.parametrize("problems", [1, 3])
@pytest.mark.parametrize(
    "facts", [{}, {"rows_per_person": 3}, {"averaged": True}, {"weight_bound": 5.0}], ids=str
)
@pytest.mark.parametrize("plan", [p for p in PLANS if p.mechanism == "objective"], ids=str)
def test_regularization_is_raised_until_the_slack_takes_half(
    plan: Plan, problems: int, facts: dict[str, Any]
) -> None:
    mechanism = plan.calibrate(EPSILON, DELTA, total=10, regularization=1e-4, problems=problems, **facts)
    assert mechanism.slack == pytest.approx(MAIN * EPSILON / problems / 2.0, rel=1e-6)
    assert mechanism.effective_regularization > 1e-4
    assert mechanism.noise_scale > 0
    assert mechanism.spends() <= mechanism.guarantee


def statistic(noise: str, sample: Array, scale: float) -> tuple[float, Any]:
    """Return a sufficient statistic for the scale, one row per vector, and its distribution."""
    if noise == "gaussian":
        return float(np.sum((sample / scale) ** 2)), stats.chi2(sample.size)
    if noise == "laplace":
        return float(np.sum(np.abs(sample))) / scale, stats.gamma(sample.size)
    return float(np.sum(np.linalg.norm(sample, axis=1))) / scale, stats.gamma(sample.size)


def check_scale(noise: str, sample: Array, scale: float) -> None:
    value, law = statistic(noise, sample, scale)
    assert law.ppf(ALARM) < value < law.isf(ALARM)
    for wrong in (0.5, 2.0):  # the check bites
        value, _ = statistic(noise, wrong * sample, scale)
        assert not law.ppf(ALARM) < value < law.isf(ALARM)


@every_plan
@pytest.mark.parametrize(
    ("n_classes", "loss"), [(2, "logistic"), (3, "logistic"), (2, "multinomial"), (3, "multinomial")]
)
def test_released_coefficients_have_the_noise_of_the_theorem(plan: Plan, n_classes: int, loss: str) -> None:
    """With features of zeros the minimiser is -b / (N Lambda), so the release is noise alone."""
    d, n, strength = 300, 50, 200.0
    classes = list(range(n_classes))
    model = PrivateLogisticRegression(
        **plan.parameters(EPSILON, DELTA, expected=n),
        norm_bound=1.0,
        classes=classes,
        loss=loss,
        fit_intercept=False,
        regularization=strength,
        random_state=11,
    ).fit(np.zeros((n, d)), np.arange(n) % n_classes)
    task = Task(Logistic(), n, d, 1 if n_classes == 2 else n_classes, strength, 1e-10, plan.neighbours)
    if loss == "multinomial":
        task = Task(Multinomial(), n, n_classes * d, 1, strength, 1e-10, plan.neighbours, classes=n_classes)
    scale = expected_scale(plan, task)
    if plan.mechanism == "objective":
        scale /= n * strength
    check_scale(plan.noise, model.coefficients_.reshape(task.problems, task.dimension), scale)


@pytest.mark.parametrize("plan", [p for p in PLANS if p.mechanism == "objective"], ids=str)
@pytest.mark.parametrize("problems", [1, 3])
def test_noise_for_the_solvers_tolerance_is_added(plan: Plan, problems: int) -> None:
    """A solver that returns zeros: what is released is the second noise, for twice the distance it may be off."""
    tolerance, strength, d = 1e-3, 2.0, 400
    mechanism = plan.calibrate(
        EPSILON, DELTA, problems=problems, dimension=d, tolerance=tolerance, regularization=strength
    )
    released = mechanism.run(PrecomputedMinimisers(np.zeros((problems, d))), SeededRandomness(3))
    distance = 2.0 * tolerance / strength
    if plan.calibration == "ra12":
        scale = math.sqrt(problems) * distance / max_ratio(1e-2 * EPSILON, 1e-2 * DELTA)
    elif plan.noise == "gaussian":
        scale = distance / (BESIDE * mechanism.task.gradient_sensitivity / mechanism.noise_scale)
    else:
        scale = problems * distance / (1e-2 * EPSILON)
    assert mechanism.tolerance_noise_scale == pytest.approx(scale, rel=1e-4)
    check_scale(plan.noise, released, scale)


def test_multinomial_noise_is_one_vector_over_all_classes() -> None:
    """Norm-Gamma noise per class would be too little by up to sqrt(classes): sensitivities add, not their squares."""
    classes, d = 4, 100
    mechanism = Plan("output", "norm_gamma", "tight", "replace_one").calibrate(
        EPSILON, loss=Multinomial(), dimension=classes * d
    )
    released = mechanism.run(PrecomputedMinimisers(np.zeros((classes, d))), SeededRandomness(3))
    assert released.shape == (classes, d)
    check_scale("norm_gamma", released.reshape(1, -1), mechanism.noise_scale)
    objective = Plan("objective", "norm_gamma", "tight", "replace_one").calibrate(
        EPSILON, loss=Multinomial(), dimension=classes * d, classes=classes, tolerance=1e-3
    )
    released = objective.run(PrecomputedMinimisers(np.zeros((classes, d))), SeededRandomness(3))
    assert released.shape == (classes, d)
    check_scale("norm_gamma", released.reshape(1, -1), objective.tolerance_noise_scale)


@every_plan
def test_perturbation_reaches_the_solver_divided_by_the_number_of_records(plan: Plan) -> None:
    mechanism = plan.calibrate(EPSILON, DELTA, dimension=400, total=50, regularization=1.0)
    seen: list[Any] = []

    def fit(linear: Any, regularization: float) -> Array:
        seen.append((linear, regularization))
        return np.zeros((1, 400))

    mechanism.run(Solver(fit), SeededRandomness(3))
    ((linear, regularization),) = seen
    assert regularization == mechanism.effective_regularization
    if plan.mechanism == "output":
        assert linear is None
    else:
        check_scale(plan.noise, linear * 50, expected_scale(plan, mechanism.task))


@pytest.mark.parametrize("factor", [0.5, 0.999])
@every_plan
def test_less_noise_spends_more_than_promised(plan: Plan, factor: float) -> None:
    mechanism = plan.calibrate(EPSILON, DELTA)
    assert mechanism.spends() <= mechanism.guarantee
    less = dataclasses.replace(mechanism, noise_scale=factor * mechanism.noise_scale)
    assert not less.spends() <= less.guarantee


@every_plan
def test_noise_is_the_least_that_keeps_the_promise(plan: Plan) -> None:
    """What the calibrated scale spends is the promise itself, to six digits (RA12's tail bound included)."""
    spent = plan.calibrate(EPSILON, DELTA).spends()
    assert spent.epsilon == pytest.approx(EPSILON, rel=1e-6)
    assert spent.delta == pytest.approx(plan.guarantee(EPSILON, DELTA).delta, rel=1e-5)


@pytest.mark.parametrize("noise_scale", [1e-6, 1e-3, 0.1])
def test_tiny_ra12_noise_promises_nothing(noise_scale: float) -> None:
    """Its ball of good noise has no radius then; the square of a negative radius must not pass for one."""
    mechanism = Plan("objective", "gaussian", "ra12", "replace_one").calibrate(EPSILON, DELTA)
    tiny = dataclasses.replace(mechanism, noise_scale=noise_scale)
    with pytest.raises(ValueError, match="delta"):
        tiny.spends()


@every_plan
def test_renyi_cost_agrees_with_the_promise(plan: Plan) -> None:
    """Converting the Renyi curve back at its best order gives the guaranteed epsilon, up to the conversion's loss."""
    mechanism = plan.calibrate(EPSILON, DELTA)
    if plan.noise != "gaussian":
        assert mechanism.renyi(1.2) == pytest.approx(0.6 * EPSILON**2, rel=1e-6)  # a pure promise is zCDP
        assert mechanism.renyi(50.0) == pytest.approx(EPSILON, rel=1e-6)
        return
    orders = np.geomspace(1.5, 200.0, 60)
    epsilons = [mechanism.renyi(a) + math.log(1.0 / DELTA) / (a - 1.0) for a in orders]
    if plan.calibration == "tight":
        assert EPSILON < min(epsilons) < 1.6 * EPSILON
    else:
        assert min(epsilons) < 1.6 * EPSILON


def test_mechanisms_of_the_list_are_those_tested() -> None:
    assert {p.mechanism for p in PLANS} == {OutputPerturbation.name, ObjectivePerturbation.name}
    assert len(PLANS) == len(RELATIONS) * (5 + 4)
