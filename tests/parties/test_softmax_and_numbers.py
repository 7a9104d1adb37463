"""Several holders and the softmax loss, and numbers: the same sums, the same theorem, the pooled minimiser."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn import Release, Schema, verify
from privlearn.arrays import Array
from privlearn.data import census_schema, simulated_census
from privlearn.errors import SchemaError
from privlearn.estimators import ClassTargets, MemoryOracle, NumberTargets, Targets, TrainingRows
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import NoisyDescent, Task
from privlearn.mechanisms.summed import Question
from privlearn.parties import JointTraining, Party, TrustedSum, simulate, train_together
from privlearn.randomness import SeededRandomness
from privlearn.solvers import (
    ClippedSquare,
    Huber,
    HuberHinge,
    Logistic,
    Multinomial,
    Problem,
    minimise,
    minimise_multinomial,
)
from tests.support.party_cases import (
    DELTA,
    EPSILON,
    NOWHERE,
    descent,
    exact_sum,
    hockey_stick,
    max_ratio,
    random_rows,
    task_of,
)

CLASSES, FEATURES = 3, 2
SIZES = [4, 10, 26]
ALARM = 1e-6


def softmax_task(features: int = FEATURES, **facts: Any) -> Task:
    return task_of(loss=Multinomial(), dimension=CLASSES * features, classes=CLASSES, **facts)


def parties_with(mechanism: NoisyDescent, rows: Array, targets: Targets) -> list[Party]:
    """Consecutive rows to each party."""
    question_rounds = np.split(np.arange(len(rows)), np.cumsum(SIZES)[:-1])
    held = [TrainingRows(rows[here], None, targets.take(here), len(here)) for here in question_rounds]
    return [Party(mechanism.task, MemoryOracle(each, mechanism.task), 1.0) for each in held]


def classes_of(rows: Array, seed: int = 0) -> ClassTargets:
    labels = np.random.default_rng(seed).integers(CLASSES, size=len(rows))
    return ClassTargets(labels, np.arange(CLASSES))


@pytest.mark.parametrize("calibration", ["plain", "preconditioned"])
def test_without_noise_the_softmax_finds_the_pooled_minimiser(calibration: str) -> None:
    rows, _ = random_rows(40, FEATURES, seed=1)
    targets = classes_of(rows)
    mechanism = descent(softmax_task(total=40), NOWHERE, calibration)
    found = mechanism.run(exact_sum(parties_with(mechanism, rows, targets)))
    best = minimise_multinomial(
        rows, targets.labels, CLASSES, regularization=mechanism.task.regularization, total=40, tolerance=1e-11
    )
    assert found == pytest.approx(best.coefficients, abs=1e-8)


@pytest.mark.parametrize("loss", [Huber(), ClippedSquare()], ids=str)
@pytest.mark.parametrize("calibration", ["plain", "preconditioned"])
def test_without_noise_numbers_find_the_pooled_minimiser(loss: Any, calibration: str) -> None:
    rows, _ = random_rows(40, FEATURES, seed=2)
    targets = np.clip(rows @ np.ones(FEATURES), -1.0, 1.0)
    mechanism = descent(task_of(loss=loss, total=40, dimension=FEATURES), NOWHERE, calibration)
    found = mechanism.run(exact_sum(parties_with(mechanism, rows, NumberTargets(targets, (-1.0, 1.0)))))
    problem = Problem(rows, np.ones(40), loss, mechanism.task.regularization, 40, offsets=targets)
    assert found[0] == pytest.approx(minimise(problem, tolerance=1e-11).coefficients, abs=1e-8)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_all_classes_together_move_as_one_problem(neighbours: str) -> None:
    """sqrt(2) per record, however many classes: one against the rest would be sqrt(K)."""
    task = softmax_task(neighbours=neighbours)
    moved = (2.0 if neighbours == "replace_one" else 1.0) * math.sqrt(2.0)
    mechanism = descent(task, rounds=7)
    assert mechanism.noise_scale == pytest.approx(moved * math.sqrt(7) / max_ratio(), rel=1e-6)


unit_rows = st.lists(st.floats(-1.0, 1.0), min_size=FEATURES, max_size=FEATURES).map(
    lambda row: np.array(row) / max(1.0, 1.001 * float(np.linalg.norm(row)))
)
numbers = st.floats(-1.0, 1.0)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@settings(max_examples=40)
@given(
    unit_rows,
    unit_rows,
    numbers,
    numbers,
    st.lists(st.floats(-50, 50), min_size=CLASSES * FEATURES, max_size=CLASSES * FEATURES),
)
def test_one_record_moves_the_sum_within_its_sensitivity(
    kind: str, one: Any, other: Any, first: float, second: float, point: Any
) -> None:
    rows, _ = random_rows(40, FEATURES, seed=3)
    all_targets: list[Targets] = []
    if kind == "classes":
        task, length = softmax_task(), CLASSES * FEATURES
        for number in (first, second):
            labels = classes_of(rows).labels.copy()
            labels[0] = min(int((number + 1.0) * CLASSES / 2.0), CLASSES - 1)
            all_targets.append(ClassTargets(labels, np.arange(CLASSES)))
    else:
        task, length = task_of(loss=Huber(), dimension=FEATURES), FEATURES
        for number in (first, second):
            numbers = np.linspace(-1.0, 1.0, 40)
            numbers[0] = number
            all_targets.append(NumberTargets(numbers, (-1.0, 1.0)))
    mechanism = descent(task)
    question = Question(0, "gradients", length, math.inf, (), np.array(point[:length])[np.newaxis])
    sums = []
    for row, targets in zip((one, other), all_targets, strict=True):
        changed = np.vstack([row, rows[1:]])
        sums.append(exact_sum(parties_with(mechanism, changed, targets)).ask(question).vector)
    assert np.linalg.norm(sums[0] - sums[1]) <= mechanism.sum_sensitivity


@pytest.mark.parametrize("loss", [Multinomial(), Logistic(), HuberHinge()], ids=str)
def test_other_rows_do_not_move_with_a_person_s_number_of_rows(loss: Any) -> None:
    """At a point where margins are rounding alone, times 2^250: their bits must not depend on a row's place."""
    features, classes = 18, CLASSES if loss.argument == "classes" else 0
    task = task_of(loss=loss, dimension=features * max(classes, 1), classes=classes)
    for seed in range(20):
        random = np.random.default_rng(seed)
        frequent = random.normal(size=features)
        frequent /= 1.0000001 * np.linalg.norm(frequent)
        point = np.zeros((max(classes, 1), features))
        point[-1] = random.normal(size=features)
        point[-1] -= frequent * (point[-1] @ frequent) / (frequent @ frequent)

        def gradient(count: int, frequent: Array = frequent, point: Array = point) -> Array:
            rows = np.vstack([np.zeros((count, features)), np.tile(frequent, (1021, 1))])
            targets = ClassTargets(np.zeros(len(rows), dtype=np.int64), np.arange(classes or 2))
            held = TrainingRows(rows, None, targets, 1000)
            return MemoryOracle(held, task).gradients(2.0**250 * point.reshape(1, -1)).ravel()

        assert np.linalg.norm(gradient(4) - gradient(1)) < 1e-6


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_exact_law_of_a_round_of_three_classes(factor: float) -> None:
    """One feature, one round: the divergence integrated over all three coordinates of the sum."""
    promised = descent(softmax_task(1, total=40, neighbours="zero_out"), rounds=1)
    mechanism = dataclasses.replace(promised, noise_scale=factor * promised.noise_scale)
    point = np.array([[0.0, 60.0, -60.0]])  # certain of the second class, wherever x > 0
    question = Question(0, "gradients", CLASSES, math.inf, (), point)

    def centre(value: float) -> Array:
        rows, targets = np.zeros((40, 1)), ClassTargets(np.zeros(40, dtype=np.int64), np.arange(CLASSES))
        rows[0] = value
        return exact_sum(parties_with(mechanism, rows, targets)).ask(question).vector

    scale = mechanism.noise_scale
    axis, width = np.linspace(-7 * scale, 7 * scale, 120, retstep=True)

    def law(middle: Array) -> Any:
        one, two, three = (stats.norm.pdf(axis, at, scale) * width for at in middle)
        return one[:, None, None] * two[:, None] * three

    p, q = law(centre(1.0)), law(centre(0.0))
    delta = float(np.sum(np.maximum(p - math.exp(EPSILON) * q, 0.0)))
    assert delta == pytest.approx(hockey_stick(EPSILON, math.sqrt(2.0) / scale), rel=0.05)
    assert (delta <= 1.05 * DELTA) == (factor >= 1.0)
    assert (delta >= 0.9 * DELTA) == (factor <= 1.0)


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_the_released_softmax_has_the_noise_of_the_theorem(factor: float) -> None:
    """On records of zeros the first step is linear in the noise."""
    mechanism = descent(softmax_task(total=40, regularization=0.5), rounds=1)
    targets = ClassTargets(np.zeros(40, dtype=np.int64), np.arange(CLASSES))
    sums = TrustedSum(
        mechanism, parties_with(mechanism, np.zeros((40, FEATURES)), targets), SeededRandomness(4)
    )
    drawn = np.concatenate([mechanism.run(sums).ravel() for _ in range(400)])
    step = 1.0 / (mechanism.task.loss.smoothness + mechanism.task.regularization) / 40
    statistic = float(np.sum((drawn / (factor * step * mechanism.noise_scale)) ** 2))
    chance = 2.0 * min(stats.chi2.cdf(statistic, len(drawn)), stats.chi2.sf(statistic, len(drawn)))
    assert (chance > ALARM) == (factor == 1.0)


