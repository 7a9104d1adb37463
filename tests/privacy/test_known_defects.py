"""Defects that published libraries had, one test each: undo the care and it fails."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import (
    DataError,
    Guarantee,
    InvalidParameter,
    Ledger,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    SolverError,
)
from privlearn.data import ArrayEncoder, Schema, SchemaEncoder
from privlearn.errors import BudgetExceeded, SchemaError
from privlearn.estimators import memory_oracle
from privlearn.solvers import KernelProblem, Logistic, Problem, minimise, minimise_kernel
from tests.support.combinations import Plan, every_plan, hockey_stick
from tests.support.rows import dense

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = np.arange(60) % 3


def model(**parameters: Any) -> PrivateLogisticRegression:
    given: dict[str, Any] = {"epsilon": 1.0, "norm_bound": 3.0, "classes": [0, 1, 2]} | parameters
    return PrivateLogisticRegression(**given)


@every_plan
@pytest.mark.parametrize("random_state", [None, 4])
def test_classes_do_not_share_noise(plan: Plan, random_state: int | None) -> None:
    """Defect: one-vs-rest fits in parallel workers that all receive the same noise vector."""
    fit = model(**plan.parameters(1.0), fit_intercept=False, random_state=random_state)
    noise = fit.fit(np.zeros((60, 3)), Y).coefficients_
    for one, other in itertools.combinations(noise, 2):
        ratios = one / other
        assert not np.allclose(ratios, ratios[0], rtol=1e-3)  # not even up to a factor
        assert not np.isin(one, other).any()


@every_plan
def test_two_fits_do_not_share_noise(plan: Plan) -> None:
    """The same, over time: a second release of the same model must not repeat the first one's noise."""
    fits = [model(**plan.parameters(1.0), fit_intercept=False).fit(np.zeros((60, 3)), Y) for _ in range(2)]
    assert not np.isin(fits[0].coefficients_, fits[1].coefficients_).any()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_slack_does_not_grow_with_the_norm_bound(delta: float) -> None:
    """Defect: c R instead of c R^2 in objective perturbation's slack; at R = 100 its epsilon = 1 was really 3.3.

    Here rows are scaled to norm 1 first: the same data in other units gives the same model and constants.
    """
    for bound in (1.0, 100.0):
        fit = model(delta=delta, norm_bound=bound, classes=[0, 1], random_state=3, regularization=0.01)
        fit.fit(np.vstack([X, 50.0 * X]) * bound, np.arange(120) % 2)
        rows = dense(fit.release_.model.encoder.encode(np.vstack([X, 50.0 * X]) * bound))
        assert np.linalg.norm(rows, axis=1).max() <= 1.0
        constants = fit.certificate_.mechanism.constants()
        assert constants["slack"] == pytest.approx(
            math.log1p(0.25 / (120 * constants["effective_regularization"]))
        )
        assert constants["gradient_sensitivity"] == 2.0


def test_intercept_is_penalised_and_inside_the_norm_bound() -> None:
    """Defect: an unpenalised intercept, with which the privacy loss grows without bound in the weight."""
    encoder = ArrayEncoder(3.0, 3)
    rows = dense(encoder.encode(1e6 * X))
    assert rows.shape[1] == 4
    assert np.linalg.norm(rows, axis=1).max() <= 1.0
    assert (rows[:, 3] > 0.2).all()
    # all labels alike: only the penalty keeps the intercept finite
    fit = model(epsilon=math.inf, classes=[0, 1], regularization=0.5).fit(np.zeros((60, 3)), np.ones(60, int))
    offset = fit.release_.model.constants[0]
    slope = 1.0 / (1.0 + math.exp(rows[0, 3] * fit.coefficients_[0, 3] + offset))
    assert 0.5 * fit.coefficients_[0, 3] == pytest.approx(slope * rows[0, 3], abs=1e-9)


def test_schema_keeps_the_intercept_inside_the_norm_bound() -> None:
    """The same, for tables."""
    schema = Schema.from_dict(
        {"name": "t", "columns": {c: {"type": "number", "lower": -1, "upper": 1} for c in "abc"}}
    )
    rows = dense(SchemaEncoder(schema).encode({c: [1e9, -1.0, 0.3] for c in "abc"}))
    assert np.linalg.norm(rows, axis=1).max() <= 1.0


