"""The two kinds of job that train a model: a release, which leaves the server, and a session, which stays.

Price and forecast come from public parameters: schema, number of records, learner, guarantee. The price needs a
calibrated mechanism only (under a millisecond once the learner is known); the forecast also simulates typical rows to
compare noise with signal. Neither reads a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from privlearn.errors import InvalidParameter, SessionError
from privlearn.estimators.fit import Fit
from privlearn.estimators.forecast.fit_forecast import calibrate_fit, fit_on_stand_ins, plan
from privlearn.estimators.forecast.forecast import Forecast
from privlearn.estimators.forecast.session_forecast import calibrate_session, forecast_session
from privlearn.estimators.kernel_learner import KernelLearner
from privlearn.guarantee import Guarantee
from privlearn.randomness import SecureRandomness
from privlearn.release.artifact import Release
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import (
    SESSION_MECHANISMS,
    Recipe,
    SessionMechanism,
    estimator,
    kernel_learner,
)
from privlearn.server.job_kinds.job_kind import (
    JobContext,
    JobFields,
    JobKind,
    Mechanism,
    check_same,
    register_job_kind,
)
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.jobs.requests import SESSION, FromSchema, Points, Result, ResultInfo
from privlearn.server.refusals import TooLarge
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.opening import calibrate
from privlearn.sessions.state import SharedStore

MAX_POINTS = 2000
"""Public points of a model: the square matrix of their kernel is held in memory and factorised."""
_CURVE_EPSILONS = np.geomspace(0.01, 10.0, 25)


def calibrate_training(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: Points | None
) -> Any:
    """Return the calibrated mechanism that a training runs; refuse what no theorem covers.

    ``mechanism`` is how a session answers; a release is a model.
    """
    _check_options(mechanism, points)
    if mechanism != "model":
        learner = kernel_learner(recipe, offered.schema, guarantee)
        return calibrate_session(learner, offered.records, guarantee, mechanism)
    if isinstance(points, pa.Table):
        work = fit_on_stand_ins(estimator(recipe, offered.schema, guarantee, public_points=points), count=2)
    else:
        work = _cached_fit(offered, recipe, guarantee.delta > 0, points)
    return calibrate_fit(work, offered.records, guarantee)


def estimate_training(
    offered: OfferedDataSet,
    recipe: Recipe,
    guarantee: Guarantee,
    mechanism: str = "model",
    points: Points | None = None,
) -> dict[str, Any]:
    """Return cost, noise, verdict and what would change it, as JSON values, for the parameters of `calibrate_training`.

    To what `Forecast.to_dict` returns it adds ``curve``: epsilon, noise, margin, lost gain and verdict for a range of
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
        raise InvalidParameter(f"a session with mechanism {mechanism} takes no public points. Omit them.")
    if isinstance(points, pa.Table) and points.num_rows > MAX_POINTS:
        raise TooLarge(f"{points.num_rows} public points are more than {MAX_POINTS}. Send fewer points.")


@lru_cache(maxsize=32)
def _cached_fit(offered: OfferedDataSet, recipe: Recipe, approximate: bool, points: FromSchema | None) -> Fit:
    """Return the work of a fit, set up once for all guarantees: generated points are factorised here."""
    guarantee = _any_guarantee(offered, approximate)
    return fit_on_stand_ins(estimator(recipe, offered.schema, guarantee, public_points=points), count=2)


def _any_guarantee(offered: OfferedDataSet, approximate: bool) -> Guarantee:
    """Return a guarantee to set up work with that serves every epsilon, and every delta above 0 or none.

    With a set-up for each delta, an analyst could request seconds of work and megabytes again and again.
    """
    return Guarantee(1.0, 1e-6 if approximate else 0.0, offered.settings.neighbours)


@lru_cache(maxsize=32)  # each holds thousands of synthetic rows
def _cached_forecast(
    offered: OfferedDataSet, recipe: Recipe, approximate: bool, mechanism: str, points: FromSchema | None
) -> Forecast:
    """Return a forecast whose synthetic rows are generated and encoded once for all guarantees."""
    guarantee = _any_guarantee(offered, approximate)
    if mechanism == "model":
        return plan(estimator(recipe, offered.schema, guarantee, public_points=points), offered.records)
    learner = kernel_learner(recipe, offered.schema, guarantee)
    return forecast_session(learner, offered.records, guarantee, mechanism)


@lru_cache(maxsize=256)
def _cached_estimate(
    offered: OfferedDataSet, recipe: Recipe, guarantee: Guarantee, mechanism: str, points: FromSchema | None
) -> dict[str, Any]:
    forecast = _cached_forecast(offered, recipe, guarantee.delta > 0, mechanism, points)
    return _as_json(forecast.at(epsilon=guarantee.epsilon, delta=guarantee.delta))


def _as_json(forecast: Forecast) -> dict[str, Any]:
    points = (forecast.at(epsilon=float(epsilon)) for epsilon in _CURVE_EPSILONS)
    names = ("noise", "margin", "lost", "verdict")
    curve = [{"epsilon": at.guarantee.epsilon} | {name: getattr(at, name) for name in names} for at in points]
    # JSON has no infinite numbers.
    record: dict[str, Any] = to_jsonable_python(forecast.to_dict() | {"curve": curve}, inf_nan_mode="null")
    return record


