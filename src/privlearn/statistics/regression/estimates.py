"""A table of estimates: each coefficient with an interval and a p-value, computed from released sums alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, ReleaseError
from privlearn.guarantee import Guarantee
from privlearn.imports import special
from privlearn.release.counts_file import CountsFile
from privlearn.statistics.intervals import LEVEL
from privlearn.statistics.regression.design import Levels
from privlearn.statistics.regression.layout import KIND
from privlearn.statistics.regression.page import latex_table, page_part, text_table
from privlearn.statistics.regression.progress import Progress, positive_inverse

if TYPE_CHECKING:
    import pandas as pd

_MIN_INFORMATION = 3.0
"""In a direction whose information is below this multiple of its noise, nothing is estimated."""
_UNESTIMATED = 1e-3
"""A coefficient is not estimated if more than this share of its squared direction lies in such directions."""
_CURVATURE = 0.25
"""Change of the information per unit of the linear predictor, for the error of the last step."""


@dataclass(frozen=True)
class Coefficient:
    """One row of the table.

    Attributes
    ----------
    term : str
    estimate, error : float
        In the units of the table; ``error`` is the standard error, noise included.
    lower, upper : float
        Confidence interval of the file's level.
    p_value : float
        Of the hypothesis that the coefficient is 0.
    privacy_cost : float
        Width of the interval over its width without privacy.
    """

    term: str
    estimate: float
    error: float
    lower: float
    upper: float
    p_value: float
    privacy_cost: float

    @property
    def is_estimated(self) -> bool:
        """Return False where the noise, or collinear terms, leave nothing to read."""
        return math.isfinite(self.error)

    @property
    def ratio(self) -> tuple[float, float, float]:
        """Return the odds or rate ratio with its interval: exponentials of the estimate and its interval."""
        return tuple(math.exp(min(number, 700.0)) for number in (self.estimate, self.lower, self.upper))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Estimates(CountsFile):
    """Released sums of a regression model, and its table of coefficients.

    Intervals account for sampling and for the noise; they are robust against a wrong variance and against clusters of
    rows of one person (sandwich). `load`, `save` and `signed` work as for a release.
    """

    what: ClassVar[str] = "table of estimates"

    def __post_init__(self) -> None:
        if self.about.get("kind") != KIND:
            raise ReleaseError("this file does not hold estimates. Load it with the class of its kind.")

    @property
    def guarantee(self) -> Guarantee:
        return self.certificate.guarantee

    @property
    def formula(self) -> str:
        return str(self.about["formula"])

    @property
    def family(self) -> str:
        return str(self.about["family"])

    @property
    def ratio_name(self) -> str:
        """Return "odds ratio" or "rate ratio"; empty for linear models."""
        return self._progress.family.ratio

    @property
    def references(self) -> dict[str, str]:
        """Return the category that the others are compared with, by variable."""
        variables = self._progress.design.variables
        return {variable.name: variable.values[0] for variable in variables if isinstance(variable, Levels)}

    @property
    def units(self) -> dict[str, str]:
        """Return the unit of one step, by variable: the column's unit, or a standard deviation as released."""
        units = {}
        progress = self._progress
        for index, (variable, _) in enumerate(progress.design.atoms):
            entry = progress.design.variables[variable]
            if isinstance(entry, Levels):
                continue
            if entry.function == "scale":
                units[entry.name] = f"{progress.standardised.spreads[index]:.3g} {entry.unit}".strip()
            elif entry.unit:
                units[entry.name] = entry.unit
        return units

    @cached_property
    def complete(self) -> float:
        """Return about how many records, or persons, have all values: the mean over the histograms.

        Weights count in units of their public mean.
        """
        counted = float(np.mean([np.sum(table) for table in self.tables[: self._progress.tables]]))
        mean = float(self.about.get("weight", {}).get("mean", 1.0))
        return max(counted * self.unit / mean, 0.0)

    @cached_property
    def _progress(self) -> Progress:
        return Progress(
            self.about, self.certificate.mechanism.scales, [np.ravel(table) for table in self.tables]
        )

    @cached_property
    def _solution(self) -> tuple[Array, Array, Array, Array]:
        """Return estimates, their covariance with and without the noise, and which are not estimated."""
        progress, scales = self._progress, self.certificate.mechanism.scales
        score, information, moments = progress.last_round
        scale, dimension = progress.scale, progress.design.dimension
        score_noise = scales[-3] * scale.residual_bound
        noise = scales[-2] * scale.information_bound
        values, vectors = np.linalg.eigh(information)
        weak = values < _MIN_INFORMATION * noise
        inverse = positive_inverse(information, _MIN_INFORMATION * noise)
        step = inverse @ score
        spread = shrunk_moments(moments, information, scales[-1] * scale.residual_bound**2)
        # the information's noise times the step, and the step's own curvature (docs/theory/inference.md)
        outer = np.outer(step, step)
        own = score_noise**2 * np.eye(dimension) + noise**2 / 2.0 * (
            np.trace(outer) * np.eye(dimension) + outer
        )
        left = _CURVATURE**2 * progress.predictor_variance(information, step)
        to_units = progress.standardised.to_units * scale.spread
        estimate = to_units @ (progress.coefficients + step)
        estimate[0] += scale.centre
        sampling = to_units @ inverse @ spread @ inverse @ to_units.T
        whole = sampling + to_units @ (inverse @ own @ inverse + left * outer) @ to_units.T
        hidden = (to_units @ vectors[:, weak]) ** 2
        share = hidden.sum(axis=1) / (to_units**2).sum(axis=1)
        return estimate, whole, sampling, share > _UNESTIMATED

    def covariance(self) -> Array:
        """Return the covariance of the estimates, sampling and noise together."""
        return self._solution[1]

    def coefficients(self, level: float = LEVEL) -> list[Coefficient]:
        """Return the rows of the table, the intercept first."""
        if not 0.0 < level < 1.0:
            raise InvalidParameter("level must lie between 0 and 1, such as 0.95")
        estimate, whole, sampling, hidden = self._solution
        names = self._progress.design.names
        reach = float(special.ndtri(0.5 + level / 2.0))
        return [
            _coefficient(
                name, estimate[index], whole[index, index], sampling[index, index], bool(hidden[index]), reach
            )
            for index, name in enumerate(names)
        ]

    def __getitem__(self, term: str) -> Coefficient:
        rows = {row.term: row for row in self.coefficients()}
        if term not in rows:
            raise InvalidParameter(f"there is no term {term!r}. The terms are {', '.join(rows)}.")
        return rows[term]

    @property
    def privacy_cost(self) -> float:
        """Return the median width of an interval over its width without privacy; infinite if nothing is estimated."""
        costs = [row.privacy_cost for row in self.coefficients()[1:] if row.is_estimated]
        return float(np.median(costs)) if costs else math.inf

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """Return the table as a pandas data frame, indexed by term."""
        import pandas as pd

        records = []
        for row in self.coefficients(level):
            record: dict[str, Any] = dict(row.__dict__)
            if self.ratio_name:
                names = (self.ratio_name, f"{self.ratio_name} lower", f"{self.ratio_name} upper")
                record |= dict(zip(names, row.ratio, strict=True))
            records.append(record)
        return pd.DataFrame(records).set_index("term")

    def to_latex(self, level: float = LEVEL) -> str:
        """Return the table as LaTeX (booktabs)."""
        return latex_table(self, level)

    def summary(self, level: float = LEVEL) -> str:
        """Return the table as text."""
        return text_table(self, level)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return page_part(self)


