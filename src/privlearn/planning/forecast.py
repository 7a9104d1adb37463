"""A forecast of a fit from public facts: its verdict, its table, its advice."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, cast

import numpy as np
from scipy.optimize import brentq

from privlearn.errors import InvalidParameter, shown
from privlearn.estimators.goal import NumberGoal, TrainingRows
from privlearn.guarantee import Guarantee, weakness
from privlearn.planning.estimate import ReferenceProblem, Spectrum, typical_margin
from privlearn.planning.stand_in import check_count

Verdict = Literal["clear", "noisy", "drowned"]

LARGEST_RATIO = {"clear": 0.25, "noisy": 0.75}
"""Noise over margin up to which a signal is clear, or at least not drowned. Measured (docs/theory/planning.md): up to
the first a model lost a few per cent of what it gains over guessing, beyond the second mostly more than half."""


def verdict_of(ratio: float) -> Verdict:
    for verdict, largest in LARGEST_RATIO.items():
        if ratio <= largest:
            return cast(Verdict, verdict)
    return "drowned"


def largest_ratio(verdict: str) -> float:
    """The largest ratio of that verdict or a better one."""
    if verdict not in LARGEST_RATIO:
        raise InvalidParameter(f"verdict must be one of {', '.join(LARGEST_RATIO)}, not {shown(verdict)}")
    return LARGEST_RATIO[verdict]


Line = tuple[str, str, str]

MEANING = {
    "clear": "CLEAR: the noise is small beside the margins. Expect about the error of the model without privacy.",
    "noisy": "NOISY: the noise is visible beside the margins. Expect to lose a part of what the model could tell.",
    "drowned": "DROWNED: the noise is about as large as the margins, or larger. Expect answers little better than "
    "guessing; do not spend budget on this.",
}
_SCALE = f"clear up to {LARGEST_RATIO['clear']:g}, drowned above {LARGEST_RATIO['noisy']:g}"
_BETTER = {"drowned": ("noisy", "clear"), "noisy": ("clear",), "clear": ("clear",)}
_IN_WORDS = {"noisy": "not drowned", "clear": "clear"}
_USUAL_DELTA = 1e-6


def lines(plan: Forecast) -> list[Line]:
    """What, how much, what it means."""
    mechanism = plan.mechanism
    problems = f", {plan.problems} problems" if plan.problems > 1 else ""
    return [
        (plan.counted, f"{plan.rows:,}", f"{plan.features:,} features{problems}"),
        ("epsilon", f"{plan.guarantee.epsilon:g}", str(plan.guarantee)),
        ("mechanism", mechanism.name, f"{mechanism.noise} noise of scale {plan.noise_scale:.3g}"),
        ("regularization", f"{plan.regularization:.3g}", "Lambda, as fit will take it"),
        ("noise in a prediction", f"{plan.noise:.3g}", "standard deviation, estimated for a typical row"),
        ("  at worst", f"{plan.worst_case:.3g}", "proven for every row and all data"),
        ("typical margin", f"{plan.margin:.3g}", "of predictions without noise, estimated"),
        ("noise / margin", f"{plan.ratio:.2g}", f"{plan.verdict}: {_SCALE}"),
    ]


def table(plan: Forecast) -> str:
    """The lines, aligned."""
    rows = lines(plan)
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    return "\n".join(
        f"{what:<{widths[0]}}  {amount:>{widths[1]}}  {meaning}" for what, amount, meaning in rows
    )


def advice(plan: Forecast) -> list[str]:
    """How strong the promise is if it is weak, the verdict, and what would change it: one sentence per line."""
    weak = [f"WEAK: this promise is {plan.weakness}."] if plan.weakness else []
    return [
        *weak,
        MEANING[plan.verdict],
        *(_needed(plan, verdict) for verdict in _BETTER[plan.verdict]),
        *_buys_delta(plan),
    ]


def as_dict(plan: Forecast) -> dict[str, Any]:
    """Plain JSON values."""
    mechanism = plan.mechanism
    return {
        "rows": plan.rows,
        "features": plan.features,
        "problems": plan.problems,
        "guarantee": plan.guarantee.to_dict(),
        "mechanism": mechanism.name,
        "noise_kind": mechanism.noise,
        "noise_scale": plan.noise_scale,
        "regularization": plan.regularization,
        "noise": plan.noise,
        "worst_case": plan.worst_case,
        "margin": plan.margin,
        "ratio": plan.ratio,
        "verdict": plan.verdict,
        "weakness": plan.weakness,
        "smallest_rows": {verdict: plan.smallest_rows(verdict) for verdict in LARGEST_RATIO},
        "smallest_epsilon": {verdict: plan.smallest_epsilon(verdict) for verdict in LARGEST_RATIO},
    }


def _needed(plan: Forecast, verdict: str) -> str:
    rows, epsilon = plan.smallest_rows(verdict), plan.smallest_epsilon(verdict)
    at_epsilon = f"epsilon {plan.guarantee.epsilon:g}"
    with_rows = (
        f"no number of {plan.counted} is enough"
        if rows is None
        else f"{_rounded_up(rows):,.0f} {plan.counted}"
    )
    if epsilon is None:
        with_epsilon = "no epsilon up to 100 is enough"
    else:
        weak = ", hardly private," if plan.at(epsilon=_rounded_up(epsilon)).weakness else ""
        with_epsilon = f"epsilon {_rounded_up(epsilon):g}{weak}"
    return (
        f"Smallest that is {_IN_WORDS[verdict]}: {with_rows} at {at_epsilon}; "
        f"{with_epsilon} with {plan.rows:,} {plan.counted}."
    )


def _buys_delta(plan: Forecast) -> list[str]:
    """Pure noise grows with the number of features, Gaussian noise does not."""
    if plan.guarantee.delta > 0:
        return []
    gaussian = plan.at(delta=_USUAL_DELTA)
    if gaussian.ratio > 0.9 * plan.ratio:
        return []
    return [
        f"With delta {_USUAL_DELTA:g} instead of 0: noise / margin {gaussian.ratio:.2g}, {gaussian.verdict}."
    ]


def _rounded_up(number: float) -> float:
    """To two digits; more would promise a precision that estimates do not have."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step * (1.0 - 1e-12)) * step