PARTIES = {"north": 400, "south": 1600}


def regions() -> Schema:
    content = census_schema().to_dict()
    del content["columns"]["region"]
    content["target"] = {"name": "region", "classes": ["north", "east", "south", "west"]}
    return Schema.from_dict(content)


def ages() -> Schema:
    content = census_schema().to_dict()
    age = content["columns"].pop("age")
    content["target"] = {"name": "age", "lower": age["lower"], "upper": age["upper"]}
    return Schema.from_dict(content)


def tables() -> dict[str, pa.Table]:
    return {name: simulated_census(count, seed=place) for place, (name, count) in enumerate(PARTIES.items())}


@pytest.mark.parametrize("kind", ["classes", "number"])
@pytest.mark.parametrize("how", ["together", "with messages"])
def test_a_release_of_several_holders(tmp_path: Path, kind: str, how: str) -> None:
    schema = regions() if kind == "classes" else ages()
    agreement = JointTraining(schema=schema, parties=PARTIES, epsilon=2.0, delta=1e-5)
    assert agreement.loss == ("multinomial" if kind == "classes" else "huber")
    release = train_together(agreement, tables()) if how == "together" else simulate(agreement, tables())
    release.save(tmp_path / "joint.privlearn")
    assert verify(tmp_path / "joint.privlearn").claimed == agreement.guarantee
    read = Release.load(tmp_path / "joint.privlearn")
    test = simulated_census(50, seed=7)
    assert read.model.predict(test).tolist() == release.model.predict(test).tolist()