def _coefficient(
    name: str, estimate: float, whole: float, sampling: float, hidden: bool, reach: float
) -> Coefficient:
    if hidden:
        return Coefficient(name, math.nan, math.inf, -math.inf, math.inf, math.nan, math.inf)
    error = math.sqrt(whole)
    p_value = float(2.0 * special.ndtr(-abs(estimate) / error)) if error else float(not estimate)
    cost = math.sqrt(whole / sampling) if sampling else math.inf
    half = reach * error
    return Coefficient(name, float(estimate), error, estimate - half, estimate + half, p_value, cost)


def shrunk_moments(moments: Array, information: Array, noise: float) -> Array:
    """Return the scores' second moments, moved towards a multiple of the information by as much as they are noise.

    Under the model the two are proportional; the deviation from it is kept as far as it exceeds its noise (James and
    Stein's factor), so that small tables get the model's variance and large ones the sandwich.
    """
    factor = max(float(np.sum(moments * information)) / max(float(np.sum(information**2)), 1e-300), 0.0)
    deviation = moments - factor * information
    size, dimension = float(np.sum(deviation**2)), len(moments)
    expected = noise**2 * dimension * (dimension + 1) / 2.0
    kept = max(1.0 - expected / size, 0.0) if size else 0.0
    values, vectors = np.linalg.eigh(factor * information + kept * deviation)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
