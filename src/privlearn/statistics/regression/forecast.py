"""Forecast the widths of intervals from public numbers, before anything is charged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.statistics.layout import CountsLayout
from privlearn.statistics.regression.layout import (
    ModelRequest,
    expected_error,
    expected_ratio,
    is_readable,
    read_request,
    regression_layout,
)

_NORMAL = 1.959964
_STEPS = 60


@dataclass(frozen=True)
class WidthForecast:
    """Expected intervals of a model.

    Typical numbers stand in for those that only the rows have: a rate of 0.2, residuals of deviation 1, a mean count of
    1, and correlations that inflate variances 1.5 times.

    Attributes
    ----------
    request : ModelRequest
    schema : Schema
    guarantee : Guarantee
    records : int
        Number of records, or persons.
    """

    request: ModelRequest
    schema: Schema
    guarantee: Guarantee
    records: int

    @property
    def is_readable(self) -> bool:
        """Return False where `estimate` refuses, since noise would hide the coefficients."""
        return is_readable(self._layout(self.records, self.guarantee.epsilon))

    @property
    def ratio(self) -> float:
        """Return the expected width over the width without privacy."""
        return expected_ratio(self._layout(self.records, self.guarantee.epsilon))

    @property
    def half_width(self) -> float:
        """Return the expected half width of a 95 % interval, for one standard deviation of a number.

        It is on the scale of the coefficients: log odds, log rates, or standard deviations of the residual.
        """
        return self._half_width(self.records, self.guarantee.epsilon)

    def records_for(self, half_width: float) -> int:
        """Return the least number of records at which intervals have this half width."""
        return math.ceil(
            _least(lambda records: self._suffices(half_width, records, self.guarantee.epsilon), 100.0, 1e9)
        )

    def epsilon_for(self, half_width: float) -> float:
        """Return the least epsilon at which intervals have this half width."""
        return _least(lambda epsilon: self._suffices(half_width, self.records, epsilon), 1e-3, 20.0)

    def _suffices(self, half_width: float, records: float, epsilon: float) -> bool:
        layout = self._layout(round(records), epsilon)
        return is_readable(layout) and self._half_width(round(records), epsilon) <= half_width

    def _half_width(self, records: int, epsilon: float) -> float:
        layout = self._layout(records, epsilon)
        return _NORMAL * expected_error(layout) * expected_ratio(layout)

    def _layout(self, records: int, epsilon: float) -> CountsLayout:
        guarantee = Guarantee(epsilon, self.guarantee.delta, self.guarantee.neighbours)
        return regression_layout(self.request, self.schema, guarantee, records)

    def __str__(self) -> str:
        dimension = self.request.design.dimension
        lines = [f"{dimension} coefficients, {self.records:,} records, {self.guarantee}"]
        if not self.is_readable:
            return "\n".join(
                [*lines, "Noise would hide the coefficients: use fewer terms or a larger epsilon."]
            )
        return "\n".join(
            [
                *lines,
                f"Expected 95 % interval for one standard deviation of a number: +-{self.half_width:.2g}",
                f"That is {self.ratio:.2f} times as wide as without privacy.",
            ]
        )


def forecast_widths(
    formula: str,
    schema: SchemaLike,
    records: int,
    *,
    epsilon: float,
    delta: float,
    family: str | None = None,
    exposure: str | None = None,
    neighbours: str = "replace_one",
) -> WidthForecast:
    """Return the expected intervals of a model, from public numbers alone."""
    schema = as_schema(schema)
    guarantee = Guarantee(epsilon, delta, neighbours)
    return WidthForecast(read_request(formula, schema, family, exposure), schema, guarantee, records)


def _least(suffices: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number between two that suffices, by bisection on a logarithmic scale."""
    if not suffices(high):
        raise InvalidParameter(
            f"even {high:,.0f} would not be enough. Ask for a wider interval, or use fewer terms."
        )
    if suffices(low):
        return low
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
