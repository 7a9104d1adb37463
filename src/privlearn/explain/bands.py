"""Intervals for coefficients, effects of columns and predictions of a released model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from privlearn.arrays import Array
from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.encode.encoder import Bounds, from_unit
from privlearn.errors import InvalidParameter, shown
from privlearn.explain.directions import effect_directions, schema_of
from privlearn.explain.uncertainty import Kind, Uncertainty
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature
from privlearn.release.encoders import base_of, encoded, feature_names
from privlearn.release.model import LinearModel, RegressionModel

_MOST = 5000
"""Coefficients in one band: a square matrix of them has to fit into memory."""

MEANING = {
    "privacy": "where the model without noise, learnt from the same records with the same regularization, would be",
    "confidence": "where the model without noise, learnt with the same regularization from the whole population "
    "that the records were drawn from, would be; what regularization shrinks stays shrunk",
}


@dataclass(frozen=True, eq=False)
class Band:
    """Estimates with an interval each. Each holds at the level by itself, not all of them at once (pointwise).

    Attributes
    ----------
    names : list
        What each is an estimate of: features, values of a column, or numbers of rows.
    estimate, lower, upper : array
    level : float
    kind : {"privacy", "confidence"}
    """

    names: list[Any]
    estimate: Array
    lower: Array
    upper: Array
    level: float
    kind: Kind

    @property
    def excludes_zero(self) -> NDArray[np.bool_]:
        """Where the interval does not hold 0: what is above the noise."""
        return (self.lower > 0.0) | (self.upper < 0.0)


def intervals(
    release: Release, curvature: Curvature | None = None, *, level: float = 0.95, kind: Kind = "confidence"
) -> Intervals:
    """Intervals for what a release says. Public: nothing is read but released numbers, so nothing is paid.

    Parameters
    ----------
    release : Release
    curvature : Curvature, optional
        As `privlearn.curvature` bought it for this release. Without it there are privacy intervals only, and under
        objective perturbation these are as wide as any table could need.
    level : float, default=0.95
    kind : {"privacy", "confidence"}, default="confidence"
        ``privacy``: what the noise does: where the model learnt from these records without noise would be.
        ``confidence``: what sampling does too: where the population's would be. Both have the release's regularization.

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn import PrivateLogisticRegression, curvature, intervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = (X[:, 0] + rng.logistic(size=20_000) > 0).astype(int)
    >>> fitted = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1]).fit(X, y)
    >>> bought = curvature(fitted.release_, X, y, epsilon=0.5, delta=1e-6)
    >>> band = intervals(fitted.release_, bought).coefficients()
    >>> band.names, band.excludes_zero[0]
    (['x[0]', 'x[1]', 'intercept'], np.True_)
    """
    if not 0.5 <= level < 1.0:
        raise InvalidParameter(f"level must be at least 0.5 and below 1, e.g. 0.95, not {shown(level)}")
    return Intervals(release, Uncertainty(release, curvature, kind), level)


@dataclass(frozen=True, eq=False)
class Intervals:
    """What `intervals` returns."""

    release: Release
    uncertainty: Uncertainty
    level: float

    @property
    def kind(self) -> Kind:
        return self.uncertainty.kind

    @property
    def meaning(self) -> str:
        """What the intervals are about, in words."""
        share = f"{100 * self.level:g} %"
        words = f"In {share} of all cases, each interval by itself: {MEANING[self.kind]}."
        return (
            words if not self.uncertainty.is_bound else f"{words} Wider than needed: no curvature was bought."
        )

    def coefficients(self) -> Band:
        """Of each feature; for plain arrays in the units of X, with the intercept last."""
        model = self.release.model
        if model.coefficients.size > _MOST:
            raise InvalidParameter(
                f"the model has {model.coefficients.size} coefficients, too many to read one by one: ask for effects"
            )
        if not isinstance(base_of(model.encoder), ArrayEncoder):
            return self._named(feature_names(model.encoder), np.eye(model.encoder.dimension))
        encoder: Any = model.encoder
        assert isinstance(encoder, ArrayEncoder | CentredEncoder)
        slopes, constants = encoder.unscale(np.eye(encoder.dimension))
        names = [*(f"x[{place}]" for place in range(slopes.shape[1])), "intercept"]
        functions = np.vstack([slopes.T, np.asarray(constants)[np.newaxis]])
        if not isinstance(model, RegressionModel):
            return self._named(names, functions)
        lower, upper = bounds_of(model)
        half = (upper - lower) / 2.0
        return self.linear(half * functions, names, offset=np.eye(len(names))[-1] * (lower + half))

    def effect(self, column: str, label: Any = None) -> Band:
        """Of a column's values on the score, less its mean over them; of more classes, on ``label``'s against the rest.

        It is the mean over made-up rows of the schema, in which only this column changes, of what the column's own
        features and those of its pairs add; a row's norm counts as a usual row's. The score is a log-odds for logistic
        models, a number in the target's units for regressions.
        """
        values, functions = self.effect_functions(column, label)
        return self.linear(functions, values)

    def effect_functions(self, column: str, label: Any = None) -> tuple[list[Any], Array]:
        """The values, and the linear function of all coefficients that is the effect at each."""
        values, directions = self.effect_directions(column)
        return values, self.of_class(directions, label)

    def effect_directions(self, column: str) -> tuple[list[Any], Array]:
        """The same for one class's coefficients."""
        values, directions = effect_directions(self.release.model.encoder, column)
        return values, directions * self.unit_width

    @property
    def unit_width(self) -> float:
        """How much a score of 1 is, in the target's units; scores of classes have none."""
        model = self.release.model
        if not isinstance(model, RegressionModel):
            return 1.0
        lower, upper = bounds_of(model)
        return (upper - lower) / 2.0

    @property
    def labels(self) -> list[Any]:
        """The classes whose effects are shown one by one; ``None`` where one score says it all."""
        model = self.release.model
        return (
            model.classes.tolist()
            if isinstance(model, LinearModel) and len(model.coefficients) > 1
            else [None]
        )

    def shows_effect(self, column: str, label: Any = None) -> bool:
        """Whether a column's effect is above the noise: a column without one passes with probability 1 - level at most.

        Without one are columns whose own coefficients, and those of their pairs, would be 0 without the noise. Some
        point must differ from 0 at a level that is raised for the number of points (Bonferroni).
        """
        values, functions = self.effect_functions(column, label)
        raised = 1.0 - (1.0 - self.level) / len(values)
        estimate = functions @ self.release.model.coefficients.ravel()
        return bool(np.any(np.abs(estimate) > self.uncertainty.half_widths(functions, raised)))

    @property
    def columns(self) -> list[str]:
        """Those that have an effect: the schema's."""
        return list(schema_of(self.release.model.encoder).columns)

    def predictions(self, X: Any, label: Any = None) -> Band:
        """Of each row: the score of a margin, the probability of the second class or of ``label``, the mean number.

        About what the model says, not about a new person's answer, which varies around it.
        """
        model = self.release.model
        rows = np.vstack([_dense(block) for block in encoded(model.encoder, X)])
        names = list(range(len(rows)))
        if isinstance(model, RegressionModel):
            return _mapped(self.linear(rows, names), lambda units: from_unit(units, bounds_of(model)))
        if model.link == "softmax":
            return self._softmax(rows, self._place(label))
        band = self.linear(rows, names)
        return _mapped(band, expit) if model.link == "logistic" else band

    def linear(self, functions: Array, names: Sequence[Any], offset: Array | float = 0.0) -> Band:
        """Of any linear functions of all coefficients, one per row; of more classes, class after class."""
        estimate = functions @ self.release.model.coefficients.ravel() + offset
        half = self.uncertainty.half_widths(functions, self.level)
        return Band(list(names), estimate, estimate - half, estimate + half, self.level, self.kind)

    def _named(self, names: list[str], functions: Array) -> Band:
        model = self.release.model
        classes = len(model.coefficients)
        if classes > 1 and isinstance(model, LinearModel):
            names = [f"{label}: {name}" for label in model.classes for name in names]
        return self.linear(np.asarray(np.kron(np.eye(classes), functions)), names)

    def of_class(self, directions: Array, label: Any = None) -> Array:
        """Functions of one class's coefficients as functions of all; of more than two, against the classes' mean."""
        classes = len(self.release.model.coefficients)
        if classes == 1:
            return directions
        against = np.eye(classes)[self._place(label)] - 1.0 / classes
        return np.kron(against, directions)

    def _place(self, label: Any) -> int:
        """Of a class among all; the second, where none is named and there are two."""
        classes = (
            [] if isinstance(self.release.model, RegressionModel) else self.release.model.classes.tolist()
        )
        if label is None and len(classes) == 2:
            return 1
        if label not in classes:
            raise InvalidParameter(f"say which class it is about: label={' or '.join(map(repr, classes))}")
        return classes.index(label)

    def _softmax(self, rows: Array, place: int) -> Band:
        """Probabilities of one class, by the slope of its log-odds at the released coefficients."""
        scores = rows @ self.release.model.coefficients.T
        others = scores.copy()
        others[:, place] = -np.inf
        slopes = -softmax(others, axis=1)
        slopes[:, place] = 1.0
        functions = np.einsum("ik,ij->ikj", slopes, rows).reshape(len(rows), -1)
        half = self.uncertainty.half_widths(functions, self.level)
        odds = scores[:, place] - np.log(np.sum(np.exp(others), axis=1))
        band = Band(list(range(len(rows))), odds, odds - half, odds + half, self.level, self.kind)
        return _mapped(band, expit)


def _mapped(band: Band, increasing: Any) -> Band:
    """The same of an increasing function."""
    estimate, lower, upper = (increasing(values) for values in (band.estimate, band.lower, band.upper))
    return dataclasses.replace(band, estimate=estimate, lower=lower, upper=upper)


def _dense(block: Any) -> Array:
    return block if isinstance(block, np.ndarray) else np.asarray(block.toarray())


def bounds_of(model: RegressionModel) -> Bounds:
    """Of the one number that it predicts."""
    lower, upper = model.target_bounds
    if isinstance(lower, tuple) or isinstance(upper, tuple):
        raise InvalidParameter("intervals are given for one number: this model predicts several")
    return lower, upper
