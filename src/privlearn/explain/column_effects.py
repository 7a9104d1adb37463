"""Which columns matter to a released model, how, and which of them cannot be told from noise.

Public: reads a release and what was bought beside it, no record. The argument: docs/theory/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.resolution import Pair
from privlearn.data.schema.columns import TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.explain.bands import Band, Intervals, intervals
from privlearn.explain.directions import norm_shift, pair_directions, schema_of
from privlearn.explain.sold import why_not_sold
from privlearn.explain.uncertainty import Kind, Uncertainty, is_likelihood
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature
from privlearn.release.encoders import FourierEncoder, feature_columns
from privlearn.release.model import RegressionModel

_ALLOWANCE = 2.0
"""Both misfits are first guesses: a line through crowded values goes on and leaves the curve that it follows by up to
its range again, and what regularization moves is estimated from coefficients that it has shrunk already."""


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """What one column does to the score.

    Attributes
    ----------
    name : str
    bands : dict of label to Band
        The effect at each value, with an interval each that holds by itself; of two classes, on the second one, and of
        a regression, on the number, under the label ``None``.
    importance, lower, upper : float
        Root of the mean square of the effect over the values, all classes together, with its error bar. All bars of all
        columns and pairs hold at once with the stated probability.
    noise : float
        What errors alone would show on average (root mean square).
    misfit : float
        What a column without effect may show all the same, since rows are divided by their norms, and since
        regularization moves a part of what other columns say into it.
    """

    name: str
    bands: dict[Any, Band]
    importance: float
    lower: float
    upper: float
    noise: float
    misfit: float

    @property
    def above_noise(self) -> bool:
        """Whether it is an effect; with probability ``level`` no column without one passes, of all together."""
        return self.lower > self.misfit


@dataclass(frozen=True, eq=False)
class PairEffect:
    """What two columns do together, beside the sum of what each does.

    Attributes
    ----------
    names : tuple of two str
    values : tuple of two lists
        Of the columns: the middles of bins, or the listed values.
    grids : dict of label to array
        The score's part in each cell; labels as of `ColumnEffect`.
    importance, lower, upper : float
    """

    names: Pair
    values: tuple[list[Any], list[Any]]
    grids: dict[Any, Array]
    importance: float
    lower: float
    upper: float

    @property
    def above_noise(self) -> bool:
        return self.lower > 0.0


@dataclass(frozen=True, eq=False)
class Effects:
    """What `effects` returns: columns and pairs, the most important first."""

    release: Release
    found: Intervals

    @property
    def level(self) -> float:
        return self.found.level

    @cached_property
    def columns(self) -> list[ColumnEffect]:
        """All but texts, which have no curve of values."""
        return _by_importance([self._column(name) for name in self._names])

    @cached_property
    def pairs(self) -> list[PairEffect]:
        return _by_importance([self._pair(pair) for pair in self._pairs])

    @property
    def schema(self) -> Schema:
        return schema_of(self.release.model.encoder)

    @property
    def texts(self) -> list[str]:
        """Columns of text: they have no effect that could be drawn."""
        return [name for name, column in self.schema.columns.items() if isinstance(column, TextColumn)]

    @property
    def above_noise(self) -> list[ColumnEffect | PairEffect]:
        """What can be told from noise."""
        found: list[ColumnEffect | PairEffect] = [*self.columns, *self.pairs]
        return [effect for effect in found if effect.above_noise]

    @property
    def summary(self) -> str:
        """How much was found, in a sentence."""
        columns = sum(effect.above_noise for effect in self.columns)
        pairs = sum(effect.above_noise for effect in self.pairs)
        beside = f", {pairs} of {len(self.pairs)} pairs" if self.pairs else ""
        return f"Above the noise: {columns} of {len(self.columns)} columns{beside}."

    @property
    def drowned(self) -> list[str]:
        """What cannot be told from noise, each with the most that it could be; what has no curve."""
        columns = [
            f"{effect.name}: at most {effect.upper:.2f}" for effect in self.columns if not effect.above_noise
        ]
        pairs = [effect.upper for effect in self.pairs if not effect.above_noise]
        counted = [f"{len(pairs)} pairs of columns: at most {max(pairs):.2f} each"] if pairs else []
        return [*columns, *counted, *(f"{name}: a text, which has no curve" for name in self.texts)]

    @property
    def unit(self) -> str:
        """What the score is measured in."""
        model = self.release.model
        if isinstance(model, RegressionModel):
            target = self.schema.target
            return "units of the target" if target is None else target.name
        return "log-odds" if model.link in ("logistic", "softmax") else "score"

    @property
    def promise(self) -> str:
        """What "above the noise" means, in words."""
        sampling = self.found.uncertainty.covers_sampling
        whose = "noise and sampling" if sampling else "the noise of privacy alone, not sampling"
        without = "without effect" if sampling else "that these records without noise show nothing of"
        wide = " The bars are as wide as any table could need" if self.found.uncertainty.is_bound else ""
        if wide:
            sold = why_not_sold(self.release) is None
            wide += ": a bought curvature narrows them (privlearn curvature)." if sold else "."
        return (
            f"With probability {100 * self.level:g} % all error bars hold at once, and no column or pair {without} "
            f"is shown as above the noise; they cover {whose}.{wide}"
        )

    def __str__(self) -> str:
        lines = [f"{self.summary} Importance with its error bar, in {self.unit}:"]
        width = max(map(len, self._names), default=0)
        for effect in self.columns:
            if effect.above_noise:
                lines.append(f"  {effect.name:<{width}} {_bar(effect)}  {_ends(effect)}")
        lines += [f"  {' x '.join(pair.names)}  {_bar(pair)}" for pair in self.pairs if pair.above_noise]
        told = "; ".join(self.drowned)
        return "\n".join([*lines, *([f"Not above the noise: {told}."] if told else []), self.promise])

    def _repr_html_(self) -> str:
        from privlearn.explain.page import page_part

        return page_part(self)

    def to_html(self) -> str:
        """A page of its own."""
        from privlearn.explain.page import write_page

        return write_page(self)

    def plot(self) -> Any:
        """A matplotlib figure of the importance and of each column that is above the noise."""
        from privlearn.explain.plot import plot

        return plot(self)

    def __iter__(self) -> Iterator[ColumnEffect]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> ColumnEffect:
        return next(effect for effect in self.columns if effect.name == name)

    @property
    def _names(self) -> list[str]:
        return [name for name in self.found.columns if name not in self.texts]

    @property
    def _pairs(self) -> Sequence[Pair]:
        encoder = self.release.model.encoder
        if not isinstance(encoder, SchemaEncoder) or encoder.resolution is None:
            return ()
        return encoder.resolution.pairs_of(encoder.schema)

    @property
    def _each_level(self) -> float:
        """Of one bar, so that all hold at once (Bonferroni)."""
        return 1.0 - (1.0 - self.level) / (len(self._names) + len(self._pairs))

    def _column(self, name: str) -> ColumnEffect:
        values, directions = self.found.effect_directions(name)
        bands = {
            label: self.found.linear(self.found.of_class(directions, label), values)
            for label in self.found.labels
        }
        functions = self._functions(directions)
        noise = self.found.uncertainty.length_deviation(functions) / math.sqrt(len(functions))
        misfit = _ALLOWANCE * (self._norm_misfit(name) + self._leaked(name, functions))
        return ColumnEffect(name, bands, *self._importance(functions), noise, misfit)

    def _pair(self, pair: Pair) -> PairEffect:
        encoder: Any = self.release.model.encoder
        first, second, directions = pair_directions(encoder, pair)
        directions = directions * self.found.unit_width
        coefficients, shape = self.release.model.coefficients.ravel(), (len(first), len(second))
        grids = {
            label: (self.found.of_class(directions, label) @ coefficients).reshape(shape)
            for label in self.found.labels
        }
        return PairEffect(pair, (first, second), grids, *self._importance(self._functions(directions)))

    def _importance(self, functions: Array) -> tuple[float, float, float]:
        """Root mean square over values and classes, and its bar: by the triangle inequality, the error's own length."""
        effect = _root_mean_square(functions @ self.release.model.coefficients.ravel())
        longest = self.found.uncertainty.length_quantile(functions, self._each_level)
        half = longest / math.sqrt(len(functions))
        return effect, max(effect - half, 0.0), effect + half

    def _functions(self, directions: Array) -> Array:
        """Of all classes, one below the other."""
        return np.vstack([self.found.of_class(directions, label) for label in self.found.labels])

    def _norm_misfit(self, name: str) -> float:
        """What an idle column's own coefficients may make up for, of what it does to the others through the norm."""
        model = self.release.model
        if isinstance(model.encoder, FourierEncoder):  # its features are no column's own
            return 0.0
        shifts = norm_shift(model.encoder, name, model.coefficients) * self.found.unit_width
        if shifts.shape[2] > 1:
            shifts = shifts - shifts.mean(axis=2, keepdims=True)
        return float(np.sqrt(np.mean(shifts**2, axis=(0, 2))).max())

    def _leaked(self, name: str, functions: Array) -> float:
        """What an idle column's own coefficients have, since regularization shrinks those of the others."""
        model = self.release.model
        if self.found.uncertainty.curvature is None:
            return 0.0
        others = [name not in columns for columns in feature_columns(model.encoder)]
        kept = np.where(others, model.coefficients, 0.0).ravel()
        return _root_mean_square(self.found.uncertainty.leaked(functions, kept))


