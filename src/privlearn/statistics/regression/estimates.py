"""A table of estimates: each coefficient with an interval and a p-value, computed from released sums alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, ReleaseError, VerificationError
from privlearn.guarantee import Guarantee
from privlearn.imports import special
from privlearn.release.counts_file import CountsFile
from privlearn.statistics.intervals import LEVEL
from privlearn.statistics.regression.design import Levels
from privlearn.statistics.regression.layout import KIND, has_sums_of_model
from privlearn.statistics.regression.page import latex_table, page_part, text_table
from privlearn.statistics.regression.progress import Progress, positive_inverse

if TYPE_CHECKING:
    import pandas as pd

_MIN_INFORMATION = 3.0
"""In a direction whose information is below this multiple of its noise, nothing is estimated."""
_COLLINEAR = 1e-9
"""Nor where it is below this share of the largest one, which matters without noise."""
_UNESTIMATED = 1e-3
"""A coefficient is not estimated if more than this share of its squared direction lies in such directions."""
_FLAT = 1e-3
"""Eigenvalues of a matrix of moments count as at least this share of the largest one."""


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
        p-value of the hypothesis that the coefficient is 0.
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
        if not has_sums_of_model(self.about, self.guarantee):
            raise VerificationError("the sums of the file are not those of its model")

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
        """Return the name of exp(coefficient), such as "odds ratio"; empty for linear models."""
        return self._progress.family.ratio

    @property
    def references(self) -> dict[str, str]:
        """Return the category that the others are compared with, by variable."""
        variables = self._progress.design.column_variables
        return {variable.name: variable.values[0] for variable in variables if isinstance(variable, Levels)}

    @property
    def intercepts(self) -> int:
        """Return the number of intercepts, which come first: one for each level that is exceeded, in ordinal models."""
        return self._progress.design.intercepts

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
        mean = float(self.about.get("weight", {}).get("mean", 1.0))
        return self._progress.complete * self.unit / mean

    @cached_property
    def _progress(self) -> Progress:
        return Progress(
            self.about, self.certificate.mechanism.scales, [np.ravel(table) for table in self.tables]
        )

    @cached_property
    def _solution(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return estimates, their covariance with and without the noise, its degrees of freedom, and what is hidden."""
        progress, scale = self._progress, self._progress.scale
        score, information, score_noise, noise = progress.last_round
        moments, moments_noise = progress.moments
        dimension = len(score)
        information = without_repulsion(information, noise)
        values, vectors = np.linalg.eigh(information)
        least = max(_MIN_INFORMATION * noise, _COLLINEAR * float(values[-1]))
        weak, inverse = values < least, positive_inverse(information, least)
        step = inverse @ score
        # the information's noise times the step, and the step's own curvature (docs/theory/inference.md)
        unit, change = np.eye(dimension), progress.change_of_moments(step)
        outer = expected_outer(step, progress.step_covariance, inverse, score_noise, noise)
        own = score_noise**2 * unit + noise**2 / 2.0 * (np.trace(outer) * unit + outer)
        # residuals before the step also contain the step
        before = max(float(np.sum(outer * information)), 0.0) / progress.complete
        spread, kept = shrunk_moments(moments - before * information, information, change, moments_noise)
        # residuals at the estimate are smaller than at the truth: each coefficient counts as a record
        spread *= 1.0 + dimension / max(progress.complete, dimension)
        left = progress.curvature(information, outer)
        to_units = progress.standardised.to_units * scale.spread
        estimate = to_units @ (progress.coefficients + step)
        estimate[0] += scale.centre
        weights = to_units @ inverse
        sampling = weights @ spread @ weights.T
        whole = sampling + to_units @ (inverse @ own @ inverse + left * outer) @ to_units.T
        hidden = (to_units @ vectors[:, weak]) ** 2
        share = hidden.sum(axis=1) / (to_units**2).sum(axis=1)
        # of the variances' own noise: Satterthwaite's degrees of freedom
        by_model = (
            (1.0 - kept**2) * dimension * (np.diag(sampling) / max(float(np.trace(spread)), 1e-300)) ** 2
        )
        error = moments_noise**2 * (by_model + kept**2 * np.sum(weights**2, axis=1) ** 2)
        degrees = np.divide(
            2.0 * np.diag(whole) ** 2, error, out=np.full(dimension, np.inf), where=error > 0.0
        )
        return estimate, whole, sampling, np.maximum(degrees, 1.0), share > _UNESTIMATED

    def covariance(self) -> Array:
        """Return the covariance of the estimates, sampling and noise together."""
        return self._solution[1]

    def coefficients(self, level: float = LEVEL) -> list[Coefficient]:
        """Return the rows of the table, the intercept first."""
        if not 0.0 < level < 1.0:
            raise InvalidParameter("level must lie between 0 and 1, such as 0.95")
        estimate, whole, sampling, degrees, hidden = self._solution
        numbers = zip(estimate, np.diag(whole), np.diag(sampling), degrees, hidden, strict=True)
        return [
            _coefficient(name, *own, level)
            for name, own in zip(self._progress.design.names, numbers, strict=True)
        ]

    def __getitem__(self, term: str) -> Coefficient:
        rows = {row.term: row for row in self.coefficients()}
        if term not in rows:
            raise InvalidParameter(f"there is no term {term!r}. The terms are {', '.join(rows)}.")
        return rows[term]

    @property
    def privacy_cost(self) -> float:
        """Return the median width of an interval over its width without privacy; infinite if nothing is estimated."""
        costs = [row.privacy_cost for row in self.coefficients()[self.intercepts :] if row.is_estimated]
        return float(np.median(costs)) if costs else math.inf

    def records(self, level: float = LEVEL) -> list[dict[str, Any]]:
        """Return the rows of the table as plain values, with the ratio and its interval where it has a meaning."""
        records = []
        for row in self.coefficients(level):
            record: dict[str, Any] = dict(row.__dict__)
            if self.ratio_name:
                names = (self.ratio_name, f"{self.ratio_name} lower", f"{self.ratio_name} upper")
                record |= dict(zip(names, row.ratio, strict=True))
            records.append(record)
        return records

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """Return the table as a pandas data frame, indexed by term."""
        import pandas as pd

        return pd.DataFrame(self.records(level)).set_index("term")

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
    name: str, estimate: float, whole: float, sampling: float, degrees: float, hidden: bool, level: float
) -> Coefficient:
    if hidden:
        return Coefficient(name, math.nan, math.inf, -math.inf, math.inf, math.nan, math.inf)
    error = math.sqrt(whole)
    p_value = float(2.0 * special.stdtr(degrees, -abs(estimate) / error)) if error else float(not estimate)
    half = float(special.stdtrit(degrees, 0.5 + level / 2.0)) * error
    without_privacy = float(special.ndtri(0.5 + level / 2.0)) * math.sqrt(sampling)
    cost = half / without_privacy if without_privacy else math.inf
    return Coefficient(name, float(estimate), error, estimate - half, estimate + half, p_value, cost)


