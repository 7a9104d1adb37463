"""Rows in several places: the same minimiser, sums in a fixed order, and a linear term that no place sees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privlearn.errors import InvalidParameter
from privlearn.solvers import (
    MAX_PARTITION_ROWS,
    MAX_PARTITIONS,
    Huber,
    HuberHinge,
    Logistic,
    Loss,
    Objective,
    PartitionRows,
    Problem,
    Rows,
    check_partitions,
    minimise,
    minimise_multinomial,
    minimise_summed,
    minimise_summed_multinomial,
    sums_in_order,
)
from privlearn.solvers.certifiable import MAX_LEVELS
from privlearn.solvers.multinomial import Softmax
from privlearn.solvers.problem import pairwise_sum

TOLERANCE = 1e-9
REGULARIZATION = 1e-3


class PlacesHere:
    """Rows of a problem in several places of this process, which remember what they were asked."""

    def __init__(self, parts: list[dict[str, Any]], loss: Loss, total: int, classes: int = 0) -> None:
        self._parts, self._loss, self._total, self._classes = parts, loss, total, classes
        self._at = [PartitionRows(self._objective(part)) for part in parts]
        self.count = sum(len(part["features"]) for part in parts)
        self.dimension = int(parts[0]["features"].shape[1])
        self.is_sparse = False
        self.offset_bound = 0.0
        self.arguments: list[Any] = []
        self.some: PlacesHere | None = None

    def total(self, answer: Any, *arguments: Any) -> list[Any]:
        self.arguments += arguments
        return sums_in_order([answer(place, *arguments) for place in self._at])

    def every(self, stride: int) -> PlacesHere:
        some = [{name: column[::stride] for name, column in part.items()} for part in self._parts]
        self.some = PlacesHere(some, self._loss, max(1, self._total // stride), self._classes)
        return self.some

    def _objective(self, part: dict[str, Any]) -> Objective | Softmax:
        if not self._classes:
            return Objective(Problem(loss=self._loss, regularization=1.0, total=self._total, **part))
        rows = Rows(part["features"], 1.0)
        linear = np.zeros(self._classes * rows.dimension)
        scales = part["row_weights"] / self._total
        return Softmax(rows, part["labels"].astype(int), self._classes, 1.0, scales, 1.0, linear)


def columns(rows: int, dimension: int, seed: int, loss: Loss) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(rows, dimension))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1))[:, np.newaxis]
    found = {"features": features, "row_weights": generator.uniform(0.5, 1.0, rows)}
    if loss.argument == "residual":
        return found | {"signs": np.ones(rows), "offsets": generator.uniform(-1.0, 1.0, rows)}
    return found | {"signs": np.where(features[:, 0] + generator.normal(size=rows) > 0, 1.0, -1.0)}


def in_parts(whole: dict[str, Any], sizes: list[int]) -> list[dict[str, Any]]:
    ends = np.cumsum(sizes)
    return [
        {name: column[end - size : end] for name, column in whole.items()}
        for size, end in zip(sizes, ends, strict=True)
    ]


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(), Huber()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("dimension", [5, 300])
def test_the_minimiser_is_that_of_all_rows(
    loss: Loss, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "privlearn.solvers.solve.FACTORISED_LIMIT", 100
    )  # so that both kinds of direction are taken
    whole = columns(3000, dimension, 1, loss)
    linear = np.random.default_rng(2).normal(size=dimension) / 100
    problem = Problem(loss=loss, regularization=REGULARIZATION, total=3000, linear=linear, **whole)
    expected = minimise(problem, tolerance=TOLERANCE)
    places = PlacesHere(in_parts(whole, [1000, 1, 0, 1999]), loss, 3000)
    found = minimise_summed(places, loss, REGULARIZATION, linear, TOLERANCE)
    assert found.gradient_norm <= TOLERANCE
    apart = float(np.linalg.norm(found.coefficients - expected.coefficients))
    assert apart <= 2 * TOLERANCE / REGULARIZATION


@pytest.mark.parametrize("most_columns", [3000, 1])
def test_classes_too(most_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privlearn.solvers.multinomial.MAX_COLUMNS", most_columns)
    whole = columns(500, 4, 3, Logistic())
    del whole["signs"]
    whole["labels"] = np.random.default_rng(4).integers(0, 3, 500)
    linear = np.random.default_rng(5).normal(size=(3, 4)) / 100
    expected = minimise_multinomial(
        whole["features"],
        whole["labels"],
        3,
        regularization=REGULARIZATION,
        total=500,
        row_weights=whole["row_weights"],
        linear=linear,
        tolerance=TOLERANCE,
    )
    places = PlacesHere(in_parts(whole, [100, 400]), Logistic(), 500, classes=3)
    found = minimise_summed_multinomial(places, 3, REGULARIZATION, linear, TOLERANCE)
    assert found.gradient_norm <= TOLERANCE
    apart = float(np.linalg.norm(found.coefficients - expected.coefficients))
    assert apart <= 2 * TOLERANCE / REGULARIZATION


def test_no_place_is_told_the_linear_term() -> None:
    whole = columns(6000, 5, 1, Logistic())
    linear = np.random.default_rng(2).normal(size=5)
    places = PlacesHere(in_parts(whole, [3000, 3000]), Logistic(), 6000)
    minimise_summed(places, Logistic(), REGULARIZATION, linear, TOLERANCE)
    assert places.some is not None
    told = [*places.arguments, *places.some.arguments]
    arrays = [
        each for argument in told for each in (argument if isinstance(argument, tuple) else (argument,))
    ]
    vectors = [each for each in arrays if isinstance(each, np.ndarray) and each.shape == linear.shape]
    assert vectors
    longest = float(np.linalg.norm(linear))
    for vector in filter(np.any, vectors):  # nor a multiple of it
        assert abs(vector @ linear) < (1 - 1e-12) * longest * float(np.linalg.norm(vector))


def test_a_place_that_begins_anew_answers_alike() -> None:
    part = columns(200, 3, 6, Logistic())
    one, other = np.random.default_rng(7).normal(size=(2, 3))

    def place() -> PartitionRows:
        return PartitionRows(Objective(Problem(loss=Logistic(), regularization=1.0, total=200, **part)))

    old = place()
    old.sums(one)
    old.sums(other)
    for ask in (
        lambda each: each.line_derivatives(one, other, 0.5),
        lambda each: each.gram((one, other), np.float64),
        lambda each: each.product((other,), one),
    ):
        for known, new in zip(ask(old), ask(place()), strict=True):
            np.testing.assert_array_equal(known, new)


@pytest.mark.parametrize("places", [1, 2, 15, 16, 17, 37, 300])
def test_sums_of_groups_are_those_of_one_pairwise_sum(places: int) -> None:
    answers = [(np.random.default_rng(place).normal(size=3),) for place in range(places)]
    flat = pairwise_sum((answer[0].copy() for answer in answers), 3)
    layer: list[Any] = list(answers)
    while len(layer) > 1:
        layer = [tuple(sums_in_order(layer[start : start + 16])) for start in range(0, len(layer), 16)]
    np.testing.assert_array_equal(layer[0][0], flat)


def test_the_chain_of_additions_is_no_longer_than_certified() -> None:
    assert math.ceil(math.log2(MAX_PARTITIONS)) + math.ceil(math.log2(MAX_PARTITION_ROWS)) <= MAX_LEVELS
    check_partitions([1] * MAX_PARTITIONS)
    for rows in ([1] * (MAX_PARTITIONS + 1), [MAX_PARTITION_ROWS + 1]):
        with pytest.raises(InvalidParameter, match="divide them"):
            check_partitions(rows)
