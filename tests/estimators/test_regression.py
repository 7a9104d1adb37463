"""What the private regression computes, refuses and releases."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

from privlearn import (
    BudgetExceeded,
    DataError,
    Guarantee,
    Huber,
    InvalidParameter,
    Ledger,
    PrivateRegressor,
    PrivateSVC,
    Release,
    ReleaseError,
    Schema,
    SchemaError,
    VerificationError,
    verify,
)
from privlearn.data import ArrayEncoder
from privlearn.release import RegressionModel
from privlearn.solvers import ClippedSquare
from tests.support.estimator_checks import OF_ALL, OF_WEIGHTS, with_checks

CANARY = 13577531.25
BOUNDS = (0.0, 5.0)

rng = np.random.default_rng(3)
PLACES = rng.uniform(-1.0, 1.0, size=(4000, 4))
PRICES = np.clip(
    2.0 + 1.5 * PLACES[:, 0] - PLACES[:, 1] + 0.5 * rng.exponential(size=4000), *BOUNDS
)  # houses: skewed and capped at the top
PRIVATE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "norm_bound": 2.0, "target_bounds": BOUNDS}
SCHEMA = {
    "name": "houses",
    "columns": {"rooms": {"type": "number", "lower": 0, "upper": 10, "encoding": "linear"}},
    "target": {"name": "price", "lower": 0, "upper": 100},
}


def private(**parameters: Any) -> PrivateRegressor:
    seed = None if "ledger" in parameters else 0  # a ledger takes secure noise only
    return PrivateRegressor(**{"random_state": seed} | PRIVATE | parameters)


def houses(prices: Any) -> pa.Table:
    return pa.table({"rooms": np.linspace(1.0, 9.0, len(prices)), "price": prices})


def standardised(model: PrivateRegressor) -> Any:
    """Return the prices in the unit of the model's scores, around their centre, written out anew."""
    learnt = model.release_.model
    return np.clip((PRICES / 2.5 - 1.0 - learnt.constants[0]) / learnt.stretches[0], -3.0, 3.0)


