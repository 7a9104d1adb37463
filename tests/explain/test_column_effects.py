"""Effects of columns: what is shown is above the noise, bars hold, pages say so."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn import (
    InvalidParameter,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    Schema,
    curvature,
    effects,
    intervals,
)
from privlearn.explain import Uncertainty
from privlearn.features import TextFeatures

COLUMNS: dict[str, Any] = {
    "age": {"type": "number", "lower": 20, "upper": 80, "encoding": "linear", "bins": "none"},
    "ward": {"type": "category", "values": ["a", "b", "c"]},
    "flag": {"type": "category", "values": ["no", "yes"]},
}


def schema_of(target: dict[str, Any], pairs: Any = "none", columns: dict[str, Any] = COLUMNS) -> Schema:
    return Schema.from_dict(
        {"name": "clinic", "columns": columns, "target": {"name": "answer"} | target, "pairs": pairs}
    )


CLASSES = schema_of({"classes": ["no", "yes"]})


def people(records: int, seed: int, base: float = 0.0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    age, ward = random.uniform(20, 80, records), random.choice(list("abc"), records)
    odds = base + (age - 50) / 10
    return {
        "age": age,
        "ward": ward,
        "flag": random.choice(["no", "yes"], records, p=[0.9, 0.1]),
        "answer": np.where(odds + random.logistic(size=records) > 0, "yes", "no"),
    }


def release_of(records: int = 6000, seed: int = 0, **settings: Any) -> Release:
    default: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "schema": CLASSES, "random_state": seed}
    return PrivateLogisticRegression(**default | settings).fit(people(records, seed)).release_


@pytest.fixture(scope="module")
def clear() -> Release:
    """Return a release in which one column matters and stands out from the noise without a curvature."""
    return release_of(20_000, epsilon=8.0, regularization=0.01)


def test_what_matters_is_shown_and_what_does_not_is_said_to_drown(clear: Release) -> None:
    found = effects(clear)
    assert [effect.name for effect in found.above_noise] == ["age"]  # type: ignore[union-attr]
    frame = found.to_frame()
    assert set(frame["column"]) == {effect.name for effect in found.columns}
    assert set(frame.loc[frame["above_noise"], "column"]) == {"age"}
    assert (frame["lower"] <= frame["upper"]).all()
    assert found.columns[0].name == "age"
    assert 0.0 < found["age"].lower < found["age"].importance < found["age"].upper
    assert found["flag"].lower == 0.0
    assert "Above the noise: 1 of 3 columns" in str(found)
    assert "ward: at most" in str(found)
    assert "95 %" in found.meaning
    assert list(found) == found.columns


def test_a_release_tells_its_effects_itself(clear: Release) -> None:
    assert str(clear.effects()) == str(effects(clear))


def test_the_bar_is_the_law_of_the_noise() -> None:
    """Of output perturbation it is exact: the length of a Gaussian vector, by another way to its quantile."""
    release = release_of(mechanism="output")
    uncertainty = Uncertainty(release, None, "privacy")
    size = release.model.coefficients.size
    scale = release.certificate.mechanism.noise_scale  # type: ignore[union-attr]
    for level in (0.95, 0.9995):
        exact = scale * math.sqrt(stats.chi2.ppf(level, size))
        assert uncertainty.length_quantile(np.eye(size), level) == pytest.approx(exact, rel=0.02)
    assert uncertainty.length_deviation(np.eye(size)) == pytest.approx(scale * math.sqrt(size))


@pytest.mark.parametrize("noise", ["laplace", "norm_gamma"])
def test_other_laws_have_bars_of_their_own(noise: str) -> None:
    release = release_of(mechanism="output", noise=noise, delta=0.0)
    scale = release.certificate.mechanism.noise_scale  # type: ignore[union-attr]
    size = release.model.coefficients.size
    random = np.random.default_rng(7)
    drawn = np.sqrt(np.sum(random.laplace(size=(40_000, size)) ** 2, axis=1))
    if noise == "norm_gamma":
        drawn = random.gamma(size, size=40_000)
    found = Uncertainty(release, None, "privacy").length_quantile(np.eye(size), 0.99)
    assert found == pytest.approx(scale * np.quantile(drawn, 0.99), rel=0.06)


def test_bars_of_an_idle_column_hold_the_truth_as_often_as_they_say() -> None:
    """With a curvature they are narrow: the idle columns are within them in all but a few tables."""
    alarms = 0
    for seed in range(40):
        table = people(6000, seed, base=-1.0)
        model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=CLASSES, random_state=seed).fit(
            table
        )
        bought = curvature(model.release_, table, epsilon=1.0, delta=1e-6, random_state=seed)
        found = effects(model.release_, bought)
        assert found["age"].above_noise
        assert found.intervals.uncertainty.covers_sampling
        alarms += found["ward"].above_noise or found["flag"].above_noise
    assert alarms <= 5


def test_many_columns_raise_the_level_of_each() -> None:
    few, many = effects(release_of()), effects(release_of(), level=0.99)
    assert few._each_level == pytest.approx(1.0 - 0.05 / 3)
    assert many["age"].upper > few["age"].upper


def test_a_norm_that_a_column_moves_is_allowed_for() -> None:
    """Values crowd at one end and answers are rarer than stated: an idle line makes up for the norm, and is not
    shown."""
    columns = COLUMNS | {"flag": COLUMNS["age"]}
    schema = schema_of({"classes": ["no", "yes"], "rate": 0.5}, columns=columns)
    random = np.random.default_rng(0)
    table = people(100_000, 0, base=-6.0) | {"flag": 20 + 60 * random.beta(1, 8, size=100_000)}
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema, random_state=0).fit(table)
    found = effects(model.release_, curvature(model.release_, table, epsilon=1.0, delta=1e-6, random_state=0))
    assert found["flag"].lower > 0.0  # by its bar alone it would be
    assert not found["flag"].above_noise
    assert found["age"].above_noise


@pytest.mark.parametrize("settings", [{}, {"epsilon": 8.0, "regularization": 0.003}, {"mechanism": "output"}])
def test_free_bars_cover_sampling_where_the_loss_is_a_likelihood(settings: dict[str, Any]) -> None:
    """The variance is at least the largest over all curvatures that the data might have, and not much more."""
    release = release_of(**settings)
    found = effects(release)
    assert "they cover noise and sampling" in found.meaning
    mechanism: Any = release.certificate.mechanism
    ridge = mechanism.task.total * mechanism.effective_regularization
    data, noise = np.geomspace(1e-3, 1e6, 4000), mechanism.noise_scale**2
    worst = (
        np.max((noise + data) / (ridge + data) ** 2)
        if mechanism.perturbs == "objective"
        else noise + np.max(data / (ridge + data) ** 2)
    )
    size = release.model.coefficients.size
    bound = found.intervals.uncertainty.length_deviation(np.eye(size)) / math.sqrt(size)
    assert math.sqrt(worst) * (1.0 - 1e-3) < bound < 1.3 * math.sqrt(worst)


@pytest.mark.parametrize(
    ("people_s_rows", "factor"), [({"person": "who"}, 1.0), ({"rows_per_person": 5}, 5.0)]
)
def test_free_bars_where_persons_have_several_rows(people_s_rows: dict[str, Any], factor: float) -> None:
    """Five rows per person, all alike: the variance of the minimiser comes up to the bound, and not beyond."""
    table = {name: np.repeat(cells, 5) for name, cells in people(2000, 0).items()} | {
        "who": np.arange(10_000) // 5
    }
    schema = Schema.from_dict(CLASSES.to_dict() | people_s_rows)
    model = PrivateLogisticRegression(epsilon=8.0, mechanism="output", schema=schema, random_state=0).fit(
        table
    )
    assert "they cover noise and sampling" in effects(model.release_).meaning
    found = Uncertainty(model.release_, None, "privacy", bounds_sampling=True)
    bound, ridge = found._sampling_bound, found._ridge
    assert bound == pytest.approx(math.sqrt(factor / (4.0 * ridge)))
    persons = round(4.0 * ridge / factor)  # the data's eigenvalue is then the ridge, the worst case
    answers = np.random.default_rng(0).choice([-1.0, 1.0], (4000, persons)).sum(axis=1)
    minimisers = [_minimiser(factor * persons, factor * answer, ridge) for answer in answers]
    assert np.std(minimisers) == pytest.approx(bound, rel=0.05)


def test_without_right_probabilities_gradients_spread_more_than_the_hessian_says() -> None:
    """Why free bars state an assumption: a logistic line through a hump has residuals that are too large for it."""
    random = np.random.default_rng(0)
    group = random.choice(3, 20_000, p=[0.8, 0.1, 0.1])
    rows = np.stack([np.ones(20_000), (group + 1) / 3.0], axis=1) / math.sqrt(2.0)
    answers = np.where(random.random(20_000) < np.array([0.02, 0.9, 0.02])[group], 1, 0)
    model = PrivateLogisticRegression(
        epsilon=math.inf, norm_bound=1.0, classes=[0, 1], fit_intercept=False, regularization=1e-4
    ).fit(rows, answers)
    chances = model.predict_proba(rows)[:, 1]
    hessian = (rows * (chances * (1.0 - chances))[:, np.newaxis]).T @ rows
    gradients = (rows * ((answers - chances) ** 2)[:, np.newaxis]).T @ rows
    assert np.linalg.eigvals(np.linalg.solve(hessian, gradients)).max() > 1.1
    assert "sampling if the model's probabilities are right" in effects(release_of()).meaning


def _minimiser(rows: float, answers: float, ridge: float) -> float:
    """Return the minimiser of the logistic loss over rows of 1 with answers of that sum, by Newton's steps."""
    w = 0.0
    for _ in range(20):
        half = math.tanh(w / 2.0)
        w -= (ridge * w + rows * half / 2.0 - answers / 2.0) / (ridge + rows * (1.0 - half**2) / 4.0)
    return w


