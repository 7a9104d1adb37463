"""What a fit would be worth, from public facts alone: before any budget is spent, and without any data."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scipy.optimize import brentq

from privlearn.errors import InvalidParameter
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.work import Work
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import KERNEL_MECHANISMS, Mechanism
from privlearn.planning.estimate import Spectrum, noise_in_prediction, typical_margin, worst_case
from privlearn.planning.stand_in import check_count, stand_ins
from privlearn.planning.summary import advice, as_dict, table
from privlearn.planning.typical import TypicalProblem, typical_problem
from privlearn.planning.verdict import Verdict, largest_ratio, verdict_of

MOST_ROWS = 10**12
LEAST_EPSILON, MOST_EPSILON = 1e-4, 100.0
_STRIDE, _PRECISION = 4.0, 1.005  # of the search for the smallest number of records and the smallest epsilon


@dataclass(frozen=True, eq=False)
class Plan:
    """What a fit would do, and how its noise compares with what it would find. Made by `plan`.

    Noise and margins are scores of one problem: log-odds for the logistic loss, about 1 for a sure answer of a support
    vector machine, units of the target for a regression. The mechanism and ``worst_case`` are exact; the rest are
    estimates for a typical table of this schema, and docs/theory/planning.md measures how far off they are.

    Attributes
    ----------
    rows : int
        Records (persons, if the schema has a person column).
    guarantee : Guarantee
    mechanism : OutputPerturbation or ObjectivePerturbation
        Exactly what `fit` would run: its noise, its regularization, its constants.
    noise : float
        Standard deviation of the noise in the prediction for a typical row.
    worst_case : float
        Bound on it for every row and all data, proven.
    margin : float
        Standard deviation of the predictions of the same model without noise.
    ratio : float
        ``noise / margin``.
    verdict : {"clear", "noisy", "drowned"}
    """

    work: Work = dataclasses.field(repr=False)
    spectrum: Spectrum = dataclasses.field(repr=False)
    problem: TypicalProblem = dataclasses.field(repr=False)
    rows: int
    guarantee: Guarantee

    @cached_property
    def mechanism(self) -> Mechanism:
        mechanism = self.work.on(dataclasses.replace(self.work.rows, total=self.rows)).plan(self.guarantee)
        if mechanism.name in KERNEL_MECHANISMS:
            raise InvalidParameter(
                f"no plan for mechanism={mechanism.name!r}: take 'auto', 'objective', 'output' or 'function_release'"
            )
        return mechanism  # type: ignore[return-value]

    @cached_property
    def noise(self) -> float:
        return self._unit * noise_in_prediction(self.mechanism, self.spectrum, self.problem)

    @cached_property
    def worst_case(self) -> float:
        return self._unit * worst_case(self.mechanism)

    @cached_property
    def margin(self) -> float:
        return self._unit * typical_margin(self.mechanism, self.spectrum, self.problem)

    @property
    def ratio(self) -> float:
        return self.noise / self.margin if self.margin else math.inf

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.ratio)

    def at(
        self, *, rows: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> Plan:
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
            lambda rows: self.at(rows=math.ceil(rows)).ratio, largest_ratio(verdict), 1.0, float(MOST_ROWS)
        )
        return None if found is None else math.ceil(found)

    def smallest_epsilon(self, verdict: str = "clear") -> float | None:
        """Smallest epsilon with which so many records give that verdict or better; ``None`` if 100 is too small."""
        return _smallest(
            lambda epsilon: self.at(epsilon=epsilon).ratio,
            largest_ratio(verdict),
            LEAST_EPSILON,
            MOST_EPSILON,
        )

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain JSON values."""
        return as_dict(self)

    def __str__(self) -> str:
        return "\n".join([table(self), "", *advice(self)])

    @property
    def _unit(self) -> float:
        """Units of the target in one of the scaled target."""
        bounds = getattr(self.work.rows, "target_bounds", None)
        return 1.0 if bounds is None else (bounds[1] - bounds[0]) / 2.0


def plan(estimator: PrivateLinearModel, rows: int, columns: int | None = None) -> Plan:
    """Tell what ``estimator.fit`` on so many records would be worth. Reads no data and costs nothing.

    Parameters
    ----------
    estimator : PrivateLogisticRegression, PrivateSVC or PrivateRegressor
        With all its parameters; it is not fitted.
    rows : int
        Number of records, or of persons if the schema has a person column.
    columns : int, optional
        Number of columns of a plain array, for an estimator without schema and public points.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, plan
    >>> from privlearn.data.simulated import census_schema
    >>> model = PrivateLogisticRegression(epsilon=0.1, delta=1e-6, schema=census_schema())
    >>> few = plan(model, rows=1000)
    >>> few.verdict
    'drowned'
    >>> few.at(rows=100_000).verdict
    'clear'
    """
    if not isinstance(estimator, PrivateLinearModel):
        raise InvalidParameter(
            "plan takes an estimator: PrivateLogisticRegression, PrivateSVC or PrivateRegressor"
        )
    guarantee = Guarantee(estimator.epsilon, estimator.delta, estimator.neighbours)
    if not guarantee.is_private:
        raise InvalidParameter(
            "epsilon = inf adds no noise, so there is nothing to plan: give a finite epsilon"
        )
    X, y = stand_ins(estimator, columns)
    work = copy.copy(estimator).prepare(X, y, private=True)  # reading rows leaves its mark on an estimator
    made = Plan(
        work,
        Spectrum.of(work.rows.features),
        typical_problem(work.loss),
        check_count("rows", rows, MOST_ROWS),
        guarantee,
    )
    made.mechanism  # noqa: B018 - refuses now what no theorem covers
    return made


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
