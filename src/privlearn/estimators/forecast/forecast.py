"""`Forecast`: what fits and sessions share, a verdict on noise against margin, a table, and advice."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, cast

import numpy as np

from privlearn.accounting.functions import root
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.forecast.reference import ReferenceProblem, Spectrum, typical_margin
from privlearn.estimators.forecast.stand_ins import check_count
from privlearn.estimators.training_rows import NumberTargets, TrainingRows
from privlearn.guarantee import Guarantee, weakness

Verdict = Literal["clear", "noisy", "drowned"]

MAX_RATIO = {"clear": 0.25, "noisy": 0.75}
"""Noise over margin up to which a signal is clear, or at least not drowned. Measured (docs/theory/planning.md): up to
the first a model lost a few per cent of what it gains over guessing, beyond the second mostly more than half."""


def verdict_of(ratio: float) -> Verdict:
    """Return the verdict on a ratio of noise to margin."""
    for verdict, limit in MAX_RATIO.items():
        if ratio <= limit:
            return cast(Verdict, verdict)
    return "drowned"


def max_ratio(verdict: str) -> float:
    """Return the largest ratio of that verdict or a better one."""
    if verdict not in MAX_RATIO:
        raise InvalidParameter(f"verdict must be one of {', '.join(MAX_RATIO)}, not {preview(verdict)}")
    return MAX_RATIO[verdict]


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
    problem : ReferenceProblem
        Typical labels for this loss.
    persons : bool, default=False
        Whether ``rows`` counts persons, who may have several rows each, rather than records.
    """

    rows: int
    guarantee: Guarantee
    unit: float = dataclasses.field(repr=False)
    spectrum: Spectrum = dataclasses.field(repr=False)
    problem: ReferenceProblem = dataclasses.field(repr=False)
    persons: bool = dataclasses.field(default=False, repr=False, kw_only=True)

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

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.ratio)

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

    def smallest_rows(self, verdict: str = "clear") -> int | None:
        """Return the smallest number of records with this verdict or a better one; ``None`` above 10^12."""
        rows = _smallest(
            lambda rows: _ratio(self.at(rows=math.ceil(rows))), max_ratio(verdict), 1.0, float(MAX_ROWS)
        )
        return None if rows is None else math.ceil(rows)

    def smallest_epsilon(self, verdict: str = "clear") -> float | None:
        """Return the smallest epsilon with this verdict or a better one; ``None`` above 100."""
        return _smallest(
            lambda epsilon: _ratio(self.at(epsilon=epsilon)),
            max_ratio(verdict),
            MIN_EPSILON,
            MAX_EPSILON,
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
            "verdict": self.verdict,
            "weakness": self.weakness,
            "smallest_rows": {verdict: self.smallest_rows(verdict) for verdict in MAX_RATIO},
            "smallest_epsilon": {verdict: self.smallest_epsilon(verdict) for verdict in MAX_RATIO},
        }

    def __str__(self) -> str:
        return "\n".join([table(self), "", *advice(self)])


def unit_of(rows: TrainingRows) -> float:
    """Return half the distance of the target's bounds, the largest of several numbers'; 1 for classes."""
    if not isinstance(rows.targets, NumberTargets):
        return 1.0
    return float(np.diff(rows.targets.target_bounds).max()) / 2.0


_REFUSED_RATIO = 1e300


def _ratio(forecast: Forecast) -> float:
    """Return a forecast's ratio; a huge one if it is refused, e.g. because rounding errors grow with the records."""
    try:
        return forecast.ratio
    except InvalidParameter:
        return _REFUSED_RATIO


def _smallest(ratio_at: Callable[[float], float], limit: float, low: float, high: float) -> float | None:
    """Return the smallest argument whose ratio is at most ``limit``, to half a per cent; ``None`` if above ``high``.

    The search starts from below: more records can be worse again where the solver's tolerance costs more noise.
    """
    below = above = low
    while ratio_at(above) > limit:
        if above == high:
            return None
        below, above = above, min(_STRIDE * above, high)
    if above == low:
        return low
    log_smallest = root(
        lambda log: math.log(ratio_at(math.exp(log)) / limit),
        math.log(below),
        math.log(above),
        xtol=math.log(_PRECISION) / 2.0,
    )
    smallest = math.exp(log_smallest)
    while ratio_at(smallest) > limit:
        smallest *= _PRECISION
    return smallest


MEANING = {
    "clear": "CLEAR: the noise is small compared with the margins. Expect about the error without privacy.",
    "noisy": "NOISY: the noise is visible compared with the margins. Expect to lose a part of the model's accuracy.",
    "drowned": "DROWNED: the noise is about as large as the margins, or larger. Expect answers little better than "
    "guessing; do not spend budget on this.",
}
_SCALE = f"clear up to {MAX_RATIO['clear']:g}, drowned above {MAX_RATIO['noisy']:g}"
_BETTER = {"drowned": ("noisy", "clear"), "noisy": ("clear",), "clear": ("clear",)}
_DESCRIPTION = {"noisy": "not drowned", "clear": "clear"}
_USUAL_DELTA = 1e-6


def _lines(forecast: Forecast) -> list[tuple[str, str, str]]:
    """Return a quantity, its value and its meaning per line."""
    mechanism = forecast.mechanism
    problems = f", {forecast.problems} problems" if forecast.problems > 1 else ""
    rows = getattr(mechanism.task, "rows_per_person", 1)
    of_person = f", at most {rows} records of a person" if rows > 1 else ""
    return [
        (forecast.count_noun, f"{forecast.rows:,}", f"{forecast.features:,} features{problems}{of_person}"),
        ("epsilon", f"{forecast.guarantee.epsilon:g}", str(forecast.guarantee)),
        ("mechanism", mechanism.name, f"{mechanism.noise} noise of scale {forecast.noise_scale:.3g}"),
        ("regularization", f"{forecast.regularization:.3g}", "Lambda, as fit will take it"),
        ("noise in a prediction", f"{forecast.noise:.3g}", "standard deviation, estimated for a typical row"),
        ("  at worst", f"{forecast.worst_case:.3g}", "proven for every row and all data"),
        ("typical margin", f"{forecast.margin:.3g}", "of predictions without noise, estimated"),
        ("noise / margin", f"{forecast.ratio:.2g}", f"{forecast.verdict}: {_SCALE}"),
    ]


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
        *_advise_delta(forecast),
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


def _advise_delta(forecast: Forecast) -> list[str]:
    """Return advice to allow a delta, if that helps: Gaussian noise does not grow with the number of features."""
    if forecast.guarantee.delta > 0:
        return []
    gaussian = forecast.at(delta=_USUAL_DELTA)
    if gaussian.ratio > 0.9 * forecast.ratio:
        return []
    return [
        f"With delta {_USUAL_DELTA:g} instead of 0: noise / margin {gaussian.ratio:.2g}, {gaussian.verdict}."
    ]


def _round_up(number: float) -> float:
    """Return the number rounded up to two digits; the estimates are not more precise."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step * (1.0 - 1e-12)) * step