def test_without_a_likelihood_free_bars_are_about_the_noise_alone() -> None:
    model = PrivateSVC(epsilon=1.0, delta=1e-6, schema=CLASSES, random_state=0).fit(people(2000, 0))
    assert "not sampling" in effects(model.release_).meaning
    with pytest.raises(InvalidParameter, match="likelihoods only"):
        Uncertainty(model.release_, None, "privacy", bounds_sampling=True)


def test_pairs_are_beside_the_sum_of_two_curves() -> None:
    random = np.random.default_rng(0)
    left, right = random.uniform(size=(2, 20_000))
    answer = np.where(8 * (left - 0.5) * np.sign(right - 0.5) + random.logistic(size=20_000) > 0, "yes", "no")
    number = {"type": "number", "lower": 0, "upper": 1}
    schema = schema_of({"classes": ["no", "yes"]}, [["left", "right"]], {"left": number, "right": number})
    model = PrivateLogisticRegression(epsilon=20.0, delta=1e-6, schema=schema, random_state=0)
    found = effects(model.fit({"left": left, "right": right, "answer": answer}).release_)
    (pair,) = found.pairs
    grid = pair.grids[None]
    assert np.abs(grid.mean(axis=0)).max() < 1e-9
    assert np.abs(grid.mean(axis=1)).max() < 1e-9
    assert grid[-1, -1] > 0.0 > grid[0, -1]
    assert pair.above_noise
    assert "left and right together" in found.to_html()
    assert "left x right" in str(found)


