"""`effects`: which columns matter to a released model, how, and which are not above the noise.

Public: uses a release and its private curvature, no record. The argument: docs/theory/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.resolution import Pair
from privlearn.data.schema.columns import TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.explain.bands import Band, Intervals, bounds_of, intervals
from privlearn.explain.directions import norm_shift, pair_directions, schema_of
from privlearn.explain.uncertainty import Kind, Uncertainty, explain_missing_curvature, is_likelihood
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature
from privlearn.release.encoders import FourierEncoder, feature_columns
from privlearn.release.model import RegressionModel

if TYPE_CHECKING:
    import pandas as pd

_ALLOWANCE = 2.0
"""Factor for both misfits, which are rough: a line fitted where values are dense may miss the curve elsewhere by up to
its range, and what regularization moves is estimated from coefficients that are already shrunk."""


_WORDS = "intervals(release).words([...]) has the effects of words"


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """The effect of one column on the score.

    Attributes
    ----------
    name : str
    bands : dict of label to Band
        The effect at each value, with pointwise intervals; for two classes, on the second one, and for a regression,
        on the number, under the label ``None``.
    importance, lower, upper : float
        Root mean square of the effect over the values and classes, with its error bar. The bars of all columns and
        pairs hold at once with the stated probability.
    noise : float
        Root mean square of the errors alone.
    misfit : float
        Bound on what a column without effect may show, since rows are divided by their norms, and since
        regularization moves a part of other columns' effects into it.
    """

    name: str
    bands: dict[Any, Band]
    importance: float
    lower: float
    upper: float
    noise: float
    misfit: float

    @property
    def title(self) -> str:
        """Return the name of the column."""
        return self.name

    @property
    def above_noise(self) -> bool:
        """Return whether the effect is real; with probability ``level`` no column without effect passes."""
        return self.lower > self.misfit


@dataclass(frozen=True, eq=False)
class PairEffect:
    """The joint effect of two columns, in addition to their separate effects.

    Attributes
    ----------
    names : tuple of two str
    values : tuple of two lists
        The middles of bins, or the values of a list, for each column.
    grids : dict of label to array
        The joint effect in each cell; labels as in `ColumnEffect`.
    importance, lower, upper : float
    """

    names: Pair
    values: tuple[list[Any], list[Any]]
    grids: dict[Any, Array]
    importance: float
    lower: float
    upper: float

    @property
    def title(self) -> str:
        """Return the names of both columns."""
        return " x ".join(self.names)

    @property
    def above_noise(self) -> bool:
        """Return whether the effect is real."""
        return self.lower > 0.0


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of columns and pairs, the most important first. Created by `effects`."""

    release: Release
    intervals: Intervals

    @property
    def level(self) -> float:
        """Return the probability with which all error bars hold."""
        return self.intervals.level

    @cached_property
    def columns(self) -> list[ColumnEffect]:
        """Return the effects of all columns except texts, whose words `Intervals.words` has."""
        return _by_importance([self._column(name) for name in self._names])

    @cached_property
    def pairs(self) -> list[PairEffect]:
        """Return the joint effects of pairs of columns."""
        return _by_importance([self._pair(pair) for pair in self._pairs])

    @property
    def schema(self) -> Schema:
        """Return the model's schema."""
        return schema_of(self.release.model.encoder)

    @property
    def texts(self) -> list[str]:
        """Return the columns of text."""
        return [name for name, column in self.schema.columns.items() if isinstance(column, TextColumn)]

    @property
    def above_noise(self) -> list[ColumnEffect | PairEffect]:
        """Return the effects above the noise."""
        both: list[ColumnEffect | PairEffect] = [*self.columns, *self.pairs]
        return [effect for effect in both if effect.above_noise]

    @property
    def summary(self) -> str:
        """Return a sentence with the number of effects above the noise."""
        columns = sum(effect.above_noise for effect in self.columns)
        pairs = sum(effect.above_noise for effect in self.pairs)
        and_pairs = f", {pairs} of {len(self.pairs)} pairs" if self.pairs else ""
        return f"Above the noise: {columns} of {len(self.columns)} columns{and_pairs}."

    @property
    def below_noise(self) -> list[str]:
        """Return a line for each effect that is not above the noise, with its upper bound; and for texts."""
        columns = [self._upper_bound(effect) for effect in self.columns if not effect.above_noise]
        pairs = [effect.upper for effect in self.pairs if not effect.above_noise]
        joint = [f"{len(pairs)} pairs of columns: at most {max(pairs):.2f} each"] if pairs else []
        return [*columns, *joint, *(f"{name}: a text, which has no curve; {_WORDS}" for name in self.texts)]

    def is_informative(self, effect: ColumnEffect | PairEffect) -> bool:
        """Return whether an error bar is shorter than the range between the target's bounds; True for classes."""
        model = self.release.model
        if not isinstance(model, RegressionModel):
            return True
        lower, upper = bounds_of(model)
        return effect.upper < upper - lower

    def _upper_bound(self, effect: ColumnEffect) -> str:
        if not self.is_informative(effect):
            return f"{effect.name}: no information (the noise exceeds the target's range)"
        reason = (
            f" (above 0, but other columns may cause up to {effect.misfit:.2f})" if effect.lower > 0.0 else ""
        )
        return f"{effect.name}: at most {effect.upper:.2f}{reason}"

    def to_frame(self) -> pd.DataFrame:
        """Return every column's effect at each value, with its pointwise interval, as a pandas data frame.

        Columns that are not above the noise are included: their curves and intervals are what the release reveals.
        """
        import pandas as pd

        records = [
            {
                "column": effect.name,
                "class": label,
                "value": name,
                "effect": float(band.estimate[index]),
                "lower": float(band.lower[index]),
                "upper": float(band.upper[index]),
                "importance": effect.importance,
                "above_noise": effect.above_noise,
            }
            for effect in self.columns
            for label, band in effect.bands.items()
            for index, name in enumerate(band.names)
        ]
        return pd.DataFrame(records)

    @property
    def unit(self) -> str:
        """Return the unit of the score."""
        model = self.release.model
        if isinstance(model, RegressionModel):
            target = self.schema.target
            return "units of the target" if target is None else target.name
        return "log-odds" if model.link in ("logistic", "softmax") else "score"

    @property
    def meaning(self) -> str:
        """Return what "above the noise" means, as text."""
        sampling = self.intervals.uncertainty.covers_sampling
        errors = "noise and sampling" if sampling else "the noise of privacy alone, not sampling"
        if self.intervals.uncertainty.bounds_sampling:
            errors += " (sampling if the model's probabilities are right)"
        without = "without effect" if sampling else "that has no effect on these records without noise"
        wide = " The bars hold on every table" if self.intervals.uncertainty.is_bound else ""
        if wide:
            available = explain_missing_curvature(self.release) is None
            wide += ": a private curvature narrows them (privlearn curvature)." if available else "."
        return (
            f"With probability {100 * self.level:g} % all error bars hold at once, and no column or pair {without} "
            f"is shown as above the noise; they cover {errors}.{wide}"
        )

    def __str__(self) -> str:
        has_bars = any(one.above_noise for one in self.columns) or any(one.above_noise for one in self.pairs)
        lines = [
            f"{self.summary} Importance with its error bar, in {self.unit}:" if has_bars else self.summary
        ]
        width = max(map(len, self._names), default=0)
        for effect in self.columns:
            if effect.above_noise:
                lines.append(f"  {effect.name:<{width}} {_bar(effect)}  {_ends(effect)}")
        lines += [f"  {' x '.join(pair.names)}  {_bar(pair)}" for pair in self.pairs if pair.above_noise]
        rest = "; ".join(self.below_noise)
        unit = "" if has_bars else f" (importance, in {self.unit})"
        return "\n".join([*lines, *([f"Not above the noise{unit}: {rest}."] if rest else []), self.meaning])

    def _repr_html_(self) -> str:
        from privlearn.explain.page import page_part

        return page_part(self)

    def to_html(self) -> str:
        """Return the effects as an HTML page."""
        from privlearn.explain.page import write_page

        return write_page(self)

    def plot(self) -> Any:
        """Return a matplotlib figure of the importance and of each column above the noise."""
        from privlearn.explain.plot import plot

        return plot(self)

    def __iter__(self) -> Iterator[ColumnEffect]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> ColumnEffect:
        return next(effect for effect in self.columns if effect.name == name)

    @property
    def _names(self) -> list[str]:
        return [name for name in self.intervals.columns if name not in self.texts]

    @property
    def _pairs(self) -> Sequence[Pair]:
        encoder = self.release.model.encoder
        if not isinstance(encoder, SchemaEncoder) or encoder.resolution.is_centred:
            return ()
        return encoder.resolution.pairs_of(encoder.schema)

    @property
    def _each_level(self) -> float:
        """Return the level of one bar, so that all hold at once (Bonferroni)."""
        return 1.0 - (1.0 - self.level) / (len(self._names) + len(self._pairs))

    def _column(self, name: str) -> ColumnEffect:
        values, directions = self.intervals.effect_directions(name)
        bands = {
            label: self.intervals.linear(self.intervals.of_class(directions, label), values)
            for label in self.intervals.labels
        }
        functions = self._functions(directions)
        noise = self.intervals.uncertainty.length_deviation(functions) / math.sqrt(len(functions))
        misfit = _ALLOWANCE * (self._norm_misfit(name) + self._shrinkage_misfit(name, functions))
        return ColumnEffect(name, bands, *self._importance(functions), noise, misfit)

    def _pair(self, pair: Pair) -> PairEffect:
        encoder: Any = self.release.model.encoder
        first, second, directions = pair_directions(encoder, pair)
        directions = directions * self.intervals.unit_width
        coefficients, shape = self.release.model.coefficients.ravel(), (len(first), len(second))
        grids = {
            label: (self.intervals.of_class(directions, label) @ coefficients).reshape(shape)
            for label in self.intervals.labels
        }
        return PairEffect(pair, (first, second), grids, *self._importance(self._functions(directions)))

    def _importance(self, functions: Array) -> tuple[float, float, float]:
        """Return the root mean square over values and classes, and its bar, by the triangle inequality."""
        effect = _root_mean_square(functions @ self.release.model.coefficients.ravel())
        longest = self.intervals.uncertainty.length_quantile(functions, self._each_level)
        half = longest / math.sqrt(len(functions))
        return effect, max(effect - half, 0.0), effect + half

    def _functions(self, directions: Array) -> Array:
        """Return the functions of all classes, stacked."""
        return np.vstack([self.intervals.of_class(directions, label) for label in self.intervals.labels])

    def _norm_misfit(self, name: str) -> float:
        """Return how far a column without effect changes the scores of others through the rows' norm."""
        model = self.release.model
        if isinstance(model.encoder, FourierEncoder):  # its features belong to no single column
            return 0.0
        shifts = norm_shift(model.encoder, name, model.coefficients) * self.intervals.unit_width
        if shifts.shape[2] > 1:
            shifts = shifts - shifts.mean(axis=2, keepdims=True)
        return float(np.sqrt(np.mean(shifts**2, axis=(0, 2))).max())

    def _shrinkage_misfit(self, name: str, functions: Array) -> float:
        """Return the effect that a column without one gets because regularization shrinks the others."""
        model = self.release.model
        if self.intervals.uncertainty.curvature is None:
            return 0.0
        others = [name not in columns for columns in feature_columns(model.encoder)]
        coefficients = np.where(others, model.coefficients, 0.0).ravel()
        return _root_mean_square(self.intervals.uncertainty.shrinkage(functions, coefficients))


