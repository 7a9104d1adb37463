"""`intervals`: intervals for coefficients, effects of columns and predictions of a released model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import ArrayEncoder, CentredEncoder
from privlearn.data.encoding.encoder import Bounds, from_unit
from privlearn.errors import InvalidParameter, preview
from privlearn.explain.directions import effect_directions, schema_of, word_direction
from privlearn.explain.uncertainty import Kind, Uncertainty
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature
from privlearn.release.encoders import base_of, encode_blocks, feature_names
from privlearn.release.model import LinearModel, RegressionModel

_MAX_COEFFICIENTS = 5000
"""Coefficients in one band: a square matrix of them has to fit into memory."""

MEANING = {
    "privacy": "where the model without noise, learnt from the same records with the same regularization, would be",
    "confidence": "where the model without noise, learnt with the same regularization from the whole population "
    "that the records were drawn from, would be; what regularization shrinks stays shrunk",
}


@dataclass(frozen=True, eq=False)
class Band:
    """Estimates, each with an interval. The level is pointwise: it holds for each interval, not for all at once.

    Attributes
    ----------
    names : list
        The estimated quantities: names of features, values of a column, or indices of rows.
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
        """Return True for each estimate that is above the noise: its interval does not contain 0."""
        return (self.lower > 0.0) | (self.upper < 0.0)


