"""A census table with no bounds at all costs at most one point: a small version of benchmarks/bought_bounds.py."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import BudgetSplit, Guarantee, PrivateLogisticRegression, Schema, SchemaDraft, discover
from privlearn.data import census_schema, simulated_census

TOTAL, SPLIT = Guarantee(1.0, 1e-5), BudgetSplit(bounds=0.1, fit=0.9)
NEW_PEOPLE = simulated_census(20_000, seed=1000)


def without_bounds(*, lists: bool) -> SchemaDraft:
    """Return a schema of names and types alone."""
    content: dict[str, Any] = census_schema().to_dict()
    for column in content["columns"].values():
        if column["type"] == "number":
            column |= {"lower": "estimate", "upper": "estimate", "scale": "linear"}
        elif lists:
            column |= {"values": "estimate", "unknown": "other"}
    if lists:
        content["target"]["classes"] = "estimate"
    return SchemaDraft.from_dict(content)


def error(schema: Schema, promise: Guarantee, people: Any, seed: int) -> float:
    model = PrivateLogisticRegression(
        epsilon=promise.epsilon, delta=promise.delta, schema=schema, random_state=seed
    )
    return 1.0 - model.fit(people).score(NEW_PEOPLE)


@pytest.mark.parametrize("lists", [False, True], ids=["bounds", "bounds and lists"])
def test_bought_with_a_tenth_it_is_at_most_a_point_worse(lists: bool) -> None:
    plan, draft, gaps = SPLIT.of(TOTAL), without_bounds(lists=lists), []
    price = plan.guarantee("bounds")
    for seed in range(2):
        people = simulated_census(36_000, seed=seed)
        schema = discover(people, draft, epsilon=price.epsilon, delta=price.delta, random_state=seed)
        bought = error(schema, plan.guarantee("fit"), people, seed)
        gaps.append(bought - error(census_schema(), TOTAL, people, seed))
    assert np.mean(gaps) <= 0.01


@pytest.mark.skipif("PRIVLEARN_DATA" not in os.environ, reason="PRIVLEARN_DATA is not set")
def test_adult_without_bounds() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "bought_bounds.py"
    spec = importlib.util.spec_from_file_location("bought_bounds", path)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    table = benchmark.load_adult()
    means = [
        np.mean([benchmark.error(table, wanted, TOTAL, seed) for seed in range(2)])
        for wanted in benchmark.CASES.values()
    ]
    assert np.max(means[1:]) - means[0] <= 0.01