def test_several_classes_and_numbers_have_effects_in_their_units() -> None:
    random = np.random.default_rng(0)
    table = people(20_000, 0)
    older = np.digitize(table["age"] + random.normal(0, 5, 20_000), [40, 60])
    named = table | {"answer": np.array(["x", "y", "z"])[older]}
    schema = schema_of({"classes": ["x", "y", "z"]})
    model = PrivateLogisticRegression(
        epsilon=8.0, delta=1e-6, schema=schema, regularization=0.01, random_state=0
    ).fit(named)
    found = effects(model.release_)
    assert list(found["age"].bands) == ["x", "y", "z"]
    page = model.release_.effects().to_html()
    assert "x: " in page
    rows = page.split("ward: effect on the score")[1].split("</svg>")[0]
    assert all(f">{label}</text>" in rows for label in "xyz")  # the legend of a list's figure
    measured = table | {"answer": 100.0 + table["age"]}
    number = PrivateRegressor(
        epsilon=8.0, delta=1e-6, schema=schema_of({"lower": 100, "upper": 200}), random_state=0
    ).fit(measured)
    band = effects(number.release_)["age"].bands[None]
    assert band.estimate[-1] - band.estimate[0] == pytest.approx(57.0, abs=15.0)
    assert effects(number.release_).unit == "answer"
    assert "noise of privacy alone" in effects(number.release_).meaning


def test_bars_wider_than_the_range_of_the_target_are_not_drawn() -> None:
    table = people(300, 0)
    schema = schema_of({"lower": 100, "upper": 200})
    settings: dict[str, Any] = {"mechanism": "output", "regularization": 0.01, "random_state": 0}
    few = PrivateRegressor(epsilon=0.1, delta=1e-6, schema=schema, **settings)
    found = effects(few.fit(table | {"answer": 100.0 + table["age"]}).release_)
    assert min(effect.upper for effect in found) >= 100.0
    assert all("no information" in line for line in found.below_noise)
    assert "<figure>" not in found.to_html()


