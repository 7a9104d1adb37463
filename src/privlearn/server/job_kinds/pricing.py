"""The price and the forecast of a training, from public parameters: schema, number of records, learner, guarantee.

The price needs a calibrated mechanism only (under a millisecond once the learner is known); the forecast also simulates
typical rows to compare noise with signal. Neither reads a record.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from privlearn.errors import InvalidParameter
from privlearn.estimators.fit import Fit
from privlearn.estimators.forecast.fit_forecast import calibrate_fit, fit_on_stand_ins, plan
from privlearn.estimators.forecast.forecast import Forecast
from privlearn.estimators.forecast.session_forecast import calibrate_session, forecast_session
from privlearn.guarantee import Guarantee
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import SESSION_MECHANISMS, Recipe, estimator, kernel_learner
from privlearn.server.jobs.requests import FromSchema, Points
from privlearn.server.refusals import TooLarge

MAX_POINTS = 2000
"""Public points of a model: the square matrix of their kernel is held in memory and factorised."""
_CURVE_EPSILONS = np.geomspace(0.01, 10.0, 25)


def calibrate_training(
    offered: OfferedDataSet,
    recipe: Recipe,
    guarantee: Guarantee,
    mechanism: str = "model",
    points: Points | None = None,
) -> Any:
    """Return the calibrated mechanism that a training runs; refuse what no theorem covers.

    Parameters
    ----------
    offered : OfferedDataSet
    recipe : Recipe
    guarantee : Guarantee
    mechanism : {"model", "function_release", "pinp"}, default="model"
        How a session answers; a release is a model.
    points : pyarrow.Table or "schema", optional
        The analyst's public points; "schema" has the server generate them.
    """
    _check_options(mechanism, points)
    if mechanism != "model":
        learner = kernel_learner(recipe, offered.schema, guarantee)
        return calibrate_session(learner, offered.records, guarantee, mechanism)
    if isinstance(points, pa.Table):
        work = fit_on_stand_ins(estimator(recipe, offered.schema, guarantee, public_points=points), count=2)
    else:
        work = _cached_fit(offered, recipe, guarantee.delta, points)
    return calibrate_fit(work, offered.records, guarantee)


def estimate_training(
    offered: OfferedDataSet,
    recipe: Recipe,
    guarantee: Guarantee,
    mechanism: str = "model",
    points: Points | None = None,
) -> dict[str, Any]:
    """Return cost, noise, verdict and what would change it, as JSON values. The parameters: see `calibrate_training`.

    To what `Forecast.to_dict` returns it adds ``curve``: epsilon, noise, margin, ratio and verdict for a range of
    epsilons. Infinite numbers become ``None``.
    """
    _check_options(mechanism, points)
    if isinstance(points, pa.Table):
        model = estimator(recipe, offered.schema, guarantee, public_points=points)
        return _as_json(plan(model, offered.records))
    return dict(_cached_estimate(offered, recipe, guarantee, mechanism, points))


def _check_options(mechanism: str, points: Points | None) -> None:
    if mechanism not in SESSION_MECHANISMS:
        raise InvalidParameter(f"mechanism must be one of {', '.join(SESSION_MECHANISMS)}.")
    if points is not None and mechanism != "model":
        raise InvalidParameter(
            f"a session with mechanism {mechanism} takes no public points. Leave them out."
        )
    if isinstance(points, pa.Table) and points.num_rows > MAX_POINTS:
        raise TooLarge(f"{points.num_rows} public points are more than {MAX_POINTS}. Send fewer points.")


@lru_cache(maxsize=32)
def _cached_fit(offered: OfferedDataSet, recipe: Recipe, delta: float, points: FromSchema | None) -> Fit:
    """Return the work of a fit, set up once for all epsilons: generated points are factorised here."""
    guarantee = Guarantee(1.0, delta, offered.settings.neighbours)
    return fit_on_stand_ins(estimator(recipe, offered.schema, guarantee, public_points=points), count=2)


@lru_cache(maxsize=32)  # each holds thousands of synthetic rows
def _cached_forecast(
    offered: OfferedDataSet, recipe: Recipe, delta: float, mechanism: str, points: FromSchema | None
) -> Forecast:
    """Return a forecast whose synthetic rows are generated and encoded once for all epsilons."""
    guarantee = Guarantee(1.0, delta, offered.settings.neighbours)
    if mechanism == "model":
        return plan(estimator(recipe, offered.schema, guarantee, public_points=points), offered.records)
    learner = kernel_learner(recipe, offered.schema, guarantee)
    return forecast_session(learner, offered.records, guarantee, mechanism)


@lru_cache(maxsize=256)
def _cached_estimate(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: FromSchema | None
) -> dict[str, Any]:
    forecast = _cached_forecast(offered, recipe, guarantee.delta, mechanism, points)
    return _as_json(forecast.at(epsilon=guarantee.epsilon))


def _as_json(forecast: Forecast) -> dict[str, Any]:
    points = (forecast.at(epsilon=float(epsilon)) for epsilon in _CURVE_EPSILONS)
    curve = [
        {"epsilon": point.guarantee.epsilon}
        | {name: getattr(point, name) for name in ("noise", "margin", "ratio", "verdict")}
        for point in points
    ]
    record: dict[str, Any] = _finite(forecast.to_dict() | {"curve": curve})
    return record


def _finite(value: Any) -> Any:
    """Return a JSON value with ``None`` for infinite numbers, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