def test_a_number_is_learnt() -> None:
    """Nearly as well as by one holder of all rows."""
    random = np.random.default_rng(5)
    size = random.uniform(0.0, 10.0, 4000)
    price = np.clip(2.0 * size + random.normal(size=4000), 0.0, 25.0)
    houses, held_out = (
        pa.table({"size": size[part], "price": price[part]}) for part in (slice(3000), slice(3000, 4000))
    )
    schema = Schema.from_dict(
        {
            "name": "houses",
            "columns": {"size": {"type": "number", "lower": 0, "upper": 10}},
            "target": {"name": "price", "lower": 0, "upper": 25},
        }
    )
    agreement = JointTraining(schema=schema, parties={"a": 1000, "b": 2000}, epsilon=2.0, delta=1e-5)
    release = train_together(agreement, {"a": houses[:1000], "b": houses[1000:]}, random_state=1)
    errors = release.model.predict(held_out) - np.array(held_out["price"])
    assert np.mean(np.abs(errors)) < 1.2 * math.sqrt(2.0 / math.pi)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"loss": "multinomial", "algorithm": "aggregation"}, "loss: must be one of logistic"),
        ({"loss": "huber"}, "loss: must be one of logistic"),
        ({"algorithm": "nothing"}, "algorithm"),
    ],
)
def test_losses_that_do_not_fit_are_refused(changes: Any, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        JointTraining(schema=regions(), parties=PARTIES, epsilon=1.0, delta=1e-5, **changes)
    with pytest.raises(SchemaError, match="loss: must be one of huber"):
        JointTraining(schema=ages(), parties=PARTIES, epsilon=1.0, delta=1e-5, loss="logistic")


def test_one_against_the_rest_can_still_be_asked_for() -> None:
    agreement = JointTraining(schema=regions(), parties=PARTIES, epsilon=1.0, delta=1e-5, loss="logistic")
    assert agreement.mechanism.task.problems == 4
