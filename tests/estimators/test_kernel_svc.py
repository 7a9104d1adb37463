"""Kernels in PrivateSVC: the non-interactive way (Fourier features) and the semi-interactive one (public points)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privlearn import (
    DataError,
    Guarantee,
    InvalidParameter,
    Ledger,
    PrivateSVC,
    Release,
    ReleaseError,
    verify,
)
from privlearn.data import census_schema, simulated_census
from privlearn.features import kernel_from_name
from privlearn.mechanisms import ReleaseMechanism

rng = np.random.default_rng(3)
X = rng.uniform(-1, 1, size=(4000, 2))
Y = (np.abs(np.linalg.norm(X, axis=1) - 0.7) < 0.3).astype(int)  # a ring: no line separates it
Z = rng.uniform(-1, 1, size=(60, 2))
RING: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 1e-5,
    "norm_bound": 1.5,
    "classes": [0, 1],
    "gamma": 6.0,
    "random_state": 0,
}


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
@pytest.mark.parametrize("points", [None, Z])
def test_a_ring_is_learnt(kernel: str, points: np.ndarray | None, tmp_path: Path) -> None:
    model = PrivateSVC(**RING, kernel=kernel, public_points=points, fourier_pairs=100).fit(X, Y)
    assert model.score(X, Y) > 0.8 > max(Y.mean(), 1 - Y.mean()) + 0.1
    model.release_.save(tmp_path / "ring.privlearn")
    loaded = Release.load(tmp_path / "ring.privlearn")
    assert np.array_equal(loaded.model.predict(X), model.predict(X))
    assert verify(tmp_path / "ring.privlearn").claimed == model.certificate_.guarantee


def test_polynomial_needs_public_points_and_takes_them() -> None:
    with pytest.raises(InvalidParameter, match="public_points="):
        PrivateSVC(**RING, kernel="polynomial").fit(X, Y)
    model = PrivateSVC(**RING | {"gamma": 1.0}, kernel="polynomial", degree=4, public_points=Z).fit(X, Y)
    assert model.score(X, Y) > 0.7
    assert "points like" in model.certificate_.to_dict()["encoding"]["meant_for"]


@pytest.mark.parametrize(
    "mode",
    [
        {"mechanism": "output", "calibration": "rbht"},  # RBHT's PrivateSVM
        {"mechanism": "output", "calibration": "cms11"},  # CMS11 Algorithm 3 with Algorithm 1
        {"mechanism": "objective", "calibration": "cms11"},  # ... with Algorithm 2
        {"calibration": "ra12"},
    ],
)
def test_the_papers_modes_run_on_fourier_features(mode: dict[str, Any]) -> None:
    model = PrivateSVC(**RING | {"epsilon": 1e4}, kernel="rbf", fourier_pairs=50, **mode).fit(X, Y)
    assert model.certificate_.mechanism.calibration == mode["calibration"]
    assert model.score(X, Y) > 0.75


def test_precomputed_kernel_equals_the_named_one() -> None:
    inside = X[np.linalg.norm(X, axis=1) <= 1][:500]
    labels = (np.linalg.norm(inside, axis=1) < 0.7).astype(int)
    points = Z[np.linalg.norm(Z, axis=1) <= 1]
    rbf = kernel_from_name("rbf", gamma=6.0)
    plain: dict[str, Any] = {"epsilon": math.inf, "classes": [0, 1], "regularization": 1e-3}
    named = PrivateSVC(
        **plain, kernel="rbf", gamma=6.0, norm_bound=1.0, fit_intercept=False, public_points=points
    )
    given = PrivateSVC(**plain, kernel="precomputed", kernel_bound=1.0, public_points=rbf(points, points))
    named.fit(inside, labels)
    given.fit(rbf(inside, points), labels)
    assert np.allclose(
        named.decision_function(inside), given.decision_function(rbf(inside, points)), atol=1e-6
    )


class TestFunctionRelease:
    def test_needs_public_points(self) -> None:
        with pytest.raises(InvalidParameter, match="public_points"):
            PrivateSVC(**RING, kernel="rbf", mechanism="function_release").fit(X, Y)

    def test_noise_at_the_points_is_the_gaussian_process(self) -> None:
        """Joint law N(0, sigma^2 K_ZZ): fails for independent noise, and for half or twice the scale."""
        points, rows, labels = Z[:3] / 2, X[:50], Y[:50]
        settings: dict[str, Any] = RING | {
            "epsilon": 1.0,
            "regularization": 0.1,
            "fit_intercept": False,
            "gamma": 2.0,
        }
        shared: dict[str, Any] = {"kernel": "rbf", "mechanism": "function_release", "public_points": points}
        plain = (
            PrivateSVC(**settings | {"epsilon": math.inf}, **shared)
            .fit(rows, labels)
            .decision_function(points)
        )
        draws = []
        for seed in range(400):
            model = PrivateSVC(**settings | {"random_state": seed}, **shared).fit(rows, labels)
            draws.append(model.decision_function(points) - plain)
        mechanism = model.certificate_.mechanism
        assert isinstance(mechanism, ReleaseMechanism)
        scale = mechanism.noise_scale
        covariance = scale**2 * kernel_from_name("rbf", gamma=2.0)(points / 1.5, points / 1.5)
        distances = np.einsum("ij,jk,ik->i", draws, np.linalg.inv(covariance), draws)
        assert stats.kstest(distances, stats.chi2(3).cdf).pvalue > 1e-6


def spectrum_kernel(texts: list[str], others: list[str]) -> np.ndarray:
    """Shared pairs of letters, cosine-normalised: a user's own kernel over texts."""

    def spectra(strings: list[str]) -> tuple[list[Counter[str]], list[float]]:
        counts = [Counter(s[i : i + 2] for i in range(len(s) - 1)) for s in strings]
        return counts, [math.sqrt(sum(v * v for v in c.values())) or 1.0 for c in counts]

    (left, left_norms), (right, right_norms) = spectra(texts), spectra(others)
    return np.array(
        [
            [
                sum(v * b[pair] for pair, v in a.items()) / (m * n)
                for b, n in zip(right, right_norms, strict=True)
            ]
            for a, m in zip(left, left_norms, strict=True)
        ]
    )


