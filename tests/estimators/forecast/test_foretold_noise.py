"""What a plan foretells against what fits show: the bound always holds, the estimates are near."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema, plan
from privlearn.data import census_schema, load_adult, simulated_census
from privlearn.mechanisms import ADD_NOISE
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.randomness import randomness_from

ADULT = Path(__file__).parents[3] / "examples" / "adult.schema.yaml"
DRAWS = 400


@pytest.mark.parametrize("noise", ADD_NOISE)
@pytest.mark.parametrize("dimension", [1, 2, 30])
def test_deviation_of_a_coordinate(noise: str, dimension: int) -> None:
    drawn = ADD_NOISE[noise](np.zeros((4000, dimension)), 3.0, randomness_from(5))
    assert np.sqrt(np.mean(drawn[:, 0] ** 2)) == pytest.approx(
        coordinate_deviation(noise, 3.0, dimension), rel=0.06
    )


class TestTheWorstCase:
    """Rows along the first axis leave the second without curvature: there the bound is reached."""

    settings: dict[str, Any] = {"norm_bound": 1.0, "classes": [0, 1], "fit_intercept": False}  # noqa: RUF012

    def deviation(self, row: list[float], rows: np.ndarray, **settings: Any) -> float:
        """Return the deviation of the prediction for a row, over many runs."""
        estimator = PrivateLogisticRegression(**self.settings | settings)
        work = estimator.prepare(rows, np.arange(len(rows)) % 2, private=True)
        mechanism = work.calibrate(estimator.make_guarantee())
        runs = [work.run(mechanism, randomness_from(seed)) for seed in range(DRAWS)]
        return float(np.std([coefficients[0] @ row for coefficients in runs], ddof=1))

    @pytest.mark.parametrize("mechanism", ["objective", "output"])
    def test_gaussian_noise_reaches_it(self, mechanism: str) -> None:
        settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "mechanism": mechanism}
        seen = self.deviation([0.0, 1.0], np.eye(2)[np.zeros(40, dtype=int)], **settings)
        bound = plan(PrivateLogisticRegression(**self.settings | settings), 40, 2).worst_case
        assert seen == pytest.approx(bound, rel=0.12)  # 3.5 % is one standard error

    def test_pure_noise_stays_below_it(self) -> None:
        seen = self.deviation([0.0, 1.0], np.eye(2)[np.zeros(40, dtype=int)], epsilon=1.0)
        bound = plan(PrivateLogisticRegression(**self.settings, epsilon=1.0), 40, 2).worst_case
        assert bound / 2.0 < seen < bound

    def test_curvature_only_helps(self) -> None:
        rows = np.random.default_rng(2).normal(size=(40, 2))
        seen = self.deviation([0.6, 0.8], rows, epsilon=1.0, delta=1e-5)
        assert (
            seen < plan(PrivateLogisticRegression(**self.settings, epsilon=1.0, delta=1e-5), 40, 2).worst_case
        )


def foretold_and_seen(
    estimator: type, schema: Schema, table: Any, rows: int, epsilon: float
) -> tuple[Any, float, float]:
    """Return the forecast, and the noise and the margin of six fits."""
    assert schema.target is not None
    train, test = table.slice(0, rows), table.slice(rows, 1000)
    common = {"schema": schema, "delta": 1e-6}
    fits = [estimator(**common, epsilon=epsilon, random_state=seed).fit(train) for seed in range(6)]
    regularization = fits[0].certificate_.mechanism.effective_regularization
    encoder = fits[0].release_.model.encoder  # without noise a table would be encoded more finely
    labels = (np.array(train[schema.target.name].to_pylist()) == schema.target.classes[1]).astype(int)
    plain: dict[str, Any] = {
        "norm_bound": 1.0,
        "classes": [0, 1],
        "fit_intercept": False,
        "epsilon": math.inf,
    }
    quiet = estimator(**plain, regularization=regularization).fit(encoder.encode(train), labels)
    predictions = np.array([model.decision_function(test) for model in fits])
    noise = math.sqrt(np.mean(np.var(predictions, axis=0, ddof=1)))
    planned = plan(estimator(**common, epsilon=epsilon), rows)
    return planned, noise, float(np.std(quiet.decision_function(encoder.encode(test))))


@pytest.mark.parametrize("estimator", [PrivateLogisticRegression, PrivateSVC])
@pytest.mark.parametrize(("rows", "epsilon"), [(1000, 0.5), (4000, 0.3), (4000, 1.0), (8000, 3.0)])
def test_simulated_census(estimator: type, rows: int, epsilon: float) -> None:
    planned, noise, margin = foretold_and_seen(
        estimator, census_schema(), simulated_census(rows + 1000, seed=3), rows, epsilon
    )
    assert noise / 1.6 < planned.noise < 1.6 * noise
    assert margin / 2.4 < planned.margin < 2.4 * margin


@pytest.mark.skipif(not os.environ.get("PRIVLEARN_DATA"), reason="PRIVLEARN_DATA is not set")
@pytest.mark.parametrize("estimator", [PrivateLogisticRegression, PrivateSVC])
@pytest.mark.parametrize(("rows", "epsilon"), [(2000, 0.3), (6000, 1.0)])
def test_adult(estimator: type, rows: int, epsilon: float) -> None:
    table = load_adult()
    shuffled = table.take(np.random.default_rng(4).permutation(table.num_rows)[: rows + 1000])
    planned, noise, margin = foretold_and_seen(estimator, Schema.load(ADULT), shuffled, rows, epsilon)
    assert noise / 1.6 < planned.noise < 1.6 * noise
    assert margin / 2.0 < planned.margin < 2.0 * margin


@pytest.mark.parametrize(
    ("rows", "epsilon", "verdict", "least", "most"),
    [
        (20_000, 2.0, "clear", -0.002, 0.015),
        (3000, 1.0, "noisy", 0.015, 0.08),
        (500, 0.2, "drowned", 0.08, 0.5),
    ],
)
def test_verdicts_mean_errors(rows: int, epsilon: float, verdict: str, least: float, most: float) -> None:
    """By how much privacy raises the error; always guessing the most frequent class would raise it by 0.12."""
    train, test = simulated_census(rows, seed=6), simulated_census(5000, seed=7)
    plain = PrivateLogisticRegression(schema=census_schema(), epsilon=math.inf).fit(train)
    settings: dict[str, Any] = {"schema": census_schema(), "epsilon": epsilon, "delta": 1e-6}
    private = [PrivateLogisticRegression(**settings, random_state=seed).fit(train) for seed in range(4)]
    raised = plain.score(test) - np.mean([model.score(test) for model in private])
    assert plan(PrivateLogisticRegression(**settings), rows).verdict == verdict
    assert least <= raised <= most
