"""Which columns matter to a released model, how, and which of them cannot be told from noise.

Public: reads a release and what was bought beside it, no record. The argument: docs/theory/intervals.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.resolution import Pair
from privlearn.data.schema.columns import TextColumn
from privlearn.explain.bands import Band, Intervals, intervals
from privlearn.explain.directions import norm_shift, pair_directions, schema_of
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature
from privlearn.release.model import RegressionModel

_EXTRAPOLATED = 2.0
"""A line through crowded values goes on to the far end: it leaves the curve it follows by up to its range again."""


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
    misfit : float
        What a column without effect may show all the same, since rows are divided by their norm.
    """

    name: str
    bands: dict[Any, Band]
    importance: float
    lower: float
    upper: float
    misfit: float

    @property
    def above_noise(self) -> bool:
        """Whether it is an effect: no column without one passes, all columns together, but with probability 1 - level."""
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
    def texts(self) -> list[str]:
        """Columns of text: they have no effect that could be drawn."""
        schema = schema_of(self.release.model.encoder)
        return [name for name, column in schema.columns.items() if isinstance(column, TextColumn)]

    @property
    def above_noise(self) -> list[ColumnEffect | PairEffect]:
        """What can be told from noise."""
        return [effect for effect in (*self.columns, *self.pairs) if effect.above_noise]

    @property
    def unit(self) -> str:
        """What the score is measured in."""
        model = self.release.model
        if isinstance(model, RegressionModel):
            target = schema_of(model.encoder).target
            return "units of the target" if target is None else target.name
        return "log-odds" if model.link in ("logistic", "softmax") else "score"

    @property
    def promise(self) -> str:
        """What "above the noise" means, in words."""
        whose = (
            "noise and sampling" if self.found.uncertainty.covers_sampling else "the noise of privacy alone"
        )
        wide = (
            " The bars are as wide as any table could need: a bought curvature (privlearn curvature) narrows them."
            if self.found.uncertainty.is_bound
            else ""
        )
        return (
            f"With probability {100 * self.level:g} % all error bars hold at once, and no column or pair without effect is "
            f"shown as above the noise; they cover {whose}.{wide}"
        )

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
        return ColumnEffect(name, bands, *self._importance(directions), self._misfit(name))

    def _pair(self, pair: Pair) -> PairEffect:
        encoder: Any = self.release.model.encoder
        first, second, directions = pair_directions(encoder, pair)
        directions = directions * self.found.unit_width
        coefficients, shape = self.release.model.coefficients.ravel(), (len(first), len(second))
        grids = {
            label: (self.found.of_class(directions, label) @ coefficients).reshape(shape)
            for label in self.found.labels
        }
        return PairEffect(pair, (first, second), grids, *self._importance(directions))

    def _importance(self, directions: Array) -> tuple[float, float, float]:
        """Root mean square over values and classes, and its bar: by the triangle inequality, the error's own length."""
        functions = np.vstack([self.found.of_class(directions, label) for label in self.found.labels])
        root = np.sqrt(len(functions))
        effect = float(np.linalg.norm(functions @ self.release.model.coefficients.ravel()) / root)
        half = self.found.uncertainty.length_quantile(functions, self._each_level) / float(root)
        return effect, max(effect - half, 0.0), effect + half

    def _misfit(self, name: str) -> float:
        """What an idle column's own coefficients may make up for, of what it does to the others through the norm."""
        model = self.release.model
        shifts = norm_shift(model.encoder, name, model.coefficients) * self.found.unit_width
        if shifts.shape[2] > 1:
            shifts = shifts - shifts.mean(axis=2, keepdims=True)
        return _EXTRAPOLATED * float(np.sqrt(np.mean(shifts**2, axis=(0, 2))).max())


def _by_importance(found: Sequence[Any]) -> list[Any]:
    """Those above the noise first."""
    return sorted(found, key=lambda effect: (not effect.above_noise, -effect.importance))


def effects(release: Release, curvature: Curvature | None = None, *, level: float = 0.95) -> Effects:
    """What each column does to a released model's score, and which columns are above the noise.

    Public: nothing is read but released numbers, so nothing is paid.

    Parameters
    ----------
    release : Release
        Over a schema, by objective or output perturbation.
    curvature : Curvature, optional
        As `privlearn.curvature` bought it for this release: narrower error bars, which cover sampling too.
    level : float, default=0.95
        With which all error bars hold at once.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, effects
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> fitted = PrivateLogisticRegression(epsilon=3.0, delta=1e-6, schema=census_schema()).fit(simulated_census(30_000, 0))
    >>> found = effects(fitted.release_)
    >>> found["education"].above_noise
    True
    """
    return Effects(
        release,
        intervals(release, curvature, level=level, kind="privacy" if curvature is None else "confidence"),
    )
