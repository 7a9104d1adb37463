"""Whole fits on neighbouring tables: what enters noise moves by what the certificate assumes, and is all that is drawn.

Tables are random and small; the fit is the public one, from the schema to the release.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, PrivateRegressor
from privlearn.accounting import gaussian_delta
from privlearn.mechanisms import noise
from privlearn.mechanisms.statistics import centring

Table = dict[str, Any]
Drawn = list[tuple[str, Any, float]]

EPSILON = 16.0


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """Record every vector that noise is added to, with its distribution and scale."""
    record: Drawn = []

    def recorded(name: str, add: Any) -> Any:
        def add_and_record(values: Any, scale: float, randomness: Any) -> Any:
            record.append((name, np.array(values, dtype=float).ravel(), scale))
            return add(values, scale, randomness)

        return add_and_record

    for name, add in list(noise.ADD_NOISE.items()):
        monkeypatch.setitem(noise.ADD_NOISE, name, recorded(name, add))
    monkeypatch.setattr(centring, "add_gaussian", recorded("gaussian", centring.add_gaussian))
    return record


def rows(rng: np.random.Generator, count: int, target: Any, answer: Any = None) -> Table:
    return {
        "x": rng.uniform(-1.0, 1.0, count),
        "y": rng.choice(target, count) if answer is None else np.full(count, answer),
        "w": rng.choice([0.1, 1.0, 3.0, 1e9, 0.0], count),
    }


def neighbours(
    rng: np.random.Generator, relation: str, target: Any, per_person: int, has_person: bool
) -> tuple[Table, Table]:
    """Return a table and one without, or with another, person."""
    count = int(rng.integers(1000, 1200))
    table = rows(rng, count, target)
    if has_person:
        table["id"] = np.arange(count) // 3
        leaves = table["id"] == 0
    else:
        leaves = np.arange(count) < per_person
    others = {name: cells[~leaves] for name, cells in table.items()}
    if relation != "replace_one":
        return table, others
    more = int(rng.integers(1, 200)) if has_person else per_person
    comes = rows(rng, more, target, answer=rng.choice(target) if rng.random() < 0.5 else None)
    comes |= {"id": np.zeros(more, dtype=int)} if has_person else {}
    return table, {name: np.concatenate([comes[name], others[name]]) for name in others}


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("persons", ["one row", "three rows", "averaged", "averaged by weight"])
@pytest.mark.parametrize("kind", ["two", "three", "number"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_person_moves_what_enters_noise_by_what_is_charged(
    relation: str, persons: str, kind: str, delta: float, drawn: Drawn
) -> None:
    rng = np.random.default_rng([len(relation), len(persons), len(kind), bool(delta)])
    labels = ["a", "b", "c"][: 2 if kind == "two" else 3]
    target: Table = {"name": "y", "lower": -1, "upper": 100}
    if kind != "number":
        target = {
            "name": "y",
            "classes": labels,
            "unknown": "zero",
            "weights": dict.fromkeys(labels[:1], 3.0),
        }
    schema: Table = {"name": "t", "columns": {"x": {"type": "number", "lower": -1, "upper": 1}}}
    schema["target"] = target
    of_persons: dict[str, Table] = {
        "one row": {"one_row_per_person": True, "weight": {"column": "w", "upper": 2}},
        "three rows": {"rows_per_person": 3},
        "averaged": {"person": "id", "weight": {"column": "w", "upper": 2}},
        "averaged by weight": {"person": "id", "weight": {"column": "w"}},
    }
    schema |= of_persons[persons]
    answers = [-1e9, 0.0, 3.0, 50.0, 1e9] if kind == "number" else [*labels, "not declared"]
    per_person = 3 if persons == "three rows" else 1
    settings: Table = {"expected_records": 1000} if relation == "add_remove" else {}
    estimator: Any = PrivateRegressor if kind == "number" else PrivateLogisticRegression
    largest = 0.0
    for _ in range(3):
        seen = []
        for table in neighbours(rng, relation, answers, per_person, persons.startswith("averaged")):
            drawn.clear()
            model = estimator(
                schema=schema, epsilon=EPSILON, delta=delta, neighbours=relation, mechanism="output", random_state=0,
                **settings,
            ).fit(table)  # fmt: skip
            seen.append(list(drawn))
        mechanism = model.certificate_.mechanism
        task, relates = mechanism.task, mechanism.task.relation
        assert [(name, scale) for name, _, scale in seen[0]] == [(name, scale) for name, _, scale in seen[1]]
        scales = [scale for part in task.statistics.values() for scale in scales_of(part)]
        assert [scale for _, _, scale in seen[0]] == [*scales, mechanism.noise_scale]
        statistic = task.target_locations if kind == "number" else task.class_counts
        assert statistic is not None
        (name, before, scale), (_, after, _) = seen[0][0], seen[1][0]
        order, bound = (2, relates.counts) if name == "gaussian" else (1, float(relates.gradients))
        moved = float(np.linalg.norm(before - after, order))
        assert moved <= bound * task.records_of_a_person
        largest = max(largest, moved / (bound * task.records_of_a_person))
        if name == "gaussian":
            squares = sum(part.ratio(relates) ** 2 for part in task.statistics.values())
            ratio = math.hypot(task.records_of_a_person * math.sqrt(squares), mechanism.ratio)
            assert gaussian_delta(ratio, EPSILON) <= delta
            assert statistic.ratio(relates) == pytest.approx(math.sqrt(len(statistic.cells)) * bound / scale)
        else:
            whole = task.records_of_a_person * len(statistic.cells) * bound / scale
            assert task.other_epsilon == pytest.approx(whole)
            assert mechanism.spends().epsilon <= EPSILON
    assert largest > 0.0


def scales_of(statistic: Any) -> list[float]:
    """Return the noise scales of a statistic in the order in which they are drawn."""
    if isinstance(statistic, centring.Centring):
        return [statistic.mean_noise_scale, *[statistic.count_noise_scale] * 6]
    return [statistic.noise_scale] * len(statistic.cells)
