"""Open a session: the model stays with the holder and answers points (`service.jobs.answering`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pyarrow as pa
from pydantic import Field, JsonValue

from privlearn.errors import SessionError
from privlearn.estimators.kernel_learner import KernelLearner
from privlearn.service.job_kinds.job_kind import Asked, Plan, register_job_kind
from privlearn.service.job_kinds.training import (
    TrainingFields,
    TrainingKind,
    check_same,
    recipe_of,
    trained,
)
from privlearn.service.jobs.recipes import SessionMechanism, kernel_learner
from privlearn.service.jobs.requests import Result
from privlearn.service.jobs.results import SESSION
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.opening import calibrated
from privlearn.sessions.shared import SharedStore

_BY_KERNEL_MACHINE = {"function_release": "A session that answers each new point with noise; any kernel."}


class SessionFields(TrainingFields):
    """A model to be trained, and asked for predictions."""

    mechanism: SessionMechanism = Field(
        default="model",
        description="model: a private model that stays with the holder, with any number of answers. The others answer "
        "from an exact kernel machine, with noise at each point.",
    )


class OpenSession(TrainingKind[SessionFields]):
    """The model stays, and with it what a session of a kernel machine draws for each point."""

    name: ClassVar[str] = SESSION
    title: ClassVar[str] = "a session"
    about: ClassVar[str] = "A session: the model stays on this server and answers any number of points."
    fields = SessionFields
    example: ClassVar[Mapping[str, JsonValue]] = {"learner": "logistic", "mechanism": "model"}

    def run(self, asked: Asked[SessionFields], plan: Plan, rows: pa.Table, job_id: str) -> Result:
        if asked.fields.mechanism == "model":
            release = trained(asked, plan, rows)
            return Result(release.certificate.to_dict(), release.to_bytes())
        learner = kernel_learner(recipe_of(asked), asked.offered.schema, asked.guarantee).read(rows)
        with _first_or_same(SharedStore(asked.store, job_id), learner, asked, plan) as session:
            return Result(session.certificate.to_dict())

    def describe(self, fields: SessionFields) -> str:
        if fields.mechanism == "model":
            return self.about
        return _BY_KERNEL_MACHINE.get(fields.mechanism, f"A session that answers by {fields.mechanism}.")


def _first_or_same(
    state: SharedStore, learner: KernelLearner, asked: Asked[SessionFields], plan: Plan
) -> InteractivePredictor:
    """A new session; or the one that an earlier attempt has begun, or another process that runs this job."""
    try:
        if not state.exists():
            mechanism = calibrated(learner, asked.guarantee, asked.fields.mechanism, "tight")
            check_same(mechanism, plan)
            return InteractivePredictor.paid(learner, mechanism, state)
    except SessionError:
        if not state.exists():
            raise
    return InteractivePredictor.reopen(state, learner)


OPEN_SESSION = register_job_kind(OpenSession())