class TrainingFields(JobFields):
    """The model to train, and the mechanism of its answers."""

    learner: str = Field(
        default="", max_length=64, description="A learner that the data set offers; omitted: the first."
    )
    mechanism: SessionMechanism = Field(default="model", description="What answers.")


Fields = TypeVar("Fields", bound=TrainingFields)


class TrainingKind(JobKind[Fields, Mechanism]):
    """Base of the kinds that train a model on the rows."""

    example: ClassVar[Mapping[str, JsonValue]] = {"learner": "logistic"}
    takes_points: ClassVar[bool] = True

    def fill_defaults(self, fields: Fields, offered: OfferedDataSet) -> Fields:
        """Return the fields with the first learner on offer if the request names none."""
        first = next(iter(offered.learners))
        return fields if fields.learner else fields.model_copy(update={"learner": first})

    def calibrate(self, context: JobContext[Fields]) -> Mechanism:
        mechanism: Mechanism = calibrate_training(*_options(context))
        return mechanism

    def estimate(self, context: JobContext[Fields]) -> dict[str, Any]:
        return estimate_training(*_options(context))

    def purpose(self, fields: Fields) -> str:
        return f"{self.name}, {fields.learner}"

    def heading(self, fields: Fields) -> str:
        return f"Training {fields.learner}"

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        """Return a link: releases and sessions have their own pages."""
        link = Markup('<p class="actions"><a class="button" href="/{}s/{}">Open the {}</a></p>')
        return link.format(self.name, result.id, self.name)


def recipe_of(context: JobContext[Fields]) -> Recipe:
    return context.offered.recipe(context.fields.learner)


def _options(context: JobContext[Fields]) -> tuple[Any, ...]:
    return context.offered, recipe_of(context), context.guarantee, context.fields.mechanism, context.points


def train(context: JobContext[Fields], mechanism: Mechanism, rows: Any) -> Release:
    """Touch the data: return the model that the mechanism releases."""
    learner = estimator(
        recipe_of(context),
        context.offered.schema,
        context.guarantee,
        expected_records=context.offered.settings.expected_records,
        public_points=context.points,
    )
    work = learner.prepare(rows, None, private=True)
    check_same(work.calibrate(context.guarantee), mechanism)
    release: Release = work.release(mechanism, SecureRandomness())
    return release


class ReleaseFields(TrainingFields):
    """A model to train and give out."""

    mechanism: Literal["model"] = Field(default="model", description="A release is a model.")


class GiveOutRelease(TrainingKind[ReleaseFields]):
    """Train a model that leaves the server as a file."""

    name: ClassVar[str] = "release"
    reads_blocks: ClassVar[bool] = True
    title: ClassVar[str] = "a release"
    about: ClassVar[str] = "A release: a model file with a certificate, to use anywhere."
    fields = ReleaseFields

    def on_cluster(self, context: JobContext[ReleaseFields]) -> bool:
        """Return whether sums over the rows are enough: for a linear model with a smooth loss they are."""
        recipe = recipe_of(context)
        return recipe.kernel == "linear" and recipe.loss != "hinge" and context.points is None

    def run(
        self, context: JobContext[ReleaseFields], mechanism: Mechanism, persons: PersonRows, job_id: str
    ) -> Result:
        release = train(context, mechanism, persons.raw_rows())
        return context.file_result(release)


class SessionFields(TrainingFields):
    """A model to train, and to ask for predictions."""

    mechanism: SessionMechanism = Field(
        default="model",
        description="model: a private model that stays with the holder, with any number of answers. The others answer "
        "from an exact kernel machine, with noise at each point.",
    )


class OpenSession(TrainingKind[SessionFields]):
    """Train a model that stays on the server and answers points."""

    name: ClassVar[str] = SESSION
    title: ClassVar[str] = "a session"
    about: ClassVar[str] = "A session: the model stays on this server and answers any number of points."
    fields = SessionFields
    example: ClassVar[Mapping[str, JsonValue]] = {"learner": "logistic", "mechanism": "model"}

    def run(
        self, context: JobContext[SessionFields], mechanism: Mechanism, persons: PersonRows, job_id: str
    ) -> Result:
        if context.fields.mechanism == "model":
            release = train(context, mechanism, persons.raw_rows())
            return Result(release.certificate.to_dict(), release.to_bytes())
        learner = kernel_learner(recipe_of(context), context.offered.schema, context.guarantee)
        learner.read(persons.raw_rows())
        with _open_or_reopen(SharedStore(context.store, job_id), learner, context, mechanism) as session:
            return Result(session.certificate.to_dict())

    def describe(self, fields: SessionFields) -> str:
        if fields.mechanism == "model":
            return self.about
        if fields.mechanism == "function_release":
            return "A session that answers each new point with noise; any kernel."
        return f"A session that answers by {fields.mechanism}."


def _open_or_reopen(
    state: SharedStore, learner: KernelLearner, context: JobContext[SessionFields], mechanism: Mechanism
) -> InteractivePredictor:
    """Return a new session, or the one that an earlier attempt at this job, or another process, has begun."""
    try:
        if not state.exists():
            own = calibrate(learner.freeze(), context.guarantee, context.fields.mechanism, "tight")
            check_same(own, mechanism)
            return InteractivePredictor.open_reserved(learner, own, state)
    except SessionError:
        if not state.exists():
            raise
    return InteractivePredictor.reopen(state, learner)


GIVE_OUT_RELEASE = register_job_kind(GiveOutRelease())
OPEN_SESSION = register_job_kind(OpenSession())
