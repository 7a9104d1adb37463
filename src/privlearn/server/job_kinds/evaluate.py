"""Evaluate a release that the server stores on the records of a data set: noisy counts, and a page with figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.errors import InvalidParameter
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.randomness import SecureRandomness
from privlearn.release.artifact import Release
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.job_kinds.job_kind import JobContext, JobFields, JobKind, check_same, register_job_kind
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.job_kinds.training import GIVE_OUT_RELEASE
from privlearn.server.jobs import results
from privlearn.server.jobs.requests import Result, ResultInfo
from privlearn.statistics.evaluation.evaluation import Evaluation
from privlearn.statistics.evaluation.layout import evaluation_layout, groups_of
from privlearn.statistics.evaluation.measuring import measure, read_cells
from privlearn.statistics.evaluation.page import page_part
from privlearn.statistics.evaluation.subject import Subject, schema_of, subject_of


class EvaluateFields(JobFields):
    """A release to evaluate."""

    release: str = Field(max_length=64, description="The id of a release that this server made for you.")
    by: list[str] = Field(
        default_factory=list, max_length=8, description="Columns whose groups are evaluated separately."
    )


class Evaluate(JobKind[EvaluateFields, NoisyCounts]):
    """Noisy counts of a release's scores."""

    name: ClassVar[str] = "evaluate"
    reads_blocks: ClassVar[bool] = True
    title: ClassVar[str] = "an evaluation"
    about: ClassVar[str] = "An evaluation: accuracy, curves and groups of a release, with intervals."
    fields = EvaluateFields
    example: ClassVar[Mapping[str, JsonValue]] = {"release": "5f0c21b7a9d3e864", "by": ["sex"]}

    def input_results(self, fields: EvaluateFields) -> Mapping[str, str]:
        return {fields.release: GIVE_OUT_RELEASE.name}

    def calibrate(self, context: JobContext[EvaluateFields]) -> NoisyCounts:
        schema, records = context.offered.schema, context.offered.records
        groups = groups_of(schema, context.fields.by)
        return evaluation_layout(_subject(context), schema, groups, context.guarantee, records).mechanism

    def run(
        self, context: JobContext[EvaluateFields], mechanism: NoisyCounts, persons: PersonRows, job_id: str
    ) -> Result:
        schema = context.offered.schema
        subject, groups = _subject(context), groups_of(schema, context.fields.by)
        cells, weights, number = read_cells(subject, schema, groups, persons.raw_rows())
        layout = evaluation_layout(subject, schema, groups, context.guarantee, context.total(number))
        check_same(layout.mechanism, mechanism)
        evaluation = measure(layout, schema, cells, weights, SecureRandomness())
        return context.file_result(evaluation)

    def purpose(self, fields: EvaluateFields) -> str:
        return f"{self.name}, {fields.release}"

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        return Markup(page_part(Evaluation.from_bytes(content))) + super().page_part(result, content)


def fits(release: Release, offered: OfferedDataSet) -> bool:
    """Public: return whether the release reads the columns and target of a data set."""
    own = schema_of(release, None)
    return (own.columns, own.target) == (offered.schema.columns, offered.schema.target)


def _subject(context: JobContext[EvaluateFields]) -> Subject:
    """Public: return the release to evaluate; the service has already checked that the analyst may see it."""
    release = Release.from_bytes(results.content_of(context.store, context.fields.release))
    if not fits(release, context.offered):
        raise InvalidParameter(
            "the release reads different columns than this data set has. Choose another release or data set."
        )
    assert context.offered.schema.target is not None  # the release has one, and both are equal
    return subject_of(release, None, context.offered.schema.target, None)


EVALUATE = register_job_kind(Evaluate())
