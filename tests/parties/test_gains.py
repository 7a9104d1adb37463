"""Is it worth it for me? From public numbers, for every kind of plan."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from privlearn.data import Schema, census_schema, simulated_census
from privlearn.errors import InvalidParameter
from privlearn.estimators.forecast import Spectrum, reference_problem
from privlearn.parties import JointTraining, expected_gains, train_together
from privlearn.parties.run.gains import _noise

SIZES = {"east": 1000, "north": 5000, "west": 14000}


def agreement(**changes: Any) -> JointTraining:
    usual: dict[str, Any] = {"schema": census_schema(), "parties": SIZES, "epsilon": 1.0, "delta": 1e-5}
    return JointTraining(**usual | changes)


def test_the_small_gain_and_the_large_do_not() -> None:
    east, north, west = expected_gains(agreement())
    assert east.verdict == "gains"
    assert east.gain > north.gain > west.gain
    assert west.verdict == "gains nothing"
    assert east.together == west.together


def test_equal_parties_gain_alike() -> None:
    gains = {party.gain for party in expected_gains(agreement(parties={"a": 2000, "b": 2000, "c": 2000}))}
    assert len(gains) == 1
    assert gains.pop() > 0.02


def test_table_and_json() -> None:
    told = expected_gains(agreement())
    assert "west: alone is as good or better." in str(told)
    record = json.loads(json.dumps(told.to_dict()))
    assert [each["verdict"] for each in record["parties"]] == [party.verdict for party in told]
    assert record["excess_error"] == "share of wrong answers"


def ages() -> Schema:
    """Return the schema of the census with age as the number to predict."""
    content = census_schema().to_dict()
    del content["columns"]["age"]
    return Schema.from_dict(content | {"target": {"name": "age", "lower": 17, "upper": 90}})


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "huber_hinge"},
        {"neighbours": "add_remove"},
        {"algorithm": "aggregation"},
        {"algorithm": "aggregation", "delta": 0.0},
        {"kernel": {"name": "rbf", "gamma": 0.5, "fourier_pairs": 20}},
        {"schema": ages()},
    ],
    ids=str,
)
def test_every_kind_of_plan(changes: dict[str, Any]) -> None:
    told = expected_gains(agreement(**changes))
    assert [party.party for party in told] == list(SIZES)
    assert all(np.isfinite([party.alone, party.together]).all() for party in told)
    assert told.parties[0].gain >= told.parties[2].gain


def test_psgd_has_no_forecast() -> None:
    with pytest.raises(InvalidParameter, match="psgd"):
        expected_gains(agreement(algorithm="psgd", rounds=5, accept_weak_privacy=True))


def test_the_noise_of_descent_is_near_what_runs_show() -> None:
    agreed = agreement(parties={"a": 2000, "b": 2000})
    tables = {"a": simulated_census(2000, seed=1), "b": simulated_census(2000, seed=2)}
    runs = [train_together(agreed, tables, random_state=seed) for seed in range(12)]
    rows = runs[0].model.encoder.encode(simulated_census(500, seed=3))
    scores = [rows @ run.model.coefficients[0] for run in runs]
    seen = np.sqrt(np.mean(np.var(scores, axis=0, ddof=1)))
    told = _noise(agreed.mechanism, Spectrum.of(rows), reference_problem(agreed.smooth_loss))
    assert 0.5 < told / seen < 2.0
