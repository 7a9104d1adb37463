"""Evaluate a release that the server holds on the records of a data set: noisy counts, and a page with figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.errors import InvalidParameter
from privlearn.evaluation.evaluation import Evaluation
from privlearn.evaluation.measuring import read_cells, run_plan
from privlearn.evaluation.page import page_part
from privlearn.evaluation.plan import groups_of, plan_evaluation
from privlearn.evaluation.subject import Subject, schema_of, subject_of
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.randomness import SecureRandomness
from privlearn.release.artifact import Release
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.job_kinds.job_kind import Asked, JobFields, JobKind, register_job_kind
from privlearn.service.job_kinds.release import BYTES, GIVE_OUT_RELEASE
from privlearn.service.job_kinds.training import check_same
from privlearn.service.jobs import results
from privlearn.service.jobs.requests import Result, ResultInfo


class EvaluateFields(JobFields):
    """A release to be measured."""

    release: str = Field(max_length=64, description="The id of a release that this server made for you.")
    by: list[str] = Field(
        default_factory=list, max_length=8, description="Columns whose groups are told apart, if any."
    )


class Evaluate(JobKind[EvaluateFields, NoisyCounts]):
    """How good a release is, by noisy counts of its scores."""

    name: ClassVar[str] = "evaluate"
    reads_blocks: ClassVar[bool] = True
    title: ClassVar[str] = "an evaluation"
    about: ClassVar[str] = "An evaluation: accuracy, curves and groups of a release, with intervals."
    fields = EvaluateFields
    example: ClassVar[Mapping[str, JsonValue]] = {"release": "5f0c21b7a9d3e864", "by": ["sex"]}

    def reads(self, fields: EvaluateFields) -> Mapping[str, str]:
        return {fields.release: GIVE_OUT_RELEASE.name}

    def plan(self, asked: Asked[EvaluateFields]) -> NoisyCounts:
        schema = asked.offered.schema
        groups = groups_of(schema, asked.fields.by)
        return plan_evaluation(
            _subject(asked), schema, groups, asked.guarantee, asked.offered.records
        ).mechanism

    def run(self, asked: Asked[EvaluateFields], plan: NoisyCounts, rows: Any, job_id: str) -> Result:
        offered, schema = asked.offered, asked.offered.schema
        subject, groups = _subject(asked), groups_of(schema, asked.fields.by)
        counted, weights, persons = read_cells(subject, schema, groups, rows)
        records = asked.guarantee.relation.total(persons, offered.settings.expected_records)
        planned = plan_evaluation(subject, schema, groups, asked.guarantee, records)
        check_same(planned.mechanism, plan)
        found = run_plan(planned, schema, counted, weights, SecureRandomness())
        return Result(found.certificate.to_dict(), asked.signed(found), BYTES)

    def purpose(self, fields: EvaluateFields) -> str:
        return f"{self.name}, {fields.release}"

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        return Markup(page_part(Evaluation.from_bytes(content))) + super().page_part(result, content)


def fits(release: Release, offered: OfferedDataSet) -> bool:
    """Public: whether the records of a data set are such as the release reads."""
    own = schema_of(release, None)
    return (own.columns, own.target) == (offered.schema.columns, offered.schema.target)


def _subject(asked: Asked[EvaluateFields]) -> Subject:
    """Public: the release, which must read such records; that its analyst may see it was asked before."""
    release = Release.from_bytes(results.content_of(asked.store, asked.fields.release))
    if not fits(release, asked.offered):
        raise InvalidParameter(
            "the release reads other columns than this data set has: take another of the two"
        )
    assert asked.offered.schema.target is not None  # the release's, which has one
    return subject_of(release, None, asked.offered.schema.target, None)


EVALUATE = register_job_kind(Evaluate())
