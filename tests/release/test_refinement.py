"""Refined releases: each step does what it says, the file repeats it, and costs nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import (
    InvalidParameter,
    PrivateLogisticRegression,
    PrivateSVC,
    Release,
    Schema,
    VerificationError,
    curvature,
    effects,
    evaluate,
    intervals,
    refine,
    verify,
)
from privlearn.data import census_schema, simulated_census
from privlearn.data.encoding import CentredEncoder
from privlearn.data.encoding.arrays import distances
from privlearn.release import Flatten, Monotone, Refinement, Round, Smooth, curves, feature_columns, isotonic

PEOPLE = simulated_census(20_000, 0)


def fitted(records: int = 20_000, **settings: Any) -> Release:
    default: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "schema": census_schema(), "random_state": 0}
    return PrivateLogisticRegression(**default | settings).fit(PEOPLE.slice(0, records)).release_


@pytest.fixture(scope="module", params=[800, 20_000])
def release(request: pytest.FixtureRequest) -> Release:
    """Centred rows; then bins and pairs."""
    return fitted(request.param)


def varying(release: Release, column: str) -> Any:
    """Scores of rows in which only one column changes, the norm of rows left out: effects of all its curves."""
    found = effects(release.origin)
    functions = found.intervals.effect_directions(column)[1]
    return functions @ release.model.coefficients.ravel()


def test_the_nearest_rising_sequence() -> None:
    assert isotonic([1.0, 3.0, 2.0, 2.0, 5.0]) == pytest.approx([1.0, 7 / 3, 7 / 3, 7 / 3, 5.0])
    assert isotonic([3.0, 2.0, 1.0]) == [2.0, 2.0, 2.0]
    random = np.random.default_rng(0)
    values = random.normal(size=40)
    found = np.array(isotonic(values.tolist()))
    assert np.all(np.diff(found) >= 0.0)
    for _ in range(200):  # no other rising sequence is nearer
        other = np.sort(found + 0.1 * random.normal(size=40))
        assert np.sum((found - values) ** 2) <= np.sum((other - values) ** 2)


@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
def test_monotone_effects_never_turn(release: Release, direction: str) -> None:
    made = refine(release, monotone={"hours": direction})
    steps = np.diff(varying(made, "hours"))
    assert np.all(steps >= -1e-12 if direction == "increasing" else steps <= 1e-12)
    others = ["hours" not in columns for columns in feature_columns(made.model.encoder)]
    assert np.array_equal(made.model.coefficients[:, others], release.model.coefficients[:, others])


def test_what_rises_already_is_left_as_it_is(release: Release) -> None:
    made = refine(release, monotone={"hours": "increasing"})
    again = refine(made, monotone={"hours": "increasing"})
    assert again.model.coefficients == pytest.approx(made.model.coefficients, abs=1e-12)


def test_smoothing_takes_out_steps_and_keeps_the_rest(release: Release) -> None:
    made = refine(release, smooth={"age": 1})
    before, after = varying(release, "age"), varying(made, "age")
    assert np.abs(np.diff(after, 2)).sum() < np.abs(np.diff(before, 2)).sum()


def test_a_line_is_taken_over_by_its_knots_exactly() -> None:
    """What the straight part said, the knots say: predictions stay, up to rounding."""
    schema = census_schema().model_copy(update={"pairs": "none"})
    release = fitted(20_000, schema=schema, centre=False)
    (first, *_) = curves(release.model.encoder, "age")
    assert first.line is not None
    values = release.model.coefficients[0, first.indices]
    moved = release.model.coefficients.copy()
    moved[0, first.indices] = values + moved[0, first.line] * np.linspace(-1.0, 1.0, len(values))
    moved[0, first.line] = 0.0
    plain: Any = release.model
    other = dataclasses.replace(plain, coefficients=moved)
    rows = PEOPLE.slice(0, 200)
    assert other.decision_function(rows) == pytest.approx(plain.decision_function(rows), abs=1e-9)


def test_flat_columns_say_nothing(release: Release) -> None:
    made = refine(release, flatten=["occupation", "age"])
    assert varying(made, "occupation") == pytest.approx(0.0, abs=1e-12)
    assert varying(made, "age") == pytest.approx(0.0, abs=1e-12)


def test_merged_values_count_as_one(release: Release) -> None:
    """But for the norm of centred rows beyond the radius, in which the mean's share of each value stays."""
    values = list(census_schema().columns["region"].values)[:2]  # type: ignore[union-attr]
    made = refine(release, merge={"region": values})
    row, encoder = PEOPLE.slice(0, 200).to_pydict(), made.model.encoder
    one, two = (row | {"region": [value] * 200} for value in values)
    near = np.full(200, True)
    if isinstance(encoder, CentredEncoder):
        for rows in (one, two):
            encoded: Any = encoder.base.encode(rows)
            near &= distances(encoded, encoder.mean) <= encoder.radius
    assert near.any()
    scores, others = (made.model.decision_function(rows)[near] for rows in (one, two))  # type: ignore[union-attr]
    assert scores == pytest.approx(others, abs=1e-12)
    effect = varying(made, "region")
    assert effect[0] == pytest.approx(effect[1], abs=1e-12)