class TestPlainMinimiser:
    """epsilon = inf is the plain minimiser, to 1e-8, and predicts in the target's own units."""

    @pytest.mark.parametrize(
        ("loss", "slope"),
        [
            ("huber", lambda r: np.clip(r / 0.2, -1.0, 1.0)),
            ("clipped_square", lambda r: np.clip(r, -0.5, 0.5)),
            (Huber(0.05), lambda r: np.clip(r / 0.05, -1.0, 1.0)),
        ],
        ids=["huber", "clipped_square", "narrow huber"],
    )
    @pytest.mark.parametrize("mechanism", ["objective", "output"])
    def test_gradient_written_out_anew_vanishes(self, loss: Any, slope: Any, mechanism: str) -> None:
        model = private(epsilon=math.inf, delta=0.0, loss=loss, mechanism=mechanism, regularization=0.02)
        w = model.fit(PLACES, PRICES).coefficients_[0]
        rows, targets = ArrayEncoder(2.0, 4).encode(PLACES), standardised(model)
        gradient = rows.T @ slope(rows @ w - targets) / len(rows) + 0.02 * w
        assert np.linalg.norm(gradient) / 0.02 <= 1e-8  # strong convexity: the distance to the minimiser

    def test_scipys_minimiser_of_the_same_objective(self) -> None:
        model = private(epsilon=math.inf, delta=0.0, loss="huber", regularization=0.02).fit(PLACES, PRICES)
        rows, targets = ArrayEncoder(2.0, 4).encode(PLACES), standardised(model)

        def objective(w: Any) -> tuple[float, Any]:
            r = rows @ w - targets
            small = np.minimum(np.abs(r), 0.2)
            value = np.mean(small**2 / 0.4 + np.abs(r) - small) + 0.01 * w @ w
            return float(value), rows.T @ np.clip(r / 0.2, -1.0, 1.0) / len(r) + 0.02 * w

        found = minimize(objective, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-11})
        assert np.allclose(model.coefficients_[0], found.x, atol=1e-8)

    def test_coefficients_in_the_units_of_the_data(self) -> None:
        model = private(epsilon=math.inf, delta=0.0).fit(PLACES, PRICES)
        expected = np.clip(PLACES @ model.coef_ + model.intercept_, *BOUNDS)
        assert np.allclose(model.predict(PLACES), expected, atol=1e-9)
        assert model.coef_[:2] == pytest.approx([1.5, -1.0], abs=0.1)
        assert model.predict(np.full((1, 4), [2.0, -2.0, 0.0, 0.0]) / 1.5)[0] <= 5.0

    def test_targets_outside_the_bounds_are_clamped(self) -> None:
        wild = np.where(PRICES >= 4.0, 1e9, PRICES)
        plain = private(epsilon=math.inf, delta=0.0, target_bounds=(0.0, 4.0))
        one = plain.fit(PLACES, wild).coefficients_
        assert np.array_equal(one, plain.fit(PLACES, np.minimum(PRICES, 4.0)).coefficients_)


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"target_bounds": None}, "target_bounds="),
            ({"norm_bound": None}, "norm_bound="),
            ({"target_bounds": (5.0, 0.0)}, "two finite numbers"),
            ({"target_bounds": (0.0, math.inf)}, "two finite numbers"),
            ({"target_bounds": (0.0, math.nan)}, "two finite numbers"),
            ({"target_bounds": 5.0}, "two finite numbers"),
            ({"target_bounds": (False, True)}, "two finite numbers"),
            ({"loss": "huber_hinge"}, "huber, clipped_square"),
            ({"noise": "laplace", "mechanism": "objective"}, "noise"),
            ({"mechanism": "function_release"}, "public_points"),
            (
                {"schema": Schema.from_dict(SCHEMA)},
                "Leave out norm_bound, column_bounds, features and target_bounds",
            ),
        ],
        ids=str,
    )
    def test_parameters(self, parameters: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidParameter, match=message):
            private(**parameters).fit(PLACES, PRICES)

    def test_a_foreign_loss_with_a_known_name(self) -> None:
        class Steep(Huber):
            def first_derivative(self, z: Any) -> Any:
                return 10.0 * super().first_derivative(z)

        with pytest.raises(InvalidParameter, match="loss must be one of"):
            private(loss=Steep(0.2)).fit(PLACES, PRICES)
        with pytest.raises(InvalidParameter, match="loss must be one of"):
            PrivateSVC(epsilon=1.0, norm_bound=1.0, classes=[0, 1], loss=Huber(0.2)).fit(PLACES, PRICES > 2.0)

    def test_weights_of_records(self) -> None:
        with pytest.raises(InvalidParameter, match="max_weight"):
            private().fit(PLACES, PRICES, sample_weight=np.ones(4000))

    @pytest.mark.parametrize(
        "wrong",
        [[CANARY, math.nan], [CANARY, math.inf], [f"{CANARY}x", 1.0], [[CANARY, 2.0], [1.0, 2.0]], [CANARY]],
        ids=["NaN", "infinite", "text", "two columns", "too few"],
    )
    def test_bad_targets_are_refused_without_their_values(self, wrong: Any) -> None:
        with pytest.raises((DataError, ValueError)) as caught:
            private().fit(PLACES[:2], np.array(wrong))
        assert str(int(CANARY)) not in str(caught.value)
        assert caught.value.__cause__ is None

    @pytest.mark.parametrize(
        "wrong", [[CANARY, None], [CANARY, math.nan], [f"{CANARY}", "2x"]], ids=["null", "NaN", "text"]
    )
    def test_bad_target_columns_are_refused_without_their_values(self, wrong: Any) -> None:
        model = PrivateRegressor(epsilon=1.0, schema=Schema.from_dict(SCHEMA))
        with pytest.raises(DataError, match="'price'") as caught:
            model.fit(houses(wrong))
        assert str(int(CANARY)) not in str(caught.value)

    def test_the_other_kind_of_target(self) -> None:
        numbers = Schema.from_dict(SCHEMA)
        classes = Schema.from_dict(SCHEMA | {"target": {"name": "price", "classes": [0, 1]}})
        with pytest.raises(SchemaError, match="is a number"):
            PrivateSVC(epsilon=1.0, schema=numbers).fit(houses([0, 1]))
        with pytest.raises(SchemaError, match="has classes"):
            PrivateRegressor(epsilon=1.0, schema=classes).fit(houses([0, 1]))