class TestOwnKernel:
    """A string kernel over short texts, trained privately end to end in the semi-interactive way."""

    def texts(self, count: int, seed: int) -> tuple[list[str], list[str]]:
        pick = np.random.default_rng(seed)
        words = {"fruit": ["apple", "pear", "plum", "grape"], "tool": ["hammer", "wrench", "drill", "saw"]}
        labels = pick.choice(list(words), count).tolist()
        return [" ".join(pick.choice(words[label], 3)) for label in labels], labels

    def test_end_to_end(self, tmp_path: Path) -> None:
        texts, labels = self.texts(1500, 0)
        public, _ = self.texts(20, 1)
        model = PrivateSVC(
            kernel=spectrum_kernel,
            kernel_bound=1.0,
            public_points=public,
            classes=["fruit", "tool"],
            epsilon=1.0,
            delta=1e-5,
        ).fit(texts, labels)
        new, truth = self.texts(200, 2)
        assert (model.predict(new) == truth).mean() > 0.95
        model.release_.save(tmp_path / "words.privlearn")
        assert verify(tmp_path / "words.privlearn").is_private
        with pytest.raises(ReleaseError, match="holds no code"):
            Release.load(tmp_path / "words.privlearn").model.predict(new)
        loaded = Release.load(tmp_path / "words.privlearn", kernel=spectrum_kernel)
        assert np.array_equal(loaded.model.predict(new), model.predict(new))

    def test_a_bound_that_does_not_hold_is_refused_without_a_value(self) -> None:
        texts, labels = self.texts(30, 0)
        with pytest.raises(ValueError, match="bound") as caught:
            PrivateSVC(
                epsilon=1.0,
                kernel=spectrum_kernel,
                kernel_bound=0.5,
                public_points=texts[:5],
                classes=["fruit", "tool"],
            ).fit(texts, labels)
        assert "apple" not in str(caught.value)

    def test_the_bound_must_be_declared(self) -> None:
        texts, labels = self.texts(30, 0)
        with pytest.raises(InvalidParameter, match="bound="):
            PrivateSVC(
                epsilon=1.0, kernel=spectrum_kernel, public_points=texts[:5], classes=["fruit", "tool"]
            ).fit(texts, labels)

    @pytest.mark.parametrize(
        "form", [list, tuple, np.array, lambda texts: np.array(texts, dtype=object), pd.Series]
    )
    def test_public_points_are_written_down_whatever_holds_them(
        self, form: Callable[[Any], Any], tmp_path: Path
    ) -> None:
        texts, labels = self.texts(60, 0)
        model = PrivateSVC(
            epsilon=1.0,
            kernel=spectrum_kernel,
            kernel_bound=1.0,
            public_points=form(texts[:5]),
            classes=["fruit", "tool"],
        ).fit(form(texts), labels)
        model.release_.save(tmp_path / "words.privlearn")
        loaded = Release.load(tmp_path / "words.privlearn", kernel=spectrum_kernel)
        assert np.array_equal(loaded.model.predict(texts), model.predict(texts))

    @pytest.mark.parametrize("points", [[object()] * 3, [{1}], {"a": ["x"]}, pd.DataFrame({"t": ["x", "y"]})])
    def test_points_that_no_release_can_hold_are_refused_before_anything_is_paid(
        self, points: Any, tmp_path: Path
    ) -> None:
        texts, labels = self.texts(60, 0)
        ledger = Ledger.create(tmp_path / "budget.db", "texts", Guarantee(3.0, 1e-4))
        with pytest.raises(DataError, match="public_points: "):
            PrivateSVC(
                epsilon=1.0,
                kernel=lambda A, B: np.ones((len(A), len(B))),
                kernel_bound=1.0,
                public_points=points,
                classes=["fruit", "tool"],
                ledger=ledger,
            ).fit(texts, labels)
        assert ledger.statement().spent.epsilon == 0

    def test_a_release_takes_no_kernel_that_is_no_function(self, tmp_path: Path) -> None:
        texts, labels = self.texts(60, 0)
        model = PrivateSVC(
            epsilon=1.0,
            kernel=spectrum_kernel,
            kernel_bound=1.0,
            public_points=texts[:5],
            classes=["fruit", "tool"],
        ).fit(texts, labels)
        model.release_.save(tmp_path / "words.privlearn")
        with pytest.raises(InvalidParameter, match="function"):
            Release.load(tmp_path / "words.privlearn", kernel="rbf")  # type: ignore[arg-type]


