"""Estimate a regression model: coefficients with intervals and p-values, as a file and a table with a forest plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.randomness import SecureRandomness
from privlearn.server.job_kinds.job_kind import JobContext, JobFields, JobKind, check_same, register_job_kind
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.jobs.requests import Result, ResultInfo
from privlearn.statistics.layout import CountsLayout
from privlearn.statistics.regression.estimates import Estimates
from privlearn.statistics.regression.layout import (
    ModelRequest,
    check_strength,
    expected_ratio,
    read_request,
    regression_layout,
)
from privlearn.statistics.regression.measuring import measure
from privlearn.statistics.regression.page import page_part
from privlearn.statistics.regression.rows import read_cells


class RegressionFields(JobFields):
    """The model to estimate."""

    formula: str = Field(
        description="Outcome and terms, such as readmitted ~ age + sex + age:smoker.", max_length=2000
    )
    family: str | None = Field(
        default=None,
        description="logistic, ordinal, linear or poisson; by default logistic for two classes, ordinal for ordered "
        "values, linear for a number.",
    )
    exposure: str | None = Field(
        default=None, description="For counts: the column of the time or population at risk."
    )


class Regression(JobKind[RegressionFields, NoisyCounts]):
    """A table of coefficients."""

    name: ClassVar[str] = "regression"
    reads_blocks: ClassVar[bool] = True
    title: ClassVar[str] = "a regression table"
    about: ClassVar[str] = "A regression table: coefficients or odds ratios with intervals and p-values."
    fields = RegressionFields
    example: ClassVar[Mapping[str, JsonValue]] = {"formula": "outcome ~ age"}

    def calibrate(self, context: JobContext[RegressionFields]) -> NoisyCounts:
        return _layout(context, _request(context), context.offered.records).mechanism

    def estimate(self, context: JobContext[RegressionFields]) -> dict[str, Any]:
        layout = _layout(context, _request(context), context.offered.records)
        return super().estimate(context) | {"expected_width": expected_ratio(layout)}

    def run(
        self, context: JobContext[RegressionFields], mechanism: NoisyCounts, persons: PersonRows, job_id: str
    ) -> Result:
        schema, request = context.offered.schema, _request(context)
        rows = read_cells(persons.raw_rows(), schema, request)
        layout = _layout(context, request, context.total(rows.total))
        check_same(layout.mechanism, mechanism)
        estimates = measure(layout, schema, rows, SecureRandomness())
        return context.file_result(estimates)

    def describe(self, fields: RegressionFields) -> str:
        return f"A regression table: {fields.formula}."

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        return Markup(page_part(Estimates.from_bytes(content))) + super().page_part(result, content)


def _request(context: JobContext[RegressionFields]) -> ModelRequest:
    fields = context.fields
    return read_request(fields.formula, context.offered.schema, fields.family, fields.exposure)


def _layout(context: JobContext[RegressionFields], request: ModelRequest, records: int) -> CountsLayout:
    layout = regression_layout(request, context.offered.schema, context.guarantee, records)
    check_strength(layout, context.offered.schema.count_noun, request.rate)
    return layout


REGRESSION = register_job_kind(Regression())
