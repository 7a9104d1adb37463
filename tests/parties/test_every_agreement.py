"""A plan that is accepted runs: every algorithm, with and without delta, under every relation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from privlearn import verify
from privlearn.data import Schema, census_schema, simulated_census
from privlearn.errors import SchemaError
from privlearn.guarantee import RELATIONS
from privlearn.parties import JointTraining, simulate
from privlearn.parties.run import Algorithm

TABLES = {
    name: simulated_census(size, seed=size) for name, size in (("a", 40), ("b", 60), ("c", 80), ("d", 100))
}
REGIONS = {"name": "region", "classes": ["north", "east", "south", "west"]}
ACCEPTED = (
    {
        ("two classes", algorithm, delta)
        for algorithm in get_args(Algorithm)
        for delta in (0.0, 1e-3)
        if (algorithm, delta) != ("descent", 0.0)
    }
    | {
        ("four classes", algorithm, delta)
        for algorithm in ("aggregation", "uniform_aggregation")
        for delta in (0.0, 1e-3)
    }
    | {("four classes", "descent", 1e-3)}
)


def schema_of(target: str) -> Schema:
    content = census_schema().to_dict()
    kept = {name: content["columns"][name] for name in ("age", "sex")}
    content["columns"] = kept
    if target == "four classes":
        content["target"] = REGIONS
    return Schema.from_dict(content)


def agreement_of(target: str, algorithm: Any, delta: float, neighbours: str, **changes: Any) -> JointTraining:
    settings: dict[str, Any] = {"epsilon": 3.0, "regularization": 0.1, "accept_weak_privacy": True}
    if "aggregation" not in algorithm:
        settings["rounds"] = 2
    return JointTraining(
        schema=schema_of(target),
        parties={name: table.num_rows for name, table in TABLES.items()},
        algorithm=algorithm,
        delta=delta,
        neighbours=neighbours,
        **settings | changes,
    )


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize("algorithm", get_args(Algorithm))
@pytest.mark.parametrize("target", ["two classes", "four classes"])
def test_an_accepted_plan_runs_and_verifies(
    target: str, algorithm: str, delta: float, neighbours: str, tmp_path: Path
) -> None:
    """The messages of a real run; refused plans are refused before anybody signs."""
    try:
        agreement = agreement_of(target, algorithm, delta, neighbours)
    except SchemaError:
        assert (target, algorithm, delta) not in ACCEPTED
        return
    assert (target, algorithm, delta) in ACCEPTED
    assert agreement.summary()["cost"] == str(agreement.guarantee)
    release = simulate(agreement, TABLES)
    release.save(tmp_path / "joint.privlearn")
    proven = verify(tmp_path / "joint.privlearn")
    assert proven.is_private
    assert proven.recomputed <= proven.claimed == agreement.guarantee
    if delta == 0:
        assert (proven.claimed.epsilon, proven.claimed.delta) == (3.0, 0.0)


@pytest.mark.parametrize("colluding", [0, 3])
@pytest.mark.parametrize("algorithm", ["aggregation", "psgd"])
def test_without_delta_the_noise_does_not_depend_on_who_colludes(algorithm: str, colluding: int) -> None:
    """Every party's own noise keeps the guarantee, so nobody else's counts."""
    usual = agreement_of("two classes", algorithm, 0.0, "replace_one")
    other = agreement_of("two classes", algorithm, 0.0, "replace_one", colluding=colluding)
    assert other.mechanism.question(0).noise == usual.mechanism.question(0).noise