def test_a_function_called_linear_is_not_the_linear_kernel() -> None:
    def linear(A: Any, B: Any) -> Any:
        return (A @ B.T) ** 2

    with pytest.raises(InvalidParameter, match="needs public points"):
        PrivateSVC(**RING, kernel=linear, kernel_bound=1.0).fit(X, Y)


def test_precomputed_values_in_a_data_frame(tmp_path: Path) -> None:
    values = kernel_from_name("rbf", gamma=2.0)(X[:200], Z)
    among = pd.DataFrame(kernel_from_name("rbf", gamma=2.0)(Z, Z))
    settings: dict[str, Any] = {
        "kernel": "precomputed",
        "kernel_bound": 1.0,
        "classes": [0, 1],
        "epsilon": 5.0,
        "delta": 1e-5,
    }
    model = PrivateSVC(**settings, public_points=among).fit(pd.DataFrame(values), Y[:200])
    model.release_.save(tmp_path / "values.privlearn")
    loaded = Release.load(tmp_path / "values.privlearn").model
    assert np.array_equal(loaded.predict(values), model.predict(values))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"kernel": ["rbf"]}, "kernel must be one of"),
        ({"kernel": "linear", "kernel_bound": 2.0}, "Omit kernel_bound"),
        (
            {"kernel": "precomputed", "kernel_bound": 1.0, "public_points": np.eye(3)},
            "Leave out schema, norm_bound and column_bounds",
        ),
        ({"kernel": "precomputed", "kernel_bound": 1.0, "norm_bound": None}, "a square matrix"),
        ({"kernel": lambda A, B: A @ B.T, "public_points": Z}, "kernel_bound=1.0"),
        ({"mechanism": "pinp"}, "InteractivePredictor"),
        ({"mechanism": "magic"}, "function_release, objective, output, tddl, tddl_norm, tdil, tdil_jt13"),
        ({"mechanism": "tddl", "public_points": Z, "noise": "gaussian"}, "Leave noise and calibration out"),
        ({"mechanism": "tdil", "calibration": "cms11"}, "Leave noise and calibration out"),
        (
            {"mechanism": "function_release", "public_points": Z, "noise": "laplace"},
            "Leave noise and calibration out",
        ),
        ({"mechanism": "function_release", "public_points": Z, "calibration": "cms11"}, "mechanism='output'"),
        ({"mechanism": "function_release", "public_points": Z, "delta": 0.0}, "delta > 0. Pass delta"),
        ({"kernel": "rbf", "fourier_pairs": 0}, "fourier_pairs"),
        ({"kernel": "rbf", "fourier_seed": -1}, "fourier_seed"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_type(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        PrivateSVC(**RING | settings).fit(X, Y)


@pytest.mark.parametrize("points", [Z[:0], np.ones((4, 3)), np.ones(2), np.full((2, 2), np.nan), ["a", "b"]])
def test_a_complaint_about_public_points_says_so(points: Any) -> None:
    with pytest.raises(DataError, match="public_points: "):
        PrivateSVC(**RING, kernel="rbf", public_points=points).fit(X, Y)


def test_public_points_under_a_schema_are_any_table() -> None:
    people, survey = simulated_census(300, seed=1), simulated_census(20, seed=2)
    settings: dict[str, Any] = {
        "kernel": "rbf",
        "epsilon": 1.0,
        "delta": 1e-6,
        "schema": census_schema(),
        "random_state": 0,
    }
    frames = [
        survey,
        survey.drop_columns(["income"]),
        survey.to_pandas(),
        survey.to_pandas()[survey.column_names[::-1]],
    ]
    scores = [
        PrivateSVC(**settings, public_points=frame).fit(people).decision_function(people) for frame in frames
    ]
    assert all(np.array_equal(scores[0], other) for other in scores[1:])
    with pytest.raises(DataError, match="public_points: column 'age' is missing"):
        PrivateSVC(**settings, public_points=survey.drop_columns(["age"])).fit(people)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(DataError, match="inconsistent numbers of samples"):
        PrivateSVC(**RING).fit(X, Y[:-1])


class TestQuestions:
    """JT13's learners: TDDL at public points, TDIL over a net or over the unit ball of the linear kernel."""

    @pytest.mark.parametrize("mechanism", ["tddl", "tddl_norm", "tdil"])
    def test_they_learn_release_and_verify(self, mechanism: str, tmp_path: Path) -> None:
        model = PrivateSVC(**RING | {"epsilon": 1e3}, kernel="rbf", public_points=Z, mechanism=mechanism).fit(
            X, Y
        )
        assert model.certificate_.mechanism.name == mechanism
        assert model.score(X, Y) > 0.7
        model.release_.save(tmp_path / "asked.privlearn")
        assert verify(tmp_path / "asked.privlearn").claimed.delta == 1e-5
        assert np.array_equal(Release.load(tmp_path / "asked.privlearn").model.predict(X), model.predict(X))

    def test_the_paper_s_tdil_says_that_it_is_vacuous_and_verifies(self, tmp_path: Path) -> None:
        model = PrivateSVC(**RING, mechanism="tdil_jt13").fit(X, Y)
        assert model.certificate_.to_dict()["constants"]["vacuous"] is True
        model.release_.save(tmp_path / "paper.privlearn")
        assert verify(tmp_path / "paper.privlearn").claimed.delta == 1e-5

    def test_tdil_over_the_ball(self) -> None:
        line = (X[:, 0] > 0).astype(int)
        model = PrivateSVC(**RING | {"epsilon": 50.0}, mechanism="tdil").fit(X, line)
        assert model.score(X, line) > 0.8

    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"mechanism": "tddl"}, "public_points"),
            ({"mechanism": "tdil", "kernel": "rbf"}, "net of points"),
            ({"mechanism": "tdil_jt13", "kernel": "rbf"}, "net of points"),
            ({"mechanism": "tddl", "public_points": Z, "delta": 0.0}, "delta > 0"),
        ],
    )
    def test_what_they_cannot_do_is_refused(self, settings: dict[str, Any], says: str) -> None:
        with pytest.raises(InvalidParameter, match=says):
            PrivateSVC(**RING | settings).fit(X, Y)
