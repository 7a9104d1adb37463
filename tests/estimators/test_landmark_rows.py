"""Which landmark rows an estimator learns from, points that are made up for it, and the files that keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privlearn import InvalidParameter, PrivateRegressor, PrivateSVC, Release, Schema, plan, verify
from privlearn.data import census_schema, simulated_census
from privlearn.features import Kernel, LandmarkFeatures, UnitLandmarkFeatures

rng = np.random.default_rng(5)
X = rng.uniform(-1, 1, size=(600, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
ARRAYS: dict[str, Any] = PROMISE | {"norm_bound": 1.8, "classes": [0, 1], "kernel": "polynomial"}


@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [
        ("auto", UnitLandmarkFeatures),
        ("objective", UnitLandmarkFeatures),
        ("output", UnitLandmarkFeatures),
        ("function_release", LandmarkFeatures),
        ("tddl", LandmarkFeatures),
        ("tdil", LandmarkFeatures),
    ],
)
def test_theorems_about_the_kernel_get_its_inner_products(mechanism: str, kind: type) -> None:
    work = PrivateSVC(**ARRAYS, mechanism=mechanism, public_points=X[:20]).prepare(X, Y, private=True)
    assert type(work.rows.landmarks) is kind


def test_a_file_predicts_what_its_estimator_predicted(tmp_path: Path) -> None:
    model = PrivateSVC(**ARRAYS, public_points=X[:20]).fit(X[20:], Y[20:])
    model.release_.save(tmp_path / "unit.privlearn")
    loaded = Release.load(tmp_path / "unit.privlearn").model
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))  # type: ignore[union-attr]
    assert verify(tmp_path / "unit.privlearn").claimed == model.certificate_.guarantee


def test_the_released_function_is_the_one_that_was_learnt() -> None:
    """Features and coefficients of the fit against kernel values and coefficients of the file."""
    estimator = PrivateSVC(**ARRAYS, public_points=X[:20])
    work = estimator.prepare(X, Y, private=True)
    coefficients = np.random.default_rng(0).normal(size=(1, work.rows.dimension))
    model: Any = work.model(coefficients, work.calibrate(estimator.make_guarantee()))
    np.testing.assert_allclose(
        model.decision_function(X), (work.rows.features @ coefficients.T)[:, 0], atol=1e-6
    )


class TestMadeUp:
    def test_the_release_says_how_and_keeps_them(self) -> None:
        schema, rows = census_schema(), simulated_census(300, seed=1)
        model = PrivateSVC(
            **PROMISE, kernel="rbf", schema=schema, public_points="schema", fourier_seed=7
        ).fit(rows)
        again = PrivateSVC(
            **PROMISE, kernel="rbf", schema=schema, public_points="schema", fourier_seed=7
        ).fit(rows)
        assert model.certificate_.encoding["points_made"].endswith("seed 7")
        assert model.release_.to_bytes() == again.release_.to_bytes()
        loaded = Release.from_bytes(model.release_.to_bytes())
        assert_array_equal(loaded.model.predict(rows), model.predict(rows))

    def test_no_row_is_looked_at(self) -> None:
        made = [
            PrivateSVC(**ARRAYS, public_points="schema").prepare(rows, Y, private=True).rows.landmarks
            for rows in (X, -X / 2)
        ]
        assert_array_equal(made[0].public_points, made[1].public_points)  # type: ignore[union-attr]

    def test_as_many_as_see_each_other(self) -> None:
        """Cubic polynomials of three numbers and a constant have 35 dimensions; a narrow bump sees no other."""
        few = PrivateSVC(**ARRAYS, public_points="schema").prepare(X, Y, private=True)
        many = PrivateSVC(**ARRAYS | {"kernel": "rbf", "gamma": 1e4}, public_points="schema")
        assert len(few.rows.points) == 125  # type: ignore[arg-type]
        assert len(many.prepare(X, Y, private=True).rows.points) == 1000  # type: ignore[arg-type]

    @pytest.mark.parametrize("bounds", [{"norm_bound": 1.8}, {"column_bounds": [(-1, 1)] * 3}])
    def test_arrays_and_plans(self, bounds: dict[str, Any]) -> None:
        estimator = PrivateRegressor(
            **PROMISE, **bounds, kernel="polynomial", public_points="schema", target_bounds=(0, 1)
        )
        foretold = plan(estimator, len(X), columns=3 if "norm_bound" in bounds else None)
        assert foretold.mechanism == estimator.prepare(X, Y, private=True).calibrate(
            estimator.make_guarantee()
        )

    def test_refusals(self) -> None:
        with pytest.raises(InvalidParameter, match="the word 'schema'"):
            PrivateSVC(**ARRAYS, public_points="rows").fit(X, Y)
        texts = {
            "name": "notes",
            "columns": {"note": {"type": "text"}},
            "target": {"name": "y", "classes": [0, 1]},
        }
        with pytest.raises(InvalidParameter, match="Pass public points"):
            PrivateSVC(**PROMISE, kernel="rbf", schema=Schema.from_dict(texts), public_points="schema").fit(
                {"note": ["a", "b"], "y": [0, 1]}
            )
        alike = Kernel.from_callable(lambda A, B: np.ones((len(A), len(B))), bound=1.0)
        with pytest.raises(InvalidParameter, match="over objects"):
            PrivateSVC(**PROMISE, kernel=alike, classes=[0, 1], public_points="schema").fit(
                ["a", "b"], [0, 1]
            )


class TestPublicGamma:
    @pytest.mark.parametrize(
        ("described", "gamma"),
        [
            ({"norm_bound": 1.8}, 1 + 24 / 3),
            ({"column_bounds": [(-1, 1)] * 3}, 0.5),
            ({"norm_bound": 1.8, "kernel": "cauchy"}, 1.0),
            ({"norm_bound": 1.8, "gamma": 3.0}, 3.0),
        ],
    )
    def test_it_follows_from_the_encoding(self, described: dict[str, Any], gamma: float) -> None:
        settings = PROMISE | {"kernel": "rbf", "classes": [0, 1], "fourier_pairs": 20} | described
        for rows in (X, X / 100):
            encoder: Any = PrivateSVC(**settings).prepare(rows, Y, private=True).rows.encoder
            assert encoder.features.kernel.gamma == gamma

    def test_the_release_names_the_number(self) -> None:
        model = PrivateSVC(**PROMISE, kernel="rbf", schema=census_schema(), fourier_pairs=20)
        model.fit(simulated_census(300, seed=1))
        assert model.certificate_.encoding["fourier"]["kernel"] == {"kernel": "rbf", "gamma": 0.5}

    def test_other_words_are_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="gamma must be 'auto'"):
            PrivateSVC(**ARRAYS | {"kernel": "rbf"}, gamma="scale").fit(X, Y)
