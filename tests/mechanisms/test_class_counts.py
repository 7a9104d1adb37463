"""Counts of the classes: one person moves them by what the cost assumes, and drowned ones still give offsets."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from privlearn import Guarantee
from privlearn.arrays import Array
from privlearn.data import ArrayEncoder
from privlearn.estimators import ClassTargets, MemoryOracle, TrainingRows
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import Task
from privlearn.mechanisms.statistics import ClassCounts
from privlearn.randomness import SeededRandomness
from privlearn.release.score_map import offsets_of_shares
from privlearn.solvers import Logistic

CLASSES = np.array([0, 1, 2])


def counts(labels: Any, **rows: Any) -> Array:
    """Count rows with these labels."""
    labels = np.array(labels)
    encoder = ArrayEncoder(1.0, 1)
    ignored = rows.pop("ignored", None)
    targets = ClassTargets(np.maximum(labels, 0), CLASSES, ignored)
    training = TrainingRows(encoder.encode(np.zeros((len(labels), 1))), encoder, targets, 10, **rows)
    task = Task(Logistic(), 10, 2, 3, 0.1, 1e-8, "replace_one")
    return MemoryOracle(training, task).class_counts()


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=list(RELATIONS))
def test_a_record_moves_the_counts_by_what_the_cost_assumes(relation: Any) -> None:
    one, nothing = counts([0, 1]), counts([0, -1], ignored=np.array([False, True]))
    other = counts([0, 2]) if relation.name == "replace_one" else nothing
    moved = one - other
    statistic = ClassCounts((3,), "gaussian", 7.0)
    assert np.linalg.norm(moved) / 7.0 == pytest.approx(statistic.ratio(relation))
    pure = ClassCounts((3,), "laplace", 7.0)
    assert np.abs(moved).sum() / 7.0 == pytest.approx(pure.epsilon(relation))


def test_many_rows_of_a_person_move_them_no_further() -> None:
    rows = 3000
    labels = np.concatenate([[0, 1], np.full(rows, 2)])
    weights = np.concatenate([[1.0, 1.0], np.full(rows, 1.0 / rows)])
    with_person = counts(labels, person_weights=weights)
    assert 0.99 <= np.abs(with_person - counts([0, 1])).sum() <= 1.0


def test_a_row_weight_moves_them_no_further() -> None:
    heavy = counts([0, 1, 2], relative_weights=np.array([0.5, 0.25, 1.0]), row_weight_bound=8.0)
    assert heavy.tolist() == [0.5, 0.25, 1.0]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("held", [[0.0, 10.0], [0.0, 0.0], [1e9, 0.0]])
@pytest.mark.parametrize("scale", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("is_exact", [False, True])
def test_empty_and_drowned_classes_have_offsets_within_the_bound(
    noise: str, held: list[float], scale: float, is_exact: bool
) -> None:
    class Counts:
        def class_counts(self) -> Array:
            return np.array(held)

    total = 10
    for seed in range(20):
        shares = ClassCounts((2,), noise, scale).run(Counts(), total, SeededRandomness(seed), is_exact)
        assert shares.sum() == pytest.approx(1.0)
        odds = offsets_of_shares(shares, None, together=False)
        assert np.all(np.abs(odds) <= np.log(2.0 * 2.0 * total))


def test_a_known_total_halves_the_variance_of_two_classes() -> None:
    class Counts:
        def class_counts(self) -> Array:
            return np.array([9e5, 1e5])

    def deviation(is_exact: bool) -> float:
        statistic = ClassCounts((2,), "gaussian", 1000.0)
        drawn = [
            statistic.run(Counts(), 10**6, SeededRandomness(seed), is_exact)[1] * 1e6 for seed in range(400)
        ]
        return float(np.std(drawn))

    assert deviation(True) == pytest.approx(1000.0 / np.sqrt(2.0), rel=0.15)
    assert deviation(False) > 850.0


def test_a_guarantee_needs_noise() -> None:
    task = Task(Logistic(), 10, 2, 1, 0.1, 1e-8, "replace_one")
    silent = dataclasses.replace(task, class_counts=ClassCounts((2,), "gaussian", 0.0))
    assert Guarantee(1.0, 1e-6).is_private
    assert silent.other_ratio == np.inf
    pure = dataclasses.replace(task, class_counts=ClassCounts((2,), "laplace", 0.0))
    assert pure.other_epsilon == np.inf
