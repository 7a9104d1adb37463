"""What the kinds that train a model have in common: their learner, their plan, and the fit that is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.errors import DataError
from privlearn.randomness import SecureRandomness
from privlearn.release.artifact import Release
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.job_kinds.job_kind import Asked, JobFields, JobKind, Plan
from privlearn.service.jobs.estimates import check_request, estimate, planned
from privlearn.service.jobs.recipes import Recipe, SessionMechanism, estimator
from privlearn.service.jobs.requests import JobRequest, ResultInfo


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

    def check(self, asked: Asked[Fields]) -> None:
        check_request(*_told(asked))

    def plan(self, asked: Asked[Fields]) -> Plan:
        plan: Plan = planned(*_told(asked))
        return plan

    def estimate(self, asked: Asked[Fields]) -> dict[str, Any]:
        return estimate(*_told(asked))

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


def trained(asked: Asked[Fields], plan: Plan, rows: pa.Table) -> Release:
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


def _told(asked: Asked[Fields]) -> tuple[Any, ...]:
    return asked.offered, recipe_of(asked), asked.guarantee, asked.fields.mechanism, asked.points