def test_a_bar_above_0_that_other_columns_may_cause_states_so(clear: Release) -> None:
    found = effects(clear)
    idle = next(effect for effect in found.columns if not effect.above_noise)
    assert "other columns" not in found._upper_bound(idle)
    moved = dataclasses.replace(idle, lower=0.1, misfit=0.25)
    assert found._upper_bound(moved).endswith("(above 0, but other columns may cause up to 0.25)")


def test_pages_and_drawings_show_what_is_above_the_noise(clear: Release) -> None:
    page = effects(clear).to_html()
    above, below = page.split("Not above the noise")
    assert above.count("<figure>") == 2  # the importance of all, the curve of one
    assert below.count("<figure>") == len(effects(clear).columns) - 1
    assert "age: effect on the score" in page
    assert effects(clear)._repr_html_() in page
    figure = effects(clear).plot()
    assert [axes.get_title() for axes in figure.axes][1:] == ["age"]


def test_names_from_a_schema_are_escaped() -> None:
    columns = {"<b>": COLUMNS["age"], "w": {"type": "category", "values": ["<i>", "&"]}}
    schema = schema_of({"classes": ["no", "yes"]}, columns=columns)
    table = people(8000, 0)
    renamed = {"<b>": table["age"], "w": np.where(table["age"] > 50, "<i>", "&"), "answer": table["answer"]}
    model = PrivateLogisticRegression(epsilon=15.0, delta=1e-6, schema=schema, random_state=0).fit(renamed)
    page = effects(model.release_).to_html()
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;" in page


def test_arrays_and_unknown_columns_are_refused() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 2))
    plain = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1], random_state=0)
    release = plain.fit(X, (X[:, 0] > 0).astype(int)).release_
    with pytest.raises(InvalidParameter, match="plain arrays"):
        effects(release)
    with pytest.raises(InvalidParameter, match="no column"):
        intervals(release_of(), kind="privacy").effect("height")


def test_texts_are_named_and_dates_and_ordinals_have_curves() -> None:
    columns = {
        "words": {"type": "text", "features": 16},
        "day": {"type": "date", "lower": "2020-01-01", "upper": "2020-12-31"},
        "grade": {"type": "ordinal", "values": ["low", "middle", "high"]},
    }
    schema = schema_of({"classes": ["no", "yes"]}, columns=columns)
    random = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + random.integers(0, 365, 3000)
    table = {
        "words": random.choice(["sick", "well"], 3000),
        "day": np.array([str(day) for day in days]),
        "grade": random.choice(["low", "middle", "high"], 3000),
        "answer": random.choice(["no", "yes"], 3000),
    }
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema, random_state=0).fit(table)
    found = effects(model.release_)
    assert "words: a text, which has no curve" in str(found)
    assert found["grade"].bands[None].names == ["low", "middle", "high"]
    assert found["day"].bands[None].names[0].year == 2020
    assert "Above the noise: 0 of 2 columns" in found.summary
    assert found.to_html().count("<figure>") == 3  # the importance of all, and grey curves of both


def test_words_have_effects() -> None:
    random = np.random.default_rng(0)
    notes = [" ".join(random.choice(["fever", "cough", "rest", "walk"], 3)) for _ in range(3000)]
    answers = np.where(["fever" in note for note in notes], "yes", "no")
    columns = {"note": {"type": "text", "features": 251}, "age": {"type": "number", "lower": 0, "upper": 9}}
    table = {"note": notes, "age": random.uniform(0, 9, 3000), "answer": answers}
    settings: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-6, "random_state": 0}
    schema = schema_of({"classes": ["no", "yes"]}, columns=columns)
    of_columns = PrivateLogisticRegression(schema=schema, **settings).fit(table).release_
    features = TextFeatures(251, words=1, characters=0)
    plain = PrivateLogisticRegression(features=features, classes=["no", "yes"], **settings)
    of_texts = plain.fit(notes, answers).release_
    for release in (of_columns, of_texts):
        band = intervals(release, kind="privacy").words(["fever", "cough"])
        assert band.names == ["fever", "cough"]
        assert band.lower[0] > 0.0
        assert band.estimate[1] < band.estimate[0]
        assert np.allclose(intervals(release, kind="privacy").words(["fever"]).estimate, band.estimate[:1])
    scores = of_texts.model.decision_function(["fever", ""])  # type: ignore[union-attr]
    effect = intervals(of_texts, kind="privacy").words(["fever"]).estimate
    assert effect[0] == pytest.approx(scores[0] - scores[1], abs=1e-5)
    with pytest.raises(InvalidParameter, match="this model has none"):
        intervals(release_of(), kind="privacy").words(["fever"])