def root_mean_square(model: PrivateRegressor) -> float:
    return float(np.sqrt(np.mean((model.predict(PLACES[2000:]) - PRICES[2000:]) ** 2)))


@pytest.mark.parametrize("loss", ["huber", "clipped_square"])
def test_error_falls_with_epsilon(loss: str) -> None:
    def error(epsilon: float) -> float:
        models = [
            private(epsilon=epsilon, loss=loss, random_state=seed).fit(PLACES[:2000], PRICES[:2000])
            for seed in range(5)
        ]
        return float(np.mean([root_mean_square(model) for model in models]))

    plain = root_mean_square(
        private(epsilon=math.inf, delta=0.0, loss=loss).fit(PLACES[:2000], PRICES[:2000])
    )
    errors = [error(epsilon) for epsilon in (0.05, 0.3, 3.0)]
    assert errors[0] > errors[1] > errors[2] > 0.99 * plain
    assert errors[2] < 1.1 * plain < 0.7 * PRICES.std()


PLANS = [
    ("objective", "gaussian", "tight"),
    ("objective", "norm_gamma", "tight"),
    ("objective", "norm_gamma", "cms11"),
    ("objective", "gaussian", "ra12"),
    ("output", "gaussian", "tight"),
    ("output", "norm_gamma", "tight"),
    ("output", "laplace", "rbht"),
]


@pytest.mark.parametrize(("mechanism", "noise", "calibration"), PLANS, ids="-".join)
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_releases_verify_and_survive_the_file(
    tmp_path: Path, mechanism: str, noise: str, calibration: str, neighbours: Any
) -> None:
    model = private(
        mechanism=mechanism, noise=noise, calibration=calibration, neighbours=neighbours, random_state=None
    ).fit(PLACES, PRICES)
    model.release_.save(tmp_path / "m.privlearn")
    checked = verify(tmp_path / "m.privlearn")
    assert checked.is_private
    assert checked.recomputed <= checked.claimed
    read = Release.load(tmp_path / "m.privlearn").model
    assert isinstance(read, RegressionModel)
    assert read.target_bounds == BOUNDS
    assert np.array_equal(read.predict(PLACES), model.predict(PLACES))


def test_auto_is_gaussian_objective_perturbation_with_delta_and_pure_without() -> None:
    chosen = private().fit(PLACES, PRICES).certificate_.mechanism
    assert (chosen.name, chosen.noise) == ("objective", "gaussian")
    pure = private(delta=0.0).fit(PLACES, PRICES).certificate_.mechanism
    assert (pure.name, pure.noise, pure.guarantee.delta) == ("objective", "norm_gamma", 0.0)


def test_a_certificate_of_a_classifier_does_not_pass_for_a_regression(tmp_path: Path) -> None:
    released = private().fit(PLACES, PRICES).release_
    other = PrivateSVC(epsilon=1.0, delta=1e-5, norm_bound=2.0, classes=[0, 1], random_state=0)
    certificate = other.fit(PLACES, (PRICES > 2.0).astype(int)).certificate_
    Release(released.model, certificate).save(tmp_path / "m.privlearn")
    with pytest.raises(VerificationError, match="another model"):
        verify(tmp_path / "m.privlearn")


@pytest.mark.parametrize("bounds", [(0.0, 200.0), (100.0, 0.0)], ids=str)
def test_bounds_that_the_schema_does_not_state_are_found(tmp_path: Path, bounds: Any) -> None:
    model = PrivateRegressor(epsilon=1.0, schema=Schema.from_dict(SCHEMA), random_state=0)
    released = model.fit(houses(np.linspace(0.0, 100.0, 200))).release_
    forged = RegressionModel(released.model.encoder, released.model.coefficients, bounds)
    with pytest.raises(ReleaseError, match="do not fit"):
        Release.from_bytes(Release(forged, released.certificate).to_bytes())


