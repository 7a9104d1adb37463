"""Several holders under add/remove: the plan says how many records are expected of each, nothing how many came."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from privlearn.data import census_schema, simulated_census
from privlearn.errors import DataError
from privlearn.estimators import MemoryOracle
from privlearn.guarantee import MAX_TABLE_RATIO
from privlearn.mechanisms.summed import Question
from privlearn.parties import JointTraining, Party, simulate, train_together
from tests.support.party_cases import descent, task_of, training_rows

CENSUS, OTHERS = simulated_census(1200, seed=1), simulated_census(1500, seed=2)
PLANS: dict[str, dict[str, Any]] = {
    "descent": {},
    "aggregation": {"algorithm": "aggregation"},
    "uniform": {"algorithm": "uniform_aggregation"},
    "psgd": {"algorithm": "psgd", "accept_weak_privacy": True, "rounds": 20},
    "kernel": {"kernel": {"name": "rbf", "fourier_pairs": 5}},
    "landmarks": {"kernel": {"name": "polynomial", "public_rows": CENSUS.slice(0, 4).to_pylist()}},
}


def agreement_of(neighbours: str = "add_remove", **settings: Any) -> JointTraining:
    common: dict[str, Any] = {
        "schema": census_schema(),
        "parties": {"north": 500, "south": 1500},
        "epsilon": 2.0,
        "delta": 1e-5,
    }
    return JointTraining(**common | settings, neighbours=neighbours)


@pytest.mark.parametrize("settings", PLANS.values(), ids=PLANS)
def test_certificates_do_not_depend_on_the_number_of_records(settings: dict[str, Any]) -> None:
    agreement = agreement_of(**settings)
    found = set()
    for count in (0, 1, 500, 501, 1200):
        release = train_together(
            agreement, {"north": CENSUS.slice(0, count), "south": OTHERS}, random_state=0
        )
        found.add(json.dumps([release.certificate.to_dict(), release.model.to_dict()]))
        assert release.certificate.records == 2000
    assert len(found) == 1


def test_messages_of_a_real_run_do_not_depend_on_it() -> None:
    agreement, lines = agreement_of(), []
    for count in (0, 1200):
        told: list[str] = []
        simulate(agreement, {"north": CENSUS.slice(0, count), "south": OTHERS}, told.append)
        lines.append([line for line in told if "signed the agreement" not in line])
        assert repr(agreement.read_party("north", CENSUS.slice(0, count))) == "Party(total=500)"
    assert lines[0] == lines[1]


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_public_counts_are_still_those_of_the_plan(neighbours: str) -> None:
    with pytest.raises(DataError, match="another number"):
        agreement_of(neighbours).read_party("north", CENSUS.slice(0, 499))


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_a_sum_beyond_its_bound_is_cut_off_and_not_refused(weight: float) -> None:
    """At the party's own part of it, so that all together keep the bound. That brings no two sums further apart: one
    record still moves it by one gradient at most."""
    mechanism = descent(task_of(total=2, neighbours="add_remove"))
    count = 3 * 2 * MAX_TABLE_RATIO
    rows = np.tile([0.999, 0.0, 0.0], (count, 1))
    question: Question = mechanism.question(0, np.zeros((1, 3)))
    answers = []
    for n in (count, count - 1, 1, 0):
        held = dataclasses.replace(training_rows(rows[:n], np.ones(n)), total=2)
        answers.append(Party(mechanism.task, MemoryOracle(held, mechanism.task), weight).answer(question))
    assert np.abs(answers[0]).max() == question.bound * weight
    assert np.linalg.norm(answers[0] - answers[1]) <= 1.0
    assert np.linalg.norm(answers[2] - answers[3]) == pytest.approx(0.999)
