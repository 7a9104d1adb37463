"""Forecast the widths of intervals from public numbers, before anything is charged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.statistics.layout import CountsLayout
from privlearn.statistics.regression.design import ROOT_MOMENTS, Levels
from privlearn.statistics.regression.layout import (
    TYPICAL_RATE,
    ModelRequest,
    expected_error,
    expected_ratio,
    is_readable,
    read_request,
    regression_layout,
)

_NORMAL = 1.959964
_STEPS = 60
_MAX_EPSILON = 20.0


@dataclass(frozen=True)
class WidthForecast:
    """Expected intervals of a model.

    Typical numbers stand in for those that only the rows have: a rate of 0.2 if none is stated, residuals of deviation
    1, a mean count of 1, and correlations that inflate variances 1.5 times.

    Attributes
    ----------
    request : ModelRequest
    schema : Schema
    guarantee : Guarantee
    records : int
        Number of records, or persons.
    rate : float
        Public, approximate share of a logistic outcome's second class.
    """

    request: ModelRequest
    schema: Schema
    guarantee: Guarantee
    records: int
    rate: float = TYPICAL_RATE

    @property
    def is_readable(self) -> bool:
        """Return whether the coefficients should stand out from the noise; `estimate` refuses at a typical rate."""
        return is_readable(self._layout(self.records, self.guarantee.epsilon), self.rate)

    @property
    def ratio(self) -> float:
        """Return the expected width over the width without privacy."""
        return expected_ratio(self._layout(self.records, self.guarantee.epsilon), self.rate)

    @property
    def half_width(self) -> float:
        """Return the expected half width of a 95 % interval, for one standard deviation of a number.

        It is on the scale of the coefficients: log odds, log rates, or standard deviations of the residual.
        """
        return self._half_width(self.records, self.guarantee.epsilon)

    @property
    def half_widths(self) -> dict[str, float]:
        """Return the expected half width of the 95 % interval of each coefficient but the intercepts.

        Numbers count per standard deviation, and powers of them per power of it. Categories are assumed to be equally
        frequent, so that a comparison of two of k has 2 / k of the records.
        """
        design = self.request.design
        steps = [
            math.sqrt(2.0 * len(variable.values)) if isinstance(variable, Levels) else 1.0
            for variable in (design.variables[index] for index, _ in design.atoms)
        ]
        return {
            name: self.half_width * math.prod(steps[atom] / ROOT_MOMENTS[power] for atom, power in product)
            for name, product in list(zip(design.names, design.products, strict=True))[design.intercepts :]
        }

    def records_for(self, half_width: float) -> int:
        """Return the least number of records at which intervals have this half width."""
        return math.ceil(
            _least(lambda records: self._suffices(half_width, records, self.guarantee.epsilon), 100.0, 1e9)
        )

    def epsilon_for(self, half_width: float) -> float:
        """Return the least epsilon of two digits at which intervals have this half width."""
        return _least_epsilon(lambda epsilon: self._suffices(half_width, self.records, epsilon), 1e-3)

    def _suffices(self, half_width: float, records: float, epsilon: float) -> bool:
        layout = self._layout(round(records), epsilon)
        return is_readable(layout, self.rate) and self._half_width(round(records), epsilon) <= half_width

    def _remedy(self) -> str:
        """Return how many records, or how much epsilon, would let the coefficients stand out."""
        epsilon, records = self.guarantee.epsilon, self.records
        enough = _least(lambda more: is_readable(self._layout(round(more), epsilon), self.rate), records, 1e9)
        remedy = f"use fewer terms, or about {enough:,.0f} {self.schema.count_noun}"
        if is_readable(self._layout(records, _MAX_EPSILON), self.rate):
            larger = _least_epsilon(lambda more: is_readable(self._layout(records, more), self.rate), epsilon)
            remedy += f", or epsilon {larger:g}"
        return remedy

    def _half_width(self, records: int, epsilon: float) -> float:
        layout = self._layout(records, epsilon)
        return _NORMAL * expected_error(layout, self.rate) * expected_ratio(layout, self.rate)

    def _layout(self, records: int, epsilon: float) -> CountsLayout:
        guarantee = Guarantee(epsilon, self.guarantee.delta, self.guarantee.neighbours)
        return regression_layout(self.request, self.schema, guarantee, records)

    def __str__(self) -> str:
        dimension = self.request.design.dimension
        lines = [f"{dimension} coefficients, {self.records:,} {self.schema.count_noun}, {self.guarantee}"]
        if self.request.family.name == "logistic":
            event, noun = self.request.outcome["event"], self.schema.count_noun
            assumed = f"Assumed: {event} in {100 * self.rate:g} % of the {noun}."
            hint = " A rarer outcome needs more of them; state yours with --rate (rate=)."
            lines.append(assumed + (hint if self.rate == TYPICAL_RATE else ""))
        if not self.is_readable:
            return "\n".join([*lines, f"Noise would hide the coefficients: {self._remedy()}."])
        ratio = self.request.family.ratio
        lines.append(
            "Expected 95 % intervals, for numbers per standard deviation, for categories of equal size:"
        )
        for name, half in self.half_widths.items():
            factor = f"  ({ratio} times or divided by {math.exp(half):.3g})" if ratio and half < 10.0 else ""
            lines.append(f"  {name:<24} +-{half:.2g}{factor}")
        if any(sum(power for _, power in product) > 1 for product in self.request.design.products):
            lines.append(
                "A column with powers or interactions counts from its centre here; a coefficient of the table is at 0."
            )
        return "\n".join([*lines, f"They are {self.ratio:.2f} times as wide as without privacy."])


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
    rate: float | None = None,
) -> WidthForecast:
    """Return the expected intervals of a model, from public numbers alone.

    ``rate`` is the approximate share of a logistic outcome's second class, from public knowledge; by default that of
    the schema's target.
    """
    schema = as_schema(schema)
    if rate is not None and not 0.0 < rate < 1.0:
        raise InvalidParameter(f"rate must lie between 0 and 1, not {rate:g}. Write 6 per cent as 0.06.")
    guarantee = Guarantee(epsilon, delta, neighbours)
    request = read_request(formula, schema, family, exposure)
    if rate is not None and request.family.name != "logistic":
        raise InvalidParameter("a rate belongs to an outcome with two classes. Leave it out.")
    return WidthForecast(request, schema, guarantee, records, request.rate if rate is None else rate)


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


def _least_epsilon(suffices: Callable[[float], bool], low: float) -> float:
    """Return the least epsilon that suffices, rounded up to two digits: readers type what they see."""
    least = _least(suffices, low, _MAX_EPSILON)
    digits = 1 - math.floor(math.log10(least))
    return round(math.ceil(round(least * 10.0**digits, 6)) / 10.0**digits, digits)