def test_rounding_and_what_drowns(release: Release) -> None:
    made = refine(release, zero_noise=True, digits=2)
    found = effects(release)
    drowned = {effect.name for effect in found if effect.importance <= effect.noise}
    assert drowned
    assert {step.column for step in made.refinement.steps if isinstance(step, Flatten)} == drowned  # type: ignore[union-attr]
    assert np.array_equal(made.model.coefficients, np.round(made.model.coefficients, 2))
    assert "round 2" in made.refinement.description  # type: ignore[union-attr]


def test_the_file_names_its_origin_and_repeats_its_steps(release: Release, tmp_path: Path) -> None:
    made = refine(release, smooth={"age": 1}, monotone={"hours": "increasing"}, digits=3)
    path, before = tmp_path / "refined.privlearn", tmp_path / "income.privlearn"
    made.save(path)
    release.save(before)
    loaded = Release.load(path)
    assert loaded.origin.digest == release.digest
    assert np.array_equal(loaded.model.coefficients, made.model.coefficients)
    proven = verify(path, origin=before)
    assert proven.origin == release.digest
    assert proven.claimed == release.certificate.guarantee
    with pytest.raises(VerificationError, match="not refined from"):
        verify(path, origin=path)
    with pytest.raises(VerificationError, match="not refined from"):
        verify(before, origin=before)


def test_a_second_refinement_has_the_same_origin(release: Release) -> None:
    twice = refine(refine(release, digits=4), digits=2)
    once = release.refined([Round(4), Round(2)])
    assert twice.digest == once.digest
    assert twice.origin.digest == release.digest


@pytest.mark.parametrize("wrong", ["coefficients", "steps", "origin"])
def test_what_was_changed_is_refused(release: Release, wrong: str) -> None:
    made = refine(release, digits=2)
    refinement: Any = made.refinement
    if wrong == "coefficients":
        moved = made.model.coefficients.copy()
        moved[0, 0] += 0.01
        made = dataclasses.replace(made, model=dataclasses.replace(made.model, coefficients=moved))
    elif wrong == "steps":
        made = dataclasses.replace(made, refinement=Refinement((Round(3),), refinement.origin))
    else:
        made = dataclasses.replace(made, refinement=Refinement((Round(2),), refinement.origin + 1.0))
    with pytest.raises(VerificationError):
        Release.from_bytes(made.to_bytes())


def test_another_origin_than_it_says_is_refused(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    made = refine(release, digits=2)
    honest = Refinement.to_dict
    monkeypatch.setattr(Refinement, "to_dict", lambda self, digest: honest(self, "0" * 64))
    with pytest.raises(VerificationError, match="a different file"):
        Release.from_bytes(made.to_bytes())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "at least one step"),
        ({"monotone": {"height": "increasing"}}, "no column"),
        ({"monotone": {"region": "increasing"}}, "no order"),
        ({"monotone": {"age": "up"}}, "increasing or decreasing"),
        ({"smooth": {"age": 0}}, "1 place"),
        ({"merge": {"region": ["nowhere", "else"]}}, "listed values"),
        ({"merge": {"age": ["1", "2"]}}, "listed values"),
        ({"digits": 99}, "0 to 15"),
    ],
)
def test_what_does_not_fit_is_refused(release: Release, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        refine(release, **settings)


def test_noise_is_told_of_the_origin_alone(release: Release) -> None:
    made = refine(release, digits=2)
    assert str(effects(made)) == str(effects(release))
    with pytest.raises(InvalidParameter, match="refined"):
        intervals(made, kind="privacy")
    with pytest.raises(InvalidParameter, match="its origin"):
        curvature(made, PEOPLE, epsilon=1.0, delta=1e-6)


def test_a_threshold_is_chosen_after_refining(release: Release) -> None:
    made = refine(release, digits=2)
    counted = evaluate(made, PEOPLE, epsilon=1.0, delta=1e-6, random_state=0)
    decided = made.with_threshold(0.4, counted)
    again = Release.from_bytes(decided.to_bytes())
    assert again.refinement is not None
    assert again.origin.digest == release.digest
    assert again.undecided.digest == made.digest
    with pytest.raises(InvalidParameter, match="Refine the release first"):
        refine(decided, digits=1)


def test_several_scores_and_bought_probabilities() -> None:
    random = np.random.default_rng(0)
    columns = {"age": {"type": "number", "lower": 0, "upper": 1}, "words": {"type": "text", "features": 8}}
    schema = Schema.from_dict(
        {"name": "clinic", "columns": columns, "target": {"name": "answer", "classes": ["a", "b", "c"]}}
    )
    table = {
        "age": random.uniform(size=900),
        "words": random.choice(["x", "y"], 900),
        "answer": random.choice(["a", "b", "c"], 900),
    }
    price: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
    several = PrivateLogisticRegression(schema=schema, **price).fit(table).release_
    with pytest.raises(InvalidParameter, match="one for each class"):
        several.refined([Monotone("age", "increasing")])
    assert several.refined([Smooth("age", 1)]).refinement is not None
    X, y = random.normal(size=(900, 2)), random.integers(0, 2, 900)
    svc = PrivateSVC(norm_bound=3.0, classes=[0, 1], probability=True, **price).fit(X, y).release_
    with pytest.raises(InvalidParameter, match="chosen from its scores"):
        refine(svc, digits=2)
    arrays = PrivateSVC(norm_bound=3.0, classes=[0, 1], **price).fit(X, y).release_
    assert refine(arrays, digits=2).origin.digest == arrays.digest
    with pytest.raises(InvalidParameter, match="over a schema"):
        refine(arrays, flatten=["age"])