def intervals(
    release: Release, curvature: Curvature | None = None, *, level: float = 0.95, kind: Kind = "confidence"
) -> Intervals:
    """Return intervals around a release's numbers. Public: uses released numbers only, and costs nothing.

    Parameters
    ----------
    release : Release
    curvature : Curvature, optional
        The result of `privlearn.curvature` for this release. Without it there are privacy intervals only, which under
        objective perturbation hold on every table, and are wider than most tables need.
    level : float, default=0.95
    kind : {"privacy", "confidence"}, default="confidence"
        ``privacy`` covers the noise: the model learnt from these records without noise. ``confidence`` covers sampling
        too: the model of the population. Both have the release's regularization.

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn import PrivateLogisticRegression, curvature, intervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = (X[:, 0] + rng.logistic(size=20_000) > 0).astype(int)
    >>> fitted = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1]).fit(X, y)
    >>> noisy = curvature(fitted.release_, X, y, epsilon=0.5, delta=1e-6)
    >>> band = intervals(fitted.release_, noisy).coefficients()
    >>> band.names, band.excludes_zero[0]
    (['x[0]', 'x[1]', 'intercept'], np.True_)
    """
    if not 0.5 <= level < 1.0:
        raise InvalidParameter(f"level must be at least 0.5 and below 1, e.g. 0.95, not {preview(level)}")
    return Intervals(release, Uncertainty(release, curvature, kind), level)


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals of one release at one level. `intervals` creates it."""

    release: Release
    uncertainty: Uncertainty
    level: float

    @property
    def kind(self) -> Kind:
        """Return what the intervals cover."""
        return self.uncertainty.kind

    @property
    def meaning(self) -> str:
        """Return a sentence about what the intervals cover."""
        meaning = f"In {100 * self.level:g} % of all cases, each interval by itself: {MEANING[self.kind]}."
        return (
            f"{meaning} A private curvature would make them narrower."
            if self.uncertainty.is_bound
            else meaning
        )

    def coefficients(self) -> Band:
        """Return the coefficient of each feature; for plain arrays in the units of X, with the intercept last."""
        model = self.release.model
        if model.coefficients.size > _MAX_COEFFICIENTS:
            raise InvalidParameter(
                f"the model has {model.coefficients.size} coefficients, and intervals are available for at most "
                f"{_MAX_COEFFICIENTS}. Use `effect` for one column."
            )
        if not isinstance(base_of(model.encoder), ArrayEncoder):
            return self._name_coefficients(feature_names(model.encoder), np.eye(model.encoder.dimension))
        encoder: Any = model.encoder
        assert isinstance(encoder, ArrayEncoder | CentredEncoder)
        weights, constants = encoder.unscale(np.eye(encoder.dimension))
        names = [*(f"x[{column}]" for column in range(weights.shape[1])), "intercept"]
        functions = np.vstack([weights.T, np.asarray(constants)[np.newaxis]])
        if not isinstance(model, RegressionModel):
            return self._name_coefficients(names, functions, is_array=True)
        origin = from_unit(model.constants, bounds_of(model), clamp=False)
        return self.linear(self.unit_width * functions, names, offset=np.eye(len(names))[-1] * origin)

    def effect(self, column: str, label: Any = None) -> Band:
        """Return the effect of a column's values on the score, less its mean; for several classes, of class ``label``.

        It is the mean over synthetic rows of the schema, in which only this column changes, of what the column's own
        features and those of its pairs add, for the norm of a typical row. The score is a log-odds for logistic
        models, a number in the target's units for regressions.
        """
        values, functions = self.effect_functions(column, label)
        return self.linear(functions, values)

    def words(self, words: Sequence[str], column: str | None = None, label: Any = None) -> Band:
        """Return what a text of one word adds to the score, compared with an empty text.

        A text of m different words adds about the sum of their effects over the square root of m. Words that share
        a hash bucket share their effect.

        Parameters
        ----------
        words : sequence of str
            Public, such as a dictionary: the release contains no words, only numbers of hash buckets.
        column : str, optional
            The column of text, if the schema has several.
        label
            The class whose score changes, if the model has several classes.
        """
        encoder, bands = self.release.model.encoder, []
        for word in words:  # a word's features may be hundreds of thousands
            direction = word_direction(encoder, word, column) * self.unit_width
            bands.append(self.linear(self.of_class(direction, label), [word]))
        estimate, lower, upper = (
            np.concatenate([getattr(band, name) for band in bands]) for name in ("estimate", "lower", "upper")
        )
        return Band(list(words), estimate, lower, upper, self.level, self.kind)

    def effect_functions(self, column: str, label: Any = None) -> tuple[list[Any], Array]:
        """Return the values, and for each the linear function of all coefficients that is its effect."""
        values, directions = self.effect_directions(column)
        return values, self.of_class(directions, label)

    def effect_directions(self, column: str) -> tuple[list[Any], Array]:
        """Return the values, and for each the effect as a function of one class's coefficients."""
        values, directions = effect_directions(self.release.model.encoder, column)
        return values, directions * self.unit_width

    @property
    def unit_width(self) -> float:
        """Return the size of a product <w, x> of 1 in units of the target; 1 for classes."""
        model = self.release.model
        if not isinstance(model, RegressionModel):
            return 1.0
        lower, upper = bounds_of(model)
        return float(model.stretches[0]) * (upper - lower) / 2.0

    @property
    def labels(self) -> list[Any]:
        """Return the classes, if each has a score; ``[None]`` if there is a single score."""
        model = self.release.model
        return (
            model.classes.tolist()
            if isinstance(model, LinearModel) and len(model.coefficients) > 1
            else [None]
        )

    def shows_effect(self, column: str, label: Any = None) -> bool:
        """Return whether a column's effect is above the noise; one without effect passes with probability 1 - level.

        A column without effect is one whose coefficients, and those of its pairs, would be 0 without noise. Some
        point must differ from 0 at a level that is raised for the number of points (Bonferroni).
        """
        values, functions = self.effect_functions(column, label)
        level = 1.0 - (1.0 - self.level) / len(values)
        estimate = functions @ self.release.model.coefficients.ravel()
        return bool(np.any(np.abs(estimate) > self.uncertainty.half_widths(functions, level)))

    @property
    def columns(self) -> list[str]:
        """Return the schema's columns."""
        return list(schema_of(self.release.model.encoder).columns)

    def predictions(self, X: Any, label: Any = None) -> Band:
        """Return, for each row, the score, the probability of the second class or of ``label``, or the mean number.

        The intervals are for the model's prediction, not for a new person's answer, which varies around it.
        """
        model = self.release.model
        rows = np.vstack([_dense(block) for block in encode_blocks(model.encoder, X)])
        names = list(range(len(rows)))
        if isinstance(model, RegressionModel):
            band = self.linear(model.stretches[0] * rows, names, offset=model.constants[0])
            return _map_band(band, lambda units: from_unit(units, bounds_of(model)))
        if model.link == "softmax":
            return self._softmax(rows, self._class_index(label))
        band = self.linear(rows, names, offset=model.constants[0])
        return _map_band(band, expit) if model.link == "logistic" else band

    def linear(self, functions: Array, names: Sequence[Any], offset: Array | float = 0.0) -> Band:
        """Return intervals for linear functions of all coefficients, one per row; coefficients run class by class."""
        estimate = functions @ self.release.model.coefficients.ravel() + offset
        half = self.uncertainty.half_widths(functions, self.level)
        return Band(list(names), estimate, estimate - half, estimate + half, self.level, self.kind)

    def _name_coefficients(self, names: list[str], functions: Array, is_array: bool = False) -> Band:
        """Return named coefficients; of arrays the last one is the intercept, which includes the offset."""
        model = self.release.model
        classes = len(model.coefficients)
        if classes > 1 and isinstance(model, LinearModel):
            names = [f"{label}: {name}" for label in model.classes for name in names]
        offset = np.kron(model.constants, np.arange(len(functions)) == len(functions) - 1)
        return self.linear(
            np.asarray(np.kron(np.eye(classes), functions)), names, offset if is_array else 0.0
        )

    def of_class(self, directions: Array, label: Any = None) -> Array:
        """Return functions of one class's coefficients as functions of all; of several classes, against their mean."""
        classes = len(self.release.model.coefficients)
        if classes == 1:
            return directions
        against = np.eye(classes)[self._class_index(label)] - 1.0 / classes
        return np.kron(against, directions)

    def _class_index(self, label: Any) -> int:
        """Return the index of a class; by default the second of two."""
        classes = (
            [] if isinstance(self.release.model, RegressionModel) else self.release.model.classes.tolist()
        )
        if label is None and len(classes) == 2:
            return 1
        if label not in classes:
            raise InvalidParameter(f"name a class: label={' or '.join(map(repr, classes))}")
        return classes.index(label)

    def _softmax(self, rows: Array, index: int) -> Band:
        """Return probabilities of one class, by the derivative of its log-odds at the released coefficients."""
        scores = rows @ self.release.model.coefficients.T + self.release.model.constants
        others = scores.copy()
        others[:, index] = -np.inf
        derivatives = -softmax(others, axis=1)
        derivatives[:, index] = 1.0
        functions = np.einsum("ik,ij->ikj", derivatives, rows).reshape(len(rows), -1)
        half = self.uncertainty.half_widths(functions, self.level)
        odds = scores[:, index] - np.log(np.sum(np.exp(others), axis=1))
        band = Band(list(range(len(rows))), odds, odds - half, odds + half, self.level, self.kind)
        return _map_band(band, expit)


def _map_band(band: Band, increasing: Any) -> Band:
    """Return the band after an increasing function is applied to its numbers."""
    estimate, lower, upper = (increasing(values) for values in (band.estimate, band.lower, band.upper))
    return dataclasses.replace(band, estimate=estimate, lower=lower, upper=upper)


def _dense(block: Any) -> Array:
    return block if isinstance(block, np.ndarray) else np.asarray(block.toarray())


def bounds_of(model: RegressionModel) -> Bounds:
    """Return the bounds of the one number that the model predicts."""
    lower, upper = model.target_bounds
    if isinstance(lower, tuple) or isinstance(upper, tuple):
        raise InvalidParameter("intervals need a model of one number. This model predicts several.")
    return lower, upper