MOST_ROWS = 10**12
LEAST_EPSILON, MOST_EPSILON = 1e-4, 100.0
_STRIDE, _PRECISION = 4.0, 1.005  # of the search for the smallest number of records and the smallest epsilon


@dataclass(frozen=True, eq=False)
class Forecast(ABC):
    """A plan for so many records and a promise.

    Parameters
    ----------
    rows : int
    guarantee : Guarantee
    unit : float
        Units of the target in one of the scaled target.
    spectrum : Spectrum
        Of a typical table's encoded rows.
    problem : ReferenceProblem
        What stands for a typical table with this loss.
    persons : bool, default=False
        Whether ``rows`` counts persons, who may have several rows each, and not records.
    """

    rows: int
    guarantee: Guarantee
    unit: float = dataclasses.field(repr=False)
    spectrum: Spectrum = dataclasses.field(repr=False)
    problem: ReferenceProblem = dataclasses.field(repr=False)
    persons: bool = dataclasses.field(default=False, repr=False, kw_only=True)

    @property
    def counted(self) -> str:
        """What ``rows`` is a number of."""
        return "persons" if self.persons else "records"

    @property
    @abstractmethod
    def mechanism(self) -> Any:
        """Exactly what would run."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """In the prediction for a typical row."""

    @property
    @abstractmethod
    def worst_case(self) -> float:
        """In any prediction, at most."""

    @property
    def learnt_from(self) -> Spectrum:
        """That of the rows as the learner sees them."""
        return self.spectrum

    @cached_property
    def margin(self) -> float:
        """Of the predictions without noise."""
        return self.unit * typical_margin(self.regularization, self.learnt_from, self.problem)

    @property
    @abstractmethod
    def features(self) -> int:
        """Of a row, as encoded."""

    @property
    def problems(self) -> int:
        """Functions that are learnt."""
        return int(self.mechanism.task.problems)

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """Of the mechanism's law."""

    @property
    @abstractmethod
    def regularization(self) -> float:
        """Lambda."""

    @property
    def ratio(self) -> float:
        return self.noise / self.margin if self.margin else math.inf

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.ratio)

    @property
    def weakness(self) -> str | None:
        """Why the promise would be hardly private; ``None`` if it would not."""
        return weakness(self.mechanism.guarantee, self.rows)

    def at(
        self, *, rows: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> Self:
        """The same with another number of records, another epsilon or another delta."""
        promised = self.guarantee
        guarantee = Guarantee(
            promised.epsilon if epsilon is None else epsilon,
            promised.delta if delta is None else delta,
            promised.neighbours,
        )
        return dataclasses.replace(
            self,
            rows=self.rows if rows is None else check_count("rows", rows, MOST_ROWS),
            guarantee=guarantee,
        )

    def smallest_rows(self, verdict: str = "clear") -> int | None:
        """Fewest records with which this epsilon gives that verdict or a better one; ``None`` if 10^12 are too few."""
        found = _smallest(
            lambda rows: _ratio(self.at(rows=math.ceil(rows))), largest_ratio(verdict), 1.0, float(MOST_ROWS)
        )
        return None if found is None else math.ceil(found)

    def smallest_epsilon(self, verdict: str = "clear") -> float | None:
        """Smallest epsilon with which so many records give that verdict or better; ``None`` if 100 is too small."""
        return _smallest(
            lambda epsilon: _ratio(self.at(epsilon=epsilon)),
            largest_ratio(verdict),
            LEAST_EPSILON,
            MOST_EPSILON,
        )

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain JSON values."""
        return as_dict(self)

    def __str__(self) -> str:
        return "\n".join([table(self), "", *advice(self)])


def unit_of(rows: TrainingRows) -> float:
    """Half the distance of the target's bounds, of several numbers the largest; 1 for classes."""
    if not isinstance(rows.goal, NumberGoal):
        return 1.0
    return float(np.diff(rows.goal.target_bounds).max()) / 2.0


_HOPELESS = 1e300


def _ratio(plan: Forecast) -> float:
    """Of a plan; of one that is refused, as with so many records that rounding is felt, more than enough."""
    try:
        return plan.ratio
    except InvalidParameter:
        return _HOPELESS


def _smallest(ratio_at: Callable[[float], float], largest: float, low: float, high: float) -> float | None:
    """Where a falling ratio gets down to ``largest``, to half a per cent from above; ``None`` if it does not.

    From below, because a plan of more records can be worse again where the solver's tolerance costs more than it saves.
    """
    below = above = low
    while ratio_at(above) > largest:
        if above == high:
            return None
        below, above = above, min(_STRIDE * above, high)
    if above == low:
        return low
    found = math.exp(
        brentq(
            lambda place: math.log(ratio_at(math.exp(place)) / largest),
            math.log(below),
            math.log(above),
            xtol=math.log(_PRECISION) / 2.0,
        )
    )
    while ratio_at(found) > largest:
        found *= _PRECISION
    return found