class TestTables:
    def test_schema_with_bounds_of_the_target(self) -> None:
        prices = np.linspace(5.0, 95.0, 500)
        model = PrivateRegressor(epsilon=math.inf, schema=Schema.from_dict(SCHEMA)).fit(houses(prices))
        assert np.abs(model.predict(houses(prices)) - prices).max() < 10.0
        assert model.score(houses(prices), prices) > 0.9

    def test_a_person_with_many_rows_weighs_as_much_as_one(self) -> None:
        schema = Schema.from_dict(SCHEMA | {"person": "id"})
        twice = pa.table({"rooms": [1.0, 1.0, 5.0], "price": [10.0, 10.0, 60.0], "id": [1, 1, 2]})
        once = pa.table({"rooms": [1.0, 5.0], "price": [10.0, 60.0], "id": [1, 2]})
        first, second = (PrivateRegressor(epsilon=math.inf, schema=schema).fit(t) for t in (twice, once))
        assert np.allclose(first.coefficients_, second.coefficients_, atol=1e-7)

    def test_persons_get_gaussian_objective_perturbation(self) -> None:
        schema = Schema.from_dict(SCHEMA | {"rows_per_person": 2})
        model = PrivateRegressor(epsilon=1.0, delta=1e-5, schema=schema).fit(houses(np.arange(50.0)))
        assert model.certificate_.mechanism.name == "objective"


class TestKernels:
    def test_rbf_learns_what_a_line_cannot(self) -> None:
        waves = 2.5 + 2.0 * np.cos(3.0 * PLACES[:, 0])
        rbf = private(kernel="rbf", gamma=6.0, fourier_pairs=100, epsilon=3.0).fit(PLACES, waves)
        line = private(epsilon=3.0).fit(PLACES, waves)
        assert rbf.score(PLACES, waves) > 0.7 > 0.2 > line.score(PLACES, waves)

    def test_landmarks_travel_with_the_release(self) -> None:
        model = private(kernel="rbf", gamma=6.0, public_points=PLACES[:50] * 0.9).fit(PLACES, PRICES)
        read = Release.from_bytes(model.release_.to_bytes()).model
        assert np.array_equal(read.predict(PLACES[:9]), model.predict(PLACES[:9]))

    def test_objects_of_the_users_own(self) -> None:
        texts = ["a" * (1 + k % 9) for k in range(300)]
        lengths = np.array([float(len(text)) for text in texts])

        def alike(one: Any, other: Any) -> Any:
            return np.array([[math.exp(-0.1 * (len(s) - len(t)) ** 2) for t in other] for s in one])

        points = ["a" * k for k in range(1, 10)]
        model = PrivateRegressor(
            epsilon=math.inf, kernel=alike, kernel_bound=1.0, public_points=points, target_bounds=(0, 10)
        ).fit(texts, lengths)
        assert np.abs(model.predict(points) - np.arange(1, 10)).max() < 1.0


def test_ledger_is_charged_and_refuses(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "b.db", "houses", Guarantee(1.5, 1e-4, "replace_one"))
    private(ledger=ledger).fit(PLACES, PRICES)
    assert ledger.statement().spent.epsilon == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(BudgetExceeded):
        private(ledger=ledger).fit(PLACES, PRICES)


@with_checks(
    [
        PrivateRegressor(epsilon=math.inf),
        PrivateRegressor(epsilon=math.inf, loss=ClippedSquare(1.0)),
        PrivateRegressor(
            epsilon=1e4, delta=1e-3, norm_bound=10.0, target_bounds=(-300.0, 300.0), random_state=0
        ),
    ],
    lambda estimator: OF_ALL | (OF_WEIGHTS if math.isfinite(estimator.epsilon) else {}),
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)