def _root_mean_square(values: Array) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _bar(effect: ColumnEffect | PairEffect) -> str:
    return f"{effect.importance:.2f} [{effect.lower:.2f}, {effect.upper:.2f}]"


def _ends(effect: ColumnEffect) -> str:
    """Return where the effect is lowest and highest, for each class."""
    return "; ".join(
        ("" if label is None else f"{label}: ")
        + " to ".join(_at(band, int(index)) for index in (band.estimate.argmin(), band.estimate.argmax()))
        for label, band in effect.bands.items()
    )


def _at(band: Band, index: int) -> str:
    value = band.names[index]
    return f"{band.estimate[index]:+.2f} at {f'{value:.4g}' if isinstance(value, float) else value}"


def _by_importance(unsorted: Sequence[Any]) -> list[Any]:
    """Return the effects by importance, those above the noise first."""
    return sorted(unsorted, key=lambda effect: (not effect.above_noise, -effect.importance))


def effects(
    release: Release, curvature: Curvature | None = None, *, level: float = 0.95, kind: Kind | None = None
) -> Effects:
    """Return the effect of each column on a released model's score, and which columns are above the noise.

    Public: uses released numbers only, and costs nothing.

    Parameters
    ----------
    release : Release
        Over a schema, by objective or output perturbation; for a refined one, the effects of its origin.
    curvature : Curvature, optional
        The result of `privlearn.curvature` for this release: narrower error bars, which cover sampling too.
    level : float, default=0.95
        Probability with which all error bars hold at once.
    kind : {"privacy", "confidence"}, optional
        As for `intervals`; by default confidence with a curvature. Without one, bars cover the noise on every table,
        and sampling too where the model has probabilities, if these are right.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, effects
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> settings = {"epsilon": 3.0, "delta": 1e-6, "regularization": 5e-4, "random_state": 0}
    >>> model = PrivateLogisticRegression(schema=census_schema(), **settings)
    >>> result = effects(model.fit(simulated_census(20_000, 0)).release_)
    >>> result["hours"].above_noise, result["sex"].above_noise
    (True, False)
    """
    schema_of(release.model.encoder)  # refuses plain arrays
    origin = release.origin
    default: Kind = "privacy" if curvature is None else "confidence"
    bands = intervals(origin, curvature, level=level, kind=kind or default)
    if kind is None and curvature is None and is_likelihood(origin):
        bands = Intervals(origin, Uncertainty(origin, None, "privacy", bounds_sampling=True), level)
    return Effects(origin, bands)
