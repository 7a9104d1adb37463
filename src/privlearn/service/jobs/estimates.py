"""What a training would cost and how noisy it would be: told from public facts, free of charge."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.planning.forecast import Forecast
from privlearn.planning.planner import plan
from privlearn.planning.session_plan import plan_session
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.jobs.recipes import SESSION_MECHANISMS, Recipe, estimator, kernel_learner
from privlearn.service.refusals import TooLarge

MOST_POINTS = 2000
"""Landmarks of a model; their kernel's square is held in memory and factorised."""
LEAST_EPSILON = 1e-6
_EPSILONS = np.geomspace(0.01, 10.0, 25)


def estimate(
    offered: OfferedDataSet,
    recipe: Recipe,
    guarantee: Guarantee,
    mechanism: str = "model",
    points: pa.Table | None = None,
) -> dict[str, Any]:
    """Cost, noise, verdict and what would change it, as plain JSON values.

    Parameters
    ----------
    offered : OfferedDataSet
    recipe : Recipe
    guarantee : Guarantee
    mechanism : {"model", "function_release", "pinp"}, default="model"
        How a session answers; a release is a model.
    points : pyarrow.Table, optional
        The analyst's public points.

    Returns
    -------
    dict
        What `Plan.to_dict` gives, and ``curve``: epsilon, noise, margin, ratio and verdict along a range of epsilons.
        Where a number is infinite it is ``None``.
    """
    if points is None:
        return dict(_told(offered, recipe, guarantee, mechanism))
    return _described(_foretold(offered, recipe, guarantee, mechanism, points))


def check_request(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: pa.Table | None
) -> None:
    """Refuse what no theorem covers, and points that do not fit the schema."""
    if mechanism != "model" and points is not None:
        raise InvalidParameter("a session on a kernel machine needs no public points: leave them out")
    planned(offered, recipe, guarantee, mechanism, points)  # some promises cannot be kept


def planned(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: pa.Table | None
) -> Any:
    """The calibrated mechanism that a training runs, from public facts: what it costs is known before rows are read."""
    return _foretold(offered, recipe, guarantee, mechanism, points).mechanism


def _foretold(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: pa.Table | None
) -> Forecast:
    if mechanism not in SESSION_MECHANISMS:
        raise InvalidParameter(f"mechanism must be one of {', '.join(SESSION_MECHANISMS)}")
    _check_promise(guarantee)
    if points is not None:
        _check_count(points)
        return plan(estimator(recipe, offered.schema, guarantee, public_points=points), offered.records)
    general = _general(offered, recipe, guarantee.delta, mechanism)
    return general.at(epsilon=guarantee.epsilon)


@lru_cache(maxsize=32)  # each holds thousands of rows
def _general(offered: OfferedDataSet, recipe: Recipe, delta: float, mechanism: str) -> Forecast:
    """Rows are made up and encoded once for all epsilons."""
    guarantee = Guarantee(1.0, delta, offered.settings.neighbours)
    if mechanism == "model":
        return plan(estimator(recipe, offered.schema, guarantee), offered.records)
    learner = kernel_learner(recipe, offered.schema, guarantee)
    return plan_session(learner, offered.records, guarantee, mechanism)


@lru_cache(maxsize=256)
def _told(offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str) -> dict[str, Any]:
    return _described(_foretold(offered, recipe, guarantee, mechanism, None))


def _described(foretold: Forecast) -> dict[str, Any]:
    curve = [_point(foretold.at(epsilon=float(epsilon))) for epsilon in _EPSILONS]
    told: dict[str, Any] = _finite(foretold.to_dict() | {"curve": curve})
    return told


def _point(foretold: Forecast) -> dict[str, Any]:
    return {
        "epsilon": foretold.guarantee.epsilon,
        "noise": foretold.noise,
        "margin": foretold.margin,
        "ratio": foretold.ratio,
        "verdict": foretold.verdict,
    }


def _check_promise(guarantee: Guarantee) -> None:
    if not guarantee.is_private:
        raise InvalidParameter("epsilon must be finite: the holder lets only private results out")
    if guarantee.epsilon < LEAST_EPSILON:
        raise InvalidParameter(f"epsilon below {LEAST_EPSILON:g} leaves nothing but noise: ask for more")


def _check_count(points: pa.Table) -> None:
    if points.num_rows > MOST_POINTS:
        raise TooLarge(f"{points.num_rows} public points are more than the {MOST_POINTS} allowed: send fewer")


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
