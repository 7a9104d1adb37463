"""`Forecast`: what fits and sessions share, the share of the gain that privacy costs, a verdict, a table and advice."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import brentq

from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.forecast.expected_gain import (
    NUMBER_SIZES,
    SIZES,
    Gain,
    Quality,
    expected_gain,
    expected_scores,
)
from privlearn.estimators.forecast.spectrum import Spectrum, typical_margin
from privlearn.estimators.forecast.stand_ins import check_count
from privlearn.estimators.reference import ReferenceProblem, reference_problem
from privlearn.estimators.training_rows import NumberTargets, TrainingRows
from privlearn.guarantee import Guarantee, weakness
from privlearn.solvers.losses import LossProperties

Verdict = Literal["clear", "noisy", "drowned"]

MAX_LOST = {"clear": 0.12, "noisy": 0.65}
"""Share of the gain that may be lost: a model is clear if signals of all sizes lose no more than the first, and drowned
if all lose more than the second. The verdicts claim a quarter and a half: the distance is the safety that fits on real
tables needed (docs/theory/planning.md)."""

USUAL_RATE = 0.25
"""Assumed share of the rarer of two classes, if it is not stated."""


MAX_ROWS = 10**12
MIN_EPSILON, MAX_EPSILON = 1e-4, 100.0
_STRIDE, _PRECISION = 4.0, 1.005  # of the search for the smallest number of records and the smallest epsilon


@dataclass(frozen=True, eq=False)
class Forecast(ABC):
    """Forecast for a number of records and a guarantee.

    Parameters
    ----------
    rows : int
    guarantee : Guarantee
    unit : float
        Units of the target per unit of the scaled target.
    loss : LossProperties
    persons : bool, default=False
        Whether ``rows`` counts persons, who may have several rows each, rather than records.
    rate : float, optional
        Share of the rarer of two classes, if known.
    """

    rows: int
    guarantee: Guarantee
    unit: float = dataclasses.field(repr=False)
    loss: LossProperties = dataclasses.field(repr=False)
    persons: bool = dataclasses.field(default=False, repr=False, kw_only=True)
    rate: float | None = dataclasses.field(default=None, repr=False, kw_only=True)

    @property
    def problem(self) -> ReferenceProblem:
        """Return the typical labels for this loss."""
        return self._problem(1.0)

    def _problem(self, size: float) -> ReferenceProblem:
        rate = USUAL_RATE if self.rate is None else self.rate
        return reference_problem(self.loss, size, 0.5 if self._is_number else min(rate, 1.0 - rate))

    @property
    def _is_number(self) -> bool:
        return self.loss.argument == "residual"

    @property
    def count_noun(self) -> str:
        """Return what ``rows`` counts."""
        return "persons" if self.persons else "records"

    @property
    @abstractmethod
    def mechanism(self) -> Any:
        """Return the calibrated mechanism that would run."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """Return the deviation of the noise in the prediction for a typical row."""

    @property
    @abstractmethod
    def worst_case(self) -> float:
        """Return a proven bound on the deviation of the noise in any prediction."""

    @property
    @abstractmethod
    def training_spectrum(self) -> Spectrum:
        """Return the spectrum of a typical table's rows as the learner sees them."""

    @cached_property
    def margin(self) -> float:
        """Return the standard deviation of the predictions without noise."""
        return self.unit * typical_margin(self.regularization, self.training_spectrum, self.problem)

    @property
    @abstractmethod
    def features(self) -> int:
        """Return the number of features of an encoded row."""

    @property
    def problems(self) -> int:
        """Return the number of functions that are learnt."""
        return int(self.mechanism.task.problems)

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """Return the scale of the mechanism's noise distribution."""

    @property
    @abstractmethod
    def regularization(self) -> float:
        """Return Lambda."""

    @property
    def ratio(self) -> float:
        return self.noise / self.margin if self.margin else math.inf

    @abstractmethod
    def noise_for(self, problem: ReferenceProblem) -> float:
        """Return the noise in the prediction for a typical row of such a problem, for scaled targets."""

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        """Return what to expect of a strong, a typical and a weak signal."""
        return tuple(self._gain(size) for size in (NUMBER_SIZES if self._is_number else SIZES))

    def _gain(self, size: float) -> Gain:
        problem, rate = self._problem(size), USUAL_RATE if self.rate is None else self.rate
        spectrum = self.training_spectrum
        private = expected_scores(self.rows, self.noise_for(problem), self.regularization, spectrum, problem)
        best_strength = problem.derivative_square / (problem.curvature * problem.margin**2)
        plain = expected_scores(self.rows, 0.0, best_strength / self.rows, spectrum, problem)
        return expected_gain(private, plain, problem, Quality(self._is_number, size, rate))

    @property
    def lost(self) -> float:
        """Return the share of a typical model's gain that privacy costs."""
        return self.gains[1].lost

    @property
    def quality_name(self) -> str:
        """Return the name of the measure of quality."""
        return "R2" if self._is_number else "AUC"

    @property
    def verdict(self) -> Verdict:
        if self.exceeds("clear") <= 1.0:
            return "clear"
        return "noisy" if self.exceeds("noisy") <= 1.0 else "drowned"

    def exceeds(self, verdict: str) -> float:
        """Return what is lost as a multiple of what a verdict, or a better one, allows."""
        _check_verdict(verdict)
        lost = [gain.lost for gain in self.gains]
        return (max(lost) if verdict == "clear" else min(lost)) / MAX_LOST[verdict]

    @property
    def weakness(self) -> str | None:
        """Return why the guarantee would be hardly private, or ``None``."""
        return weakness(self.mechanism.guarantee, self.rows)

    def at(
        self, *, rows: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> Self:
        """Return the forecast for another number of records, another epsilon or another delta."""
        present = self.guarantee
        guarantee = Guarantee(
            present.epsilon if epsilon is None else epsilon,
            present.delta if delta is None else delta,
            present.neighbours,
        )
        return dataclasses.replace(
            self,
            rows=self.rows if rows is None else check_count("rows", rows, MAX_ROWS),
            guarantee=guarantee,
        )

    def levers(self) -> list[tuple[str, Self | None]]:
        """Return changes that may help, each with its forecast; ``None`` where it is refused."""
        epsilon, rows = 2.0 * self.guarantee.epsilon, 4 * self.rows
        changes: list[tuple[str, dict[str, Any]]] = [
            (f"epsilon {epsilon:g}", {"epsilon": epsilon}),
            (f"{rows:,} {self.count_noun}", {"rows": rows}),
        ]
        if self.guarantee.delta == 0:
            changes.append((f"delta {_USUAL_DELTA:g}", {"delta": _USUAL_DELTA}))
        return [(name, self._try(**change)) for name, change in changes]

    def _try(self, **changes: Any) -> Self | None:
        try:
            changed = self.at(**changes)
            changed.gains  # noqa: B018 - refuses now what no theorem covers
        except InvalidParameter:
            return None
        return changed

    def smallest_rows(self, verdict: str = "clear") -> int | None:
        """Return the smallest number of records with this verdict or a better one; ``None`` above 10^12."""
        _check_verdict(verdict)
        rows = _smallest(lambda rows: _exceeds(self.at(rows=math.ceil(rows)), verdict), 1.0, float(MAX_ROWS))
        return None if rows is None else math.ceil(rows)

    def smallest_epsilon(self, verdict: str = "clear") -> float | None:
        """Return the smallest epsilon with this verdict or a better one; ``None`` above 100."""
        _check_verdict(verdict)
        return _smallest(
            lambda epsilon: _exceeds(self.at(epsilon=epsilon), verdict), MIN_EPSILON, MAX_EPSILON
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain JSON values."""
        mechanism = self.mechanism
        return {
            "rows": self.rows,
            "features": self.features,
            "problems": self.problems,
            "guarantee": self.guarantee.to_dict(),
            "mechanism": mechanism.name,
            "noise_kind": mechanism.noise,
            "noise_scale": self.noise_scale,
            "regularization": self.regularization,
            "noise": self.noise,
            "worst_case": self.worst_case,
            "margin": self.margin,
            "ratio": self.ratio,
            "lost": self.lost,
            "lost_range": [self.gains[0].lost, self.gains[-1].lost],
            "quality": {
                "measure": self.quality_name,
                "expected": self.gains[1].quality,
                "range": sorted((self.gains[0].quality, self.gains[-1].quality)),
                "without_privacy": self.gains[1].plain_quality,
            },
            "verdict": self.verdict,
            "weakness": self.weakness,
            "smallest_rows": {verdict: self.smallest_rows(verdict) for verdict in MAX_LOST},
            "smallest_epsilon": {verdict: self.smallest_epsilon(verdict) for verdict in MAX_LOST},
        }

    def __str__(self) -> str:
        return "\n".join([table(self), "", *advice(self)])


def unit_of(rows: TrainingRows) -> float:
    """Return half the distance of the target's bounds, the largest of several numbers'; 1 for classes."""
    if not isinstance(rows.targets, NumberTargets):
        return 1.0
    return float(np.diff(rows.targets.target_bounds).max()) / 2.0


def _check_verdict(verdict: str) -> None:
    if verdict not in MAX_LOST:
        raise InvalidParameter(f"verdict must be one of {', '.join(MAX_LOST)}, not {preview(verdict)}")


_REFUSED = 1e300


def _exceeds(forecast: Forecast, verdict: str) -> float:
    """Return `Forecast.exceeds`; a huge value if it is refused, e.g. because rounding errors grow with the records."""
    try:
        return max(forecast.exceeds(verdict), 1e-12)
    except InvalidParameter:
        return _REFUSED


def _smallest(excess_at: Callable[[float], float], low: float, high: float) -> float | None:
    """Return the smallest argument with an excess of at most 1, to half a per cent; ``None`` if above ``high``.

    The search starts from below: more records can be worse again where the solver's tolerance costs more noise.
    """
    below = above = low
    while excess_at(above) > 1.0:
        if above == high:
            return None
        below, above = above, min(_STRIDE * above, high)
    if above == low:
        return low
    root = math.exp(
        brentq(
            lambda log: math.log(excess_at(math.exp(log))),
            math.log(below),
            math.log(above),
            xtol=math.log(_PRECISION) / 2.0,
        )
    )
    while excess_at(root) > 1.0:
        root *= _PRECISION
    return root


MEANING = {
    "clear": "CLEAR: privacy costs less than a quarter of what a model gains over a constant prediction, even if the "
    "signal is weak.",
    "noisy": "NOISY: privacy costs a visible part of what a model gains over a constant prediction.",
    "drowned": "DROWNED: privacy costs more than half of what a model gains over a constant prediction, even if the "
    "signal is strong. Do not spend budget on this.",
}
_BETTER = {"drowned": ("noisy", "clear"), "noisy": ("clear",), "clear": ("clear",)}
_DESCRIPTION = {"noisy": "not drowned", "clear": "clear"}
_USUAL_DELTA = 1e-6


def _lines(forecast: Forecast) -> list[tuple[str, str, str]]:
    """Return a quantity, its value and its meaning per line."""
    mechanism = forecast.mechanism
    problems = f", {forecast.problems} problems" if forecast.problems > 1 else ""
    return [
        (forecast.count_noun, f"{forecast.rows:,}", f"{forecast.features:,} features{problems}"),
        ("epsilon", f"{forecast.guarantee.epsilon:g}", str(forecast.guarantee)),
        ("mechanism", mechanism.name, f"{mechanism.noise} noise of scale {forecast.noise_scale:.3g}"),
        ("regularization", f"{forecast.regularization:.3g}", "Lambda, as fit will take it"),
        ("noise in a prediction", f"{forecast.noise:.3g}", "standard deviation, estimated for a typical row"),
        ("  at worst", f"{forecast.worst_case:.3g}", "proven for every row and all data"),
        ("typical margin", f"{forecast.margin:.3g}", "of predictions without noise, estimated"),
        _lost_line(forecast),
        _quality_line(forecast),
    ]


def _lost_line(forecast: Forecast) -> tuple[str, str, str]:
    strong, typical, weak = (_percent(gain.lost) for gain in forecast.gains)
    return "gain lost", typical, f"{strong} if the signal is strong, {weak} if it is weak"


def _quality_line(forecast: Forecast) -> tuple[str, str, str]:
    strong, typical, weak = forecast.gains
    rate = "" if forecast.quality_name == "R2" else f"; {_describe_rate(forecast)}"
    return (
        f"expected {forecast.quality_name}",
        f"{typical.quality:.2f}",
        f"from {weak.quality:.2f} (weak) to {strong.quality:.2f} (strong); "
        f"without privacy {typical.plain_quality:.2f}{rate}",
    )


def _describe_rate(forecast: Forecast) -> str:
    if forecast.rate is not None:
        return f"{forecast.rate:.3g} of the labels are of one class"
    return f"assumes that {USUAL_RATE:g} of the labels are of one class: state --rate"


def _percent(share: float) -> str:
    return f"{min(share, 9.99):.0%}" if share <= 1.0 else "over 100%"


def table(forecast: Forecast) -> str:
    """Return the forecast as an aligned table."""
    rows = _lines(forecast)
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(
        f"{what:<{widths[0]}}  {amount:>{widths[1]}}  {meaning}" for what, amount, meaning in rows
    )


def advice(forecast: Forecast) -> list[str]:
    """Return sentences: a warning if the guarantee is weak, the verdict, and what would change it."""
    weak = [f"WEAK: this guarantee is {forecast.weakness}."] if forecast.weakness else []
    return [
        *weak,
        MEANING[forecast.verdict],
        *(_requirements(forecast, verdict) for verdict in _BETTER[forecast.verdict]),
        *_levers(forecast),
    ]


def _requirements(forecast: Forecast, verdict: str) -> str:
    rows, epsilon = forecast.smallest_rows(verdict), forecast.smallest_epsilon(verdict)
    at_epsilon = f"epsilon {forecast.guarantee.epsilon:g}"
    with_rows = (
        f"no number of {forecast.count_noun} is enough"
        if rows is None
        else f"{_round_up(rows):,.0f} {forecast.count_noun}"
    )
    if epsilon is None:
        with_epsilon = "no epsilon up to 100 is enough"
    else:
        weak = ", hardly private," if forecast.at(epsilon=_round_up(epsilon)).weakness else ""
        with_epsilon = f"epsilon {_round_up(epsilon):g}{weak}"
    return (
        f"Smallest that is {_DESCRIPTION[verdict]}: {with_rows} at {at_epsilon}; "
        f"{with_epsilon} with {forecast.rows:,} {forecast.count_noun}."
    )


def _levers(forecast: Forecast) -> list[str]:
    """Return what each change would bring, if the forecast is not clear."""
    if forecast.verdict == "clear":
        return []
    brought = [f"{name}: {_percent(other.lost)}" for name, other in forecast.levers() if other is not None]
    return [f"Gain lost with {'; with '.join(brought)}."]


def _round_up(number: float) -> float:
    """Return the number rounded up to two digits; the estimates are not more precise."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step * (1.0 - 1e-12)) * step
