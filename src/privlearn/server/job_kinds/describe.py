"""Describe a data set: counts, quantiles, missing shares and correlations, as a file and a page with figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.randomness import SecureRandomness
from privlearn.server.job_kinds.job_kind import JobContext, JobFields, JobKind, check_same, register_job_kind
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.jobs.requests import Result, ResultInfo
from privlearn.statistics.description.description import Description
from privlearn.statistics.description.layout import description_layout
from privlearn.statistics.description.measuring import measure, read_cells
from privlearn.statistics.description.page import page_part
from privlearn.statistics.layout import CountsLayout


class DescribeFields(JobFields):
    """The pairs of columns to count, in addition to each column."""

    correlations: bool = Field(
        default=True, description="Of columns that have an order, for half of the budget."
    )
    # JSON has lists and no tuples, which strict fields would insist on.
    crosses: list[Annotated[tuple[str, str], Field(strict=False)]] = Field(
        default=[], max_length=50, description="Pairs of columns whose cross table is counted and tested."
    )


class Describe(JobKind[DescribeFields, NoisyCounts]):
    """Noisy counts of every column."""

    name: ClassVar[str] = "describe"
    reads_blocks: ClassVar[bool] = True
    title: ClassVar[str] = "a description"
    about: ClassVar[str] = "A description: counts, histograms, quantiles, missing shares and correlations."
    fields = DescribeFields
    example: ClassVar[Mapping[str, JsonValue]] = {"correlations": True}

    def calibrate(self, context: JobContext[DescribeFields]) -> NoisyCounts:
        return _layout(context, context.offered.records).mechanism

    def run(
        self, context: JobContext[DescribeFields], mechanism: NoisyCounts, persons: PersonRows, job_id: str
    ) -> Result:
        schema = context.offered.schema
        cells, weights, number = read_cells(persons.raw_rows(), schema)
        layout = _layout(context, context.total(number))
        check_same(layout.mechanism, mechanism)
        description = measure(layout, schema, cells, weights, SecureRandomness())
        return context.file_result(description)

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        return Markup(page_part(Description.from_bytes(content))) + super().page_part(result, content)


def _layout(context: JobContext[DescribeFields], records: int) -> CountsLayout:
    return description_layout(
        context.offered.schema,
        context.guarantee,
        records,
        correlations=context.fields.correlations,
        crosses=context.fields.crosses,
    )


DESCRIBE = register_job_kind(Describe())