def _root_mean_square(values: Array) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _bar(effect: ColumnEffect | PairEffect) -> str:
    return f"{effect.importance:.2f} [{effect.lower:.2f}, {effect.upper:.2f}]"


def _ends(effect: ColumnEffect) -> str:
    """Where it is lowest and highest; of several classes it is said for each."""
    return "; ".join(
        ("" if label is None else f"{label}: ")
        + " to ".join(_at(band, int(place)) for place in (band.estimate.argmin(), band.estimate.argmax()))
        for label, band in effect.bands.items()
    )


def _at(band: Band, place: int) -> str:
    value = band.names[place]
    return f"{band.estimate[place]:+.2f} at {f'{value:.4g}' if isinstance(value, float) else value}"


def _by_importance(found: Sequence[Any]) -> list[Any]:
    """Those above the noise first."""
    return sorted(found, key=lambda effect: (not effect.above_noise, -effect.importance))


def effects(
    release: Release, curvature: Curvature | None = None, *, level: float = 0.95, kind: Kind | None = None
) -> Effects:
    """What each column does to a released model's score, and which columns are above the noise.

    Public: nothing is read but released numbers, so nothing is paid.

    Parameters
    ----------
    release : Release
        Over a schema, by objective or output perturbation; of a refined one, its origin's effects are told.
    curvature : Curvature, optional
        As `privlearn.curvature` bought it for this release: narrower error bars, which cover sampling too.
    level : float, default=0.95
        With which all error bars hold at once.
    kind : {"privacy", "confidence"}, optional
        As for `intervals`; by default confidence with a curvature. Without one, bars are as wide as any table could
        need, for noise and sampling where the model has probabilities, for noise alone where not.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, effects
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> model = PrivateLogisticRegression(epsilon=3.0, delta=1e-6, schema=census_schema(), random_state=0)
    >>> found = effects(model.fit(simulated_census(20_000, 0)).release_)
    >>> found["hours"].above_noise, found["sex"].above_noise
    (True, False)
    """
    schema_of(release.model.encoder)  # refuses plain arrays
    origin = release.origin
    default: Kind = "privacy" if curvature is None else "confidence"
    found = intervals(origin, curvature, level=level, kind=kind or default)
    if kind is None and curvature is None and is_likelihood(origin):
        found = Intervals(origin, Uncertainty(origin, None, "privacy", bounds_sampling=True), level)
    return Effects(origin, found)
