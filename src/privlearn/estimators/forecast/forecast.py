"""`Forecast`: what fits and sessions share, the share of the gain that privacy costs, a verdict, a table and advice."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, TypeVar

import numpy as np

from privlearn.accounting.functions import root
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.forecast.expected_gain import Gain, Setting
from privlearn.estimators.forecast.reference import ReferenceProblem, Spectrum, typical_margin
from privlearn.estimators.forecast.stand_ins import check_count
from privlearn.estimators.training_rows import NumberTargets, TrainingRows
from privlearn.guarantee import Guarantee, weakness

Verdict = Literal["clear", "noisy", "drowned"]

MAX_LOST = {"clear": 0.25, "noisy": 0.7}
"""Share of the gain that may be lost: a model is clear if signals of all sizes lose no more than the first, and drowned
if all lose more than the second, or if a typical one loses all. DROWNED claims a half; the distance is a margin of
safety that fits on real tables needed (docs/theory/planning.md)."""

USUAL_RATE = 0.25
"""Assumed share of the rarer of two classes, if the schema does not state it."""


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
    spectrum : Spectrum
        Spectrum of a typical table's encoded rows.
    settings : tuple of Setting
        Nearly perfect, strong, typical and weak signals for this loss.
    rate : float, optional
        Share of one of two classes, as far as it is public.
    persons : bool, default=False
        Whether ``rows`` counts persons, who may have several rows each, rather than records.
    """

    rows: int
    guarantee: Guarantee
    unit: float = dataclasses.field(repr=False)
    spectrum: Spectrum = dataclasses.field(repr=False)
    settings: tuple[Setting, ...] = dataclasses.field(repr=False)
    rate: float | None = dataclasses.field(repr=False)
    persons: bool = dataclasses.field(default=False, repr=False, kw_only=True)

    @property
    def in_spreads(self) -> bool:
        """Return whether noise and margins are in spreads of the target, which `fit` estimates privately."""
        return False

    @property
    def signals(self) -> tuple[Setting, ...]:
        """Return the reference problems that the mechanism meets."""
        return self.settings

    @property
    def target_unit(self) -> float:
        """Return the factor from the model's scores to those of noise and margins."""
        return self.unit

    @property
    def problem(self) -> ReferenceProblem:
        """Return the typical labels for this loss."""
        return self.signals[2].problem

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
    def training_spectrum(self) -> Spectrum:
        """Return the spectrum of the rows as the learner sees them."""
        return self.spectrum

    @cached_property
    def margin(self) -> float:
        """Return the standard deviation of the predictions without noise."""
        return self.target_unit * typical_margin(self.regularization, self.training_spectrum, self.problem)

    @property
    @abstractmethod
    def features(self) -> int:
        """Return the number of features of an encoded row."""

    @property
    def problems(self) -> int:
        """Return the number of functions that are learnt."""
        return int(self.mechanism.task.problems)

    @property
    def fine_knots(self) -> int | None:
        """Return the knots of each number, if fewer records or a smaller epsilon would mean fewer of them."""
        return None

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

    @property
    def score_noise(self) -> float:
        """Return the noise that `gains` compares with the signal, for targets scaled to [-1, 1]."""
        return self.noise / self.target_unit

    @property
    def _information(self) -> float:
        """Return the number of records without weights that have at least as much information."""
        return self.rows / max(float(self.mechanism.task.row_weight_bound), 1.0)

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        """Return what to expect of a strong, a typical and a weak signal."""
        spectrum = self.training_spectrum
        return tuple(
            setting.gain(self._information, self.score_noise, self.regularization, spectrum)
            for setting in self.signals[1:]
        )

    @property
    def lost(self) -> float:
        """Return the share of a typical model's gain over a constant that privacy costs."""
        return self.gains[1].lost

    @property
    def measure(self) -> str:
        """Return the name of the measure of quality."""
        return "R2" if self.settings[0].is_number else "AUC"

    @cached_property
    def quality_range(self) -> tuple[float, float]:
        """Return the range of the AUC or R^2 of a fit: it held at least 19 of 20 of them (docs/theory/planning.md).

        They cover signals from weak to nearly perfect, along main and minor directions of the rows, and the noise of
        one fit. They are rounded outwards. An R^2 below 0, of a model that is worse than a constant, is shown as 0.
        """
        known = self._information, self.score_noise, self.regularization, self.training_spectrum
        found = [100.0 * end for setting in self.signals for end in setting.extremes(*known)]
        return max(math.floor(min(found)) / 100.0, 0.0), max(math.ceil(max(found)) / 100.0, 0.0)

    @property
    def verdict(self) -> Verdict:
        if self.exceeds("clear") <= 1.0:
            return "clear"
        return "noisy" if self.exceeds("noisy") <= 1.0 else "drowned"

    def exceeds(self, verdict: str) -> float:
        """Return what is lost as a multiple of what a verdict, or a better one, allows."""
        _check_verdict(verdict)
        lost = [gain.lost for gain in self.gains]
        if verdict == "clear":
            return max(lost) / MAX_LOST["clear"]
        return max(min(lost) / MAX_LOST["noisy"], self.lost)

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

    def levers(self) -> list[tuple[str, Self]]:
        """Return changes that may help, each with its forecast; those that no theorem covers are left out."""
        present = self.guarantee
        changes: list[tuple[str, dict[str, Any]]] = [
            (f"epsilon {2.0 * present.epsilon:g}", {"epsilon": 2.0 * present.epsilon}),
            (f"{4 * self.rows:,} {self.count_noun}", {"rows": 4 * self.rows}),
        ]
        found = [(name, self.at(**change)) for name, change in changes]
        return [(name, other) for name, other in found if usable(other) is not None] + self.delta_lever()

    def delta_lever(self) -> list[tuple[str, Self]]:
        """Return what a delta would bring where there is none: Gaussian noise does not grow with the features."""
        delta = min(MAX_USUAL_DELTA, 10.0 ** math.floor(-1.1 * math.log10(self.rows)))
        other = usable(self.at(delta=delta)) if self.guarantee.delta == 0.0 else None
        return [] if other is None else [(f"delta {delta:g}", other)]

    def smallest_rows(self, verdict: str = "clear") -> int | None:
        """Return the smallest number of records with this verdict or a better one; ``None`` above 10^12."""
        _check_verdict(verdict)
        rows = _smallest(lambda rows: _excess(self.at(rows=math.ceil(rows)), verdict), 1.0, float(MAX_ROWS))
        return None if rows is None else math.ceil(rows)

    def smallest_epsilon(self, verdict: str = "clear") -> float | None:
        """Return the smallest epsilon with this verdict or a better one; ``None`` above 100."""
        return _smallest(lambda epsilon: _excess(self.at(epsilon=epsilon), verdict), MIN_EPSILON, MAX_EPSILON)

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
                "measure": self.measure,
                "expected": self.gains[1].quality,
                "range": list(self.quality_range),
                "without_privacy": self.gains[1].plain_quality,
            },
            "verdict": self.verdict,
            "levers": levers_of(self),
            "weakness": self.weakness,
            "smallest_rows": {verdict: self.smallest_rows(verdict) for verdict in MAX_LOST},
            "smallest_epsilon": {verdict: self.smallest_epsilon(verdict) for verdict in MAX_LOST},
        }

    def __str__(self) -> str:
        return "\n".join([table(self), "", *advice(self)])