@pytest.mark.parametrize("tolerance", [1e-10, 1e-4, 1e-2])
@every_plan
def test_solvers_tolerance_is_inside_the_promise(plan: Plan, tolerance: float) -> None:
    """Defect: a solver stopped at 1e-4 under a theorem about the exact minimiser.

    Two solvers that err as far as they may, in opposite directions, must stay within what the noise covers.
    """
    mechanism = plan.calibrate(1.0, tolerance=tolerance, total=10_000)
    apart = 2.0 * tolerance / mechanism.effective_regularization
    if plan.mechanism == "output":
        assert mechanism.sensitivity >= mechanism.task.minimiser_sensitivity + apart
        return
    ratio = apart / mechanism.tolerance_noise_scale
    if plan.noise != "gaussian":
        assert ratio <= 1e-2  # of epsilon
    elif plan.calibration == "ra12":
        assert hockey_stick(1e-2, ratio) <= 1e-2 * mechanism.guarantee.delta
    else:
        main = mechanism.task.gradient_sensitivity / mechanism.noise_scale
        epsilon = 1.0 - math.log1p(0.25 / (10_000 * 0.05))
        together = hockey_stick(epsilon, math.hypot(main, ratio)) + hockey_stick(epsilon, ratio)
        assert together <= mechanism.guarantee.delta


@every_plan
def test_tolerance_left_to_the_noise_is_not_felt(plan: Plan) -> None:
    """Defect: tolerance=1e-7 drowned a model without a word."""
    mechanism = plan.calibrate(1.0, total=30_000, regularization=8.0 / 30_000, dimension=200, tolerance=0.0)
    assert 0.0 < mechanism.task.tolerance <= 1e-8
    if plan.neighbours == "add_remove":
        return  # a table may be 16 times as large as expected, and rounding leaves a larger tolerance
    assert mechanism.tolerance_share <= 0.031
    rounding = plan.calibrate(1.0, 1e-5, total=10**6, regularization=8e-6, dimension=200, tolerance=0.0)
    if plan.mechanism == "output" or (plan.noise, plan.calibration) == ("gaussian", "tight"):
        assert rounding.tolerance_share <= 0.2


@every_plan
def test_too_little_noise_for_the_tolerance_spends_more(plan: Plan) -> None:
    if plan.mechanism != "objective":
        pytest.skip("its tolerance is part of the sensitivity")
    mechanism = plan.calibrate(1.0)
    assert mechanism.spends() <= mechanism.guarantee
    less = dataclasses.replace(mechanism, tolerance_noise_scale=mechanism.tolerance_noise_scale / 20.0)
    assert not less.spends() <= less.guarantee


def test_solver_that_cannot_reach_its_tolerance_fails() -> None:
    """The same: it must not return what it has and let the theorem speak of something else."""
    rows = ArrayEncoder(3.0, 3).encode(X)
    with pytest.raises(SolverError, match="could not certify"):
        minimise(Problem(rows, np.ones(60), Logistic(), 0.01, 60), tolerance=1e-30)


def test_tolerance_that_some_table_cannot_reach_is_not_asked_for() -> None:
    """Defect: a solver that fails on one table and not on its neighbour tells them apart, without noise."""
    task = model(tolerance=1e-30, random_state=0).fit(X, Y).certificate_.task
    assert 1e-14 < task.tolerance < 1e-10
    assert task.certifiable(linear_norm=0.0).tolerance == task.tolerance
    assert model(tolerance=1e-10, random_state=0).fit(X, Y).certificate_.task.tolerance == 1e-10


