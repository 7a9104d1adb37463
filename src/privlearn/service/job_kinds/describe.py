"""Describe a data set: counts, quantiles, missing shares and correlations, as a file and a page with figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.description.description import Description
from privlearn.description.measuring import read_cells, run_plan
from privlearn.description.page import page_part
from privlearn.description.plan import plan_description
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.randomness import SecureRandomness
from privlearn.service.job_kinds.job_kind import Asked, JobFields, JobKind, register_job_kind
from privlearn.service.job_kinds.release import BYTES
from privlearn.service.job_kinds.training import check_same
from privlearn.service.jobs.requests import Result, ResultInfo


class DescribeFields(JobFields):
    """What to count."""

    correlations: bool = Field(
        default=True, description="Of columns that have an order, for half of the budget."
    )


class Describe(JobKind[DescribeFields, NoisyCounts]):
    """What one looks at first, by noisy counts."""

    name: ClassVar[str] = "describe"
    reads_blocks: ClassVar[bool] = True
    title: ClassVar[str] = "a description"
    about: ClassVar[str] = "A description: counts, histograms, quantiles, missing shares and correlations."
    fields = DescribeFields
    example: ClassVar[Mapping[str, JsonValue]] = {"correlations": True}

    def plan(self, asked: Asked[DescribeFields]) -> NoisyCounts:
        offered, correlated = asked.offered, asked.fields.correlations
        return plan_description(
            offered.schema, asked.guarantee, offered.records, correlations=correlated
        ).mechanism

    def run(self, asked: Asked[DescribeFields], plan: NoisyCounts, rows: Any, job_id: str) -> Result:
        schema, correlated = asked.offered.schema, asked.fields.correlations
        cells, weights, persons = read_cells(rows, schema)
        records = asked.guarantee.relation.total(persons, asked.offered.settings.expected_records)
        planned = plan_description(schema, asked.guarantee, records, correlations=correlated)
        check_same(planned.mechanism, plan)
        found = run_plan(planned, schema, cells, weights, SecureRandomness())
        return Result(found.certificate.to_dict(), asked.signed(found), BYTES)

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        return Markup(page_part(Description.from_bytes(content))) + super().page_part(result, content)


DESCRIBE = register_job_kind(Describe())