def _check_verdict(verdict: str) -> None:
    if verdict not in MAX_LOST:
        raise InvalidParameter(f"verdict must be one of {', '.join(MAX_LOST)}, not {preview(verdict)}")


def unit_of(rows: TrainingRows, *, is_scaled: bool = True) -> float:
    """Return half the distance of a number's bounds, or the unit of its public spread if ``is_scaled``.

    Of several numbers it is the largest one, and 1 for classes.
    """
    if not isinstance(rows.targets, NumberTargets):
        return 1.0
    halves = np.diff(rows.targets.target_bounds).ravel() / 2.0
    score_map = rows.targets.score_map
    return float(np.max(halves * score_map.stretches if is_scaled and score_map is not None else halves))


AnyForecast = TypeVar("AnyForecast", bound=Forecast)


def usable(forecast: AnyForecast) -> AnyForecast | None:
    """Return the forecast; ``None`` where no theorem covers it."""
    try:
        forecast.gains  # noqa: B018 - calibrates the mechanism
    except InvalidParameter:
        return None
    return forecast


_REFUSED = 1e300


def _excess(forecast: Forecast, verdict: str) -> float:
    """Return `Forecast.exceeds`; a huge number if it is refused, e.g. because rounding errors grow with the records."""
    try:
        return min(max(forecast.exceeds(verdict), 1.0 / _REFUSED), _REFUSED)
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
    log_smallest = root(
        lambda log: math.log(excess_at(math.exp(log))),
        math.log(below),
        math.log(above),
        xtol=math.log(_PRECISION) / 2.0,
    )
    smallest = math.exp(log_smallest)
    while excess_at(smallest) > 1.0:
        smallest *= _PRECISION
    return smallest


