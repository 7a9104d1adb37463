"""What releases and sessions share: a model is planned, estimated and trained by the recipe that was asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.errors import DataError, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.planning.forecast import Forecast
from privlearn.planning.planner import plan
from privlearn.planning.session_plan import plan_session
from privlearn.randomness import SecureRandomness
from privlearn.release.artifact import Release
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.job_kinds.job_kind import Asked, JobFields, JobKind, Plan
from privlearn.service.jobs.recipes import (
    SESSION_MECHANISMS,
    Recipe,
    SessionMechanism,
    estimator,
    kernel_learner,
)
from privlearn.service.jobs.requests import FromSchema, JobRequest, Points, ResultInfo
from privlearn.service.refusals import TooLarge

MOST_POINTS = 2000
"""Landmarks of a model; their kernel's square is held in memory and factorised."""
_EPSILONS = np.geomspace(0.01, 10.0, 25)


def estimate(
    offered: OfferedDataSet,
    recipe: Recipe,
    guarantee: Guarantee,
    mechanism: str = "model",
    points: Points | None = None,
) -> dict[str, Any]:
    """Cost, noise, verdict and what would change it, as plain JSON values.

    Parameters
    ----------
    offered : OfferedDataSet
    recipe : Recipe
    guarantee : Guarantee
    mechanism : {"model", "function_release", "pinp"}, default="model"
        How a session answers; a release is a model.
    points : pyarrow.Table or "schema", optional
        The analyst's public points; the word has them made up.

    Returns
    -------
    dict
        What `Plan.to_dict` gives, and ``curve``: epsilon, noise, margin, ratio and verdict along a range of epsilons.
        Where a number is infinite it is ``None``.
    """
    if isinstance(points, pa.Table):
        return _described(_foretold(offered, recipe, guarantee, mechanism, points))
    return dict(_told(offered, recipe, guarantee, mechanism, points))


def planned(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: Points | None
) -> Any:
    """The calibrated mechanism that a training runs, from public facts: what it costs is known before rows are read.

    Refuses what no theorem covers, and points that do not fit the schema.
    """
    return _foretold(offered, recipe, guarantee, mechanism, points).mechanism


def _foretold(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: Points | None
) -> Forecast:
    if mechanism not in SESSION_MECHANISMS:
        raise InvalidParameter(f"mechanism must be one of {', '.join(SESSION_MECHANISMS)}")
    if points is not None and mechanism != "model":
        raise InvalidParameter("a session on a kernel machine needs no public points: leave them out")
    if isinstance(points, pa.Table):
        _check_count(points)
        return plan(estimator(recipe, offered.schema, guarantee, public_points=points), offered.records)
    general = _general(offered, recipe, guarantee.delta, mechanism, points)
    return general.at(epsilon=guarantee.epsilon)


@lru_cache(maxsize=32)  # each holds thousands of rows
def _general(
    offered: OfferedDataSet, recipe: Recipe, delta: float, mechanism: str, points: FromSchema | None
) -> Forecast:
    """Rows, and points where the word asks for them, are made up and encoded once for all epsilons."""
    guarantee = Guarantee(1.0, delta, offered.settings.neighbours)
    if mechanism == "model":
        return plan(estimator(recipe, offered.schema, guarantee, public_points=points), offered.records)
    learner = kernel_learner(recipe, offered.schema, guarantee)
    return plan_session(learner, offered.records, guarantee, mechanism)


@lru_cache(maxsize=256)
def _told(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: FromSchema | None
) -> dict[str, Any]:
    return _described(_foretold(offered, recipe, guarantee, mechanism, points))


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


class TrainingFields(JobFields):
    """Which model is trained, and how it gives its answers."""

    learner: str = Field(default="", max_length=64, description="One of those on offer; left out: the first.")
    mechanism: SessionMechanism = Field(default="model", description="What answers.")


Fields = TypeVar("Fields", bound=TrainingFields)


class TrainingKind(JobKind[Fields, Plan]):
    """A model is trained on the rows."""

    example: ClassVar[Mapping[str, JsonValue]] = {"learner": "logistic"}
    takes_points: ClassVar[bool] = True

    def completed(self, fields: Fields, offered: OfferedDataSet) -> Fields:
        """With the first learner on offer where none is named."""
        first = next(iter(offered.learners))
        return fields if fields.learner else fields.model_copy(update={"learner": first})

    def plan(self, asked: Asked[Fields]) -> Plan:
        plan: Plan = planned(*_asked_for(asked))
        return plan

    def estimate(self, asked: Asked[Fields]) -> dict[str, Any]:
        return estimate(*_asked_for(asked))

    def identity(self, request: JobRequest) -> str:
        """As version 0.1 wrote it: what was asked for then and is asked again finds its job."""
        learner, mechanism = (request.fields[name] for name in ("learner", "mechanism"))
        facts = (request.dataset, request.kind, learner, request.epsilon, request.delta)
        return repr((*facts, mechanism, request.trial))

    def purpose(self, fields: Fields) -> str:
        return f"{self.name}, {fields.learner}"

    def heading(self, fields: Fields) -> str:
        return f"Training {fields.learner}"

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        """What it made has a page of its own."""
        link = Markup('<p class="actions"><a class="button" href="/{}s/{}">Open the {}</a></p>')
        return link.format(self.name, result.id, self.name)


def recipe_of(asked: Asked[Fields]) -> Recipe:
    return asked.offered.recipe(asked.fields.learner)


def trained(asked: Asked[Fields], plan: Plan, rows: Any) -> Release:
    """Touch the data: the model that the plan allows."""
    learner = estimator(
        recipe_of(asked),
        asked.offered.schema,
        asked.guarantee,
        expected_records=asked.offered.settings.expected_records,
        public_points=asked.points,
    )
    work = learner.prepare(rows, None, private=True)
    check_same(work.plan(asked.guarantee), plan)
    release: Release = work.release(plan, SecureRandomness())
    return release


def check_same(mechanism: Plan, paid: Plan) -> None:
    """What is run must be what was paid for; the number of records alone can have changed, and that is public."""
    if mechanism != paid:
        raise DataError(
            "the table has another number of records than at the server's start: restart the server"
        )


def _asked_for(asked: Asked[Fields]) -> tuple[Any, ...]:
    return asked.offered, recipe_of(asked), asked.guarantee, asked.fields.mechanism, asked.points