@pytest.mark.parametrize("estimator", [PrivateLogisticRegression, PrivateSVC])
def test_regularization_that_some_table_cannot_stand_is_refused_for_all(
    estimator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the solver sees a row, and in the same words."""
    monkeypatch.setattr(memory_oracle, "minimise", lambda *_, **__: pytest.fail("a row was looked at"))
    refusals = set()
    for rows in (X, np.zeros_like(X), np.ones_like(X)):
        fresh = estimator(
            epsilon=math.inf, norm_bound=3.0, classes=[0, 1, 2], regularization=1e-17, mechanism="output"
        )
        with pytest.raises(InvalidParameter, match="too small") as refusal:
            fresh.fit(rows, Y)
        refusals.add(str(refusal.value))
    assert len(refusals) == 1


def test_equal_bounds_are_refused() -> None:
    """Defect: sensitivity computed from equal bounds, hence zero noise."""
    column = {"type": "number", "lower": 2.0, "upper": 2.0}
    with pytest.raises(SchemaError):
        Schema.from_dict({"name": "t", "columns": {"a": column}})
    for bound in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidParameter, match="norm_bound"):
            model(norm_bound=bound).fit(X, Y)


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_rows_that_are_not_finite_are_refused(poison: float) -> None:
    """Defect: NaN rows that change the sensitivity."""
    bad = X.copy()
    bad[7, 1] = poison
    with pytest.raises(DataError, match="NaN or infinite"):
        model().fit(bad, Y)


def test_noise_does_not_depend_on_the_data() -> None:
    """The same, at large: no constant of the certificate may know the records."""
    certificates = []
    for scale, labels in ((1.0, Y), (0.0, 0 * Y), (1e12, Y[::-1])):
        record = model(delta=1e-6, random_state=0).fit(scale * X, labels).certificate_.to_dict()
        certificates.append(record)
    assert certificates[0] == certificates[1] == certificates[2]


def test_classes_come_from_the_caller_not_from_the_data() -> None:
    """Defect: classes taken from the labels that happen to be in the data."""
    with pytest.raises(InvalidParameter, match="classes"):
        model(classes=None).fit(X, Y)
    rare_absent = model(classes=[0, 1, 2, 3]).fit(X, Y)
    assert rare_absent.classes_.tolist() == [0, 1, 2, 3]
    assert rare_absent.coefficients_.shape[0] == 4
    with pytest.raises(DataError, match="labels that classes does not list"):
        model(classes=[0, 1]).fit(X, Y)


def test_norm_bound_comes_from_the_caller_not_from_the_data() -> None:
    """Its twin: the longest row is a record's secret."""
    with pytest.raises(InvalidParameter, match="norm_bound"):
        model(norm_bound=None).fit(X, Y)


def test_weights_are_not_read_from_the_data() -> None:
    """Its twin: balanced weights are the classes' frequencies."""
    with pytest.raises(InvalidParameter, match="balanced"):
        model(class_weight="balanced").fit(X, Y)
    with pytest.raises(InvalidParameter, match="sample_weight needs a public cap"):
        model().fit(X, Y, sample_weight=np.ones(60))


@every_plan
def test_ledger_is_charged_before_the_data_is_used(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: budget charged after the query ran. The cost must be durable when the solver first sees the rows."""
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-3, plan.neighbours))
    seen = []

    def looking(problem: Any, **options: Any) -> Any:
        statement = Ledger.open(tmp_path / "budgets.db", "census").statement()
        seen.append((statement.reserved.epsilon, statement.spent.epsilon))
        return minimise(problem, **options)

    monkeypatch.setattr(memory_oracle, "minimise", looking)
    fit = model(**plan.parameters(0.4), ledger=ledger, classes=[0, 1]).fit(X, Y % 2)
    assert seen == [(0.4, 0.0)]
    statement = ledger.statement()
    assert (statement.spent.epsilon, statement.reserved.epsilon) == (0.4, 0.0)
    assert statement.spent.delta == fit.certificate_.guarantee.delta


def test_refused_budget_leaves_the_data_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same: no room, no look."""
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0))
    monkeypatch.setattr(memory_oracle, "minimise", lambda *_, **__: pytest.fail("the data was used"))
    with pytest.raises(BudgetExceeded):
        model(epsilon=1.5, ledger=ledger).fit(X, Y)
    assert ledger.statement().left.epsilon == 1.0


def test_crash_while_solving_keeps_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same: whoever saw the crash may have learnt something."""
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0))

    def crash(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(memory_oracle, "minimise", crash)
    with pytest.raises(MemoryError):
        model(epsilon=0.75, loss="logistic", ledger=ledger).fit(X, Y)
    assert ledger.statement().left.epsilon == 0.25


def test_two_users_share_one_budget(tmp_path: Path) -> None:
    """Defect: budget per user, so that two users together have no limit."""
    Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0))
    first, second = (Ledger.open(tmp_path / "budgets.db", "census") for _ in range(2))
    model(epsilon=0.6, ledger=first).fit(X, Y)
    with pytest.raises(BudgetExceeded):
        model(epsilon=0.6, ledger=second).fit(X, Y)
    model(epsilon=0.4, ledger=second).fit(X, Y)


def test_private_values_print_no_number() -> None:
    """Tools that report errors collect the reprs of local variables."""
    targets: Any = model().prepare(X, Y, True).rows.targets
    numbers: Any = PrivateRegressor(epsilon=1.0, norm_bound=3.0, target_bounds=(0.0, 2.0)).prepare(X, Y, True)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    problem = Problem(rows, np.where(Y == 0, 1, -1), Logistic(), regularization=0.1, total=60)
    kernel = KernelProblem(rows @ rows.T, problem.signs, Logistic(), regularization=0.1, total=60)
    for private in (
        targets,
        numbers.rows.targets,
        problem,
        minimise(problem),
        kernel,
        minimise_kernel(kernel),
    ):
        assert not re.search(r"array|\[|\.\d", repr(private).replace(str(type(private).__module__), ""))


def test_bad_input_costs_nothing(tmp_path: Path) -> None:
    """A typo must not eat the budget: all checks come before the charge."""
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0))
    bad = X.copy()
    bad[0, 0] = math.nan
    attempts: list[tuple[Any, Any, dict[str, Any]]] = [
        (bad, Y, {}),
        (X, Y + 5, {}),
        (X, Y[:-1], {}),
        (X, Y, {"noise": "cauchy"}),
        (X, Y, {"delta": 2.0}),
    ]
    for data, labels, parameters in attempts:
        with pytest.raises(ValueError):  # noqa: PT011
            model(ledger=ledger, **parameters).fit(data, labels)
    assert ledger.statement().entries == ()