MEANING = {
    "clear": "CLEAR: privacy costs less than a quarter of what a model gains over a constant prediction, even if the "
    "signal is weak.",
    "noisy": "NOISY: privacy costs a visible part of what a model gains over a constant prediction.",
    "drowned": "DROWNED: privacy costs more than half of what a model gains over a constant prediction, or all of it. "
    "Do not spend budget on this.",
}
_BETTER = {"drowned": ("noisy", "clear"), "noisy": ("clear",), "clear": ("clear",)}
_DESCRIPTION = {"noisy": "not drowned", "clear": "clear"}
MAX_USUAL_DELTA = 1e-6
"""Largest delta that a forecast suggests; for n records it is the power of ten at or below n^-1.1, if that is less."""


def _lines(forecast: Forecast) -> list[tuple[str, str, str]]:
    """Return a quantity, its value and its meaning per line."""
    mechanism = forecast.mechanism
    problems = f", {forecast.problems} problems" if forecast.problems > 1 else ""
    rows = getattr(mechanism.task, "rows_per_person", 1)
    in_spreads = ", in spreads of the target" if forecast.in_spreads else ""
    of_person = f", at most {rows} records of a person" if rows > 1 else ""
    return [
        (forecast.count_noun, f"{forecast.rows:,}", f"{forecast.features:,} features{problems}{of_person}"),
        ("epsilon", f"{forecast.guarantee.epsilon:g}", str(forecast.guarantee)),
        ("mechanism", mechanism.name, f"{mechanism.noise} noise of scale {forecast.noise_scale:.3g}"),
        ("regularization", f"{forecast.regularization:.3g}", "Lambda, as fit will take it"),
        *_knots_line(forecast),
        (
            "noise in a prediction",
            f"{forecast.noise:.3g}",
            f"standard deviation in a typical row{in_spreads}",
        ),
        ("  at worst", f"{forecast.worst_case:.3g}", "proven for every row and all data"),
        ("typical margin", f"{forecast.margin:.3g}", f"of predictions without noise, estimated{in_spreads}"),
        *_gain_lines(forecast),
    ]


def _gain_lines(forecast: Forecast) -> list[tuple[str, str, str]]:
    strong, typical, weak = forecast.gains
    low, high = forecast.quality_range
    return [
        (
            "gain lost",
            _percent(typical.lost),
            f"{_percent(strong.lost)} if the signal is strong, {_percent(weak.lost)} if it is weak",
        ),
        (
            f"expected {forecast.measure}",
            f"{typical.quality:.2f}",
            f"{typical.plain_quality:.2f} without privacy; from {low:.2f} to {high:.2f}, as the signal is weak or "
            "strong",
        ),
        *_rate_line(forecast),
    ]


def _knots_line(forecast: Forecast) -> list[tuple[str, str, str]]:
    """Return why the noise may be larger than with fewer records or a smaller epsilon."""
    if forecast.fine_knots is None:
        return []
    meaning = "in each number, fewer at a smaller epsilon; they add detail and noise"
    return [("knots", str(forecast.fine_knots), meaning)]


def _rate_line(forecast: Forecast) -> list[tuple[str, str, str]]:
    if forecast.settings[0].is_number or forecast.mechanism.task.loss.link == "none":
        return []
    source = "stated" if forecast.rate is not None else "assumed; a rarer class loses more: state --rate"
    return [("share of a class", f"{USUAL_RATE if forecast.rate is None else forecast.rate:g}", source)]


def _percent(share: float) -> str:
    return f"{share:.0%}" if share <= 1.0 else "over 100%"


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
        *lever_lines(forecast),
        *_advise_svm(forecast),
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


def levers_of(forecast: Forecast) -> dict[str, float]:
    """Return the share of the gain that is lost after each change that helps; of a clear forecast, after a delta."""
    levers = forecast.delta_lever() if forecast.verdict == "clear" else forecast.levers()
    return {name: other.lost for name, other in levers if other.lost < forecast.lost - 0.005}


def lever_lines(forecast: Forecast) -> list[str]:
    """Return a sentence on what changes would bring."""
    brought = [f"{_percent(lost)} with {name}" for name, lost in levers_of(forecast).items()]
    return [f"Gain lost: {', '.join(brought)}; {_percent(forecast.lost)} as planned."] if brought else []


def _advise_svm(forecast: Forecast) -> list[str]:
    """Return the advice to learn labels without probabilities, where noise is large."""
    if forecast.verdict == "clear" or forecast.mechanism.task.loss.link != "logistic":
        return []
    return [
        "If you need labels and no probabilities, a support vector machine (svm) usually has a lower error under noise."
    ]


def _round_up(number: float) -> float:
    """Return the number rounded up to two digits; the estimates are not more precise."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step * (1.0 - 1e-12)) * step
