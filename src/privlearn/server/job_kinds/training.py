"""The two kinds of job that train a model: a release, which leaves the server, and a session, which stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.errors import DataError, SessionError
from privlearn.estimators.kernel_learner import KernelLearner
from privlearn.randomness import SecureRandomness
from privlearn.release.artifact import Release
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import Recipe, SessionMechanism, estimator, kernel_learner
from privlearn.server.job_kinds.job_kind import JobContext, JobFields, JobKind, Mechanism, register_job_kind
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.job_kinds.pricing import calibrate_training, estimate_training
from privlearn.server.jobs.requests import SESSION, Result, ResultInfo
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.opening import calibrate
from privlearn.sessions.shared import SharedStore

BYTES = "application/octet-stream"


class TrainingFields(JobFields):
    """Which model to train, and how it answers."""

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


def check_same(mechanism: Mechanism, charged: Mechanism) -> None:
    """Raise DataError unless the mechanism is the one that was charged.

    They can differ only in the number of records, which is public.
    """
    if mechanism != charged:
        raise DataError(
            "the table's number of records has changed since the server started. Restart the server."
        )


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
        return Result(release.certificate.to_dict(), context.sign(release), BYTES)


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