def expected_outer(step: Array, prior: Array, inverse: Array, score_noise: float, noise: float) -> Array:
    """Return the expected outer product of the last step without its noise, given the noisy step.

    Earlier rounds leave an error of covariance ``prior``, which the step corrects; its own noise is known.
    """
    unit = np.eye(len(step))
    inner = score_noise**2 * unit + noise**2 / 2.0 * (np.trace(prior) * unit + prior)
    gain = prior @ np.linalg.inv(prior + inverse @ inner @ inverse)
    mean = gain @ step
    return np.asarray(np.outer(mean, mean) + prior - gain @ prior)


def without_repulsion(matrix: Array, noise: float) -> Array:
    """Return a symmetric matrix with the eigenvalues that it is expected to have without its noise.

    Noise drives eigenvalues apart: the least one becomes too small, and its inverse too large. Given the eigenvectors,
    eigenvalue l_i is expected to be l_i + noise^2 sum_j 1 / (l_j - l_i) before (Bun, Bouchaud and Potters 2016), here
    without the poles. The trace is kept.

    >>> without_repulsion(np.diag([3.0, 10.0]), 1.0).round(2).tolist()
    [[3.14, 0.0], [0.0, 9.86]]
    """
    values, vectors = np.linalg.eigh(matrix)
    gaps = values - values[:, np.newaxis]
    shift = noise**2 * (gaps / np.maximum(gaps**2 + noise**2, 1e-300)).sum(axis=1)
    return np.asarray((vectors * (values + shift)) @ vectors.T)


def shrunk_moments(moments: Array, information: Array, change: Array, noise: float) -> tuple[Array, float]:
    """Return the scores' second moments, moved towards a multiple of the model's by as much as they are noise.

    The second result is the share of the deviation from the model that is kept.

    The model's are T I T' for the information I and ``change`` T; their multiple has the trace of the moments. The
    deviation from them is kept as far as it exceeds its noise (James and Stein's factor), so that small tables get the
    model's variance and large ones the sandwich.
    """
    model = change @ information @ change.T
    total = float(np.trace(model))
    factor = max(float(np.trace(moments)), 0.0) / total if total > 1e-100 else 0.0
    deviation = moments - factor * model
    size, dimension = float(np.sum(deviation**2)), len(moments)
    expected = noise**2 * dimension * (dimension + 1) / 2.0
    kept = max(1.0 - expected / size, 0.0) if size else 0.0
    values, vectors = np.linalg.eigh(model)
    root = vectors / np.sqrt(np.maximum(values, max(float(values[-1]), 1e-300) * _FLAT))
    lowest = float(np.linalg.eigvalsh(root.T @ deviation @ root)[0])
    if lowest < 0.0:  # the sum stays positive, with nothing added to its trace
        kept = min(kept, -factor / lowest)
    values, vectors = np.linalg.eigh(factor * model + kept * deviation)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T), kept
