"""Rows moved by a released mean and measured by a released radius: only what varies takes up their norm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privlearn.arrays import Array, margin, square_sums
from privlearn.data.encode.arrays import INTERCEPT, ArrayEncoder, blocks

if TYPE_CHECKING:
    from privlearn.data.encode.encoder import SchemaEncoder


class CentredEncoder:
    """Rows as ``base`` writes them, less a mean, divided by the larger of their norm and a radius; then the constant.

    Parameters
    ----------
    base : SchemaEncoder or ArrayEncoder
        Reads the raw rows; its own constant feature, if it has one, is replaced.
    mean : array
        Of the features without the constant; released with noise.
    radius : float
        About half of the rows are closer to the mean; released with noise.

    Attributes
    ----------
    dimension : int
        Number of features, the same as of ``base``.
    """

    def __init__(self, base: SchemaEncoder | ArrayEncoder, mean: Array, radius: float) -> None:
        self.base = base
        self.mean = mean
        self.radius = radius
        self.dimension = base.dimension
        self._factor = margin(self.dimension)

    @property
    def constant(self) -> float:
        """The constant feature; 0 if there is none."""
        return math.sqrt(INTERCEPT) * self._factor if self.base.fit_intercept else 0.0

    @property
    def stretch(self) -> float:
        """What a row's distance from the mean becomes, at the radius and beyond."""
        return math.sqrt(1.0 - INTERCEPT) * self._factor if self.base.fit_intercept else self._factor

    def unscale(self, coefficients: Array) -> tuple[Array, Any]:
        """Coefficients and intercept in the units of X, for rows of arrays that are no farther than the radius."""
        slopes = coefficients[..., : len(self.mean)] * (self.stretch / self.radius)
        constants = coefficients[..., len(self.mean) :].sum(axis=-1) * self.constant - slopes @ self.mean
        return cast(ArrayEncoder, self.base).per_unit * slopes, constants

    def encode(self, data: Any) -> Array:
        return self.lift(self.base.encode(data))

    def lift(self, rows: Any) -> Array:
        """The features of rows that ``base`` has encoded; each depends on its own row alone."""
        centred = np.empty((len(rows), self.dimension))
        centred[:, len(self.mean) :] = self.constant
        for part in blocks(len(rows)):
            block = centred[part, : len(self.mean)]
            np.subtract(rows[part, : len(self.mean)], self.mean, out=block)
            block *= (self.stretch / np.maximum(norms(block), self.radius))[:, np.newaxis]
        return centred


def norms(rows: Array) -> Array:
    """Of each row; its bits depend on that row alone."""
    return np.asarray(np.sqrt(square_sums(rows)))


def distances(rows: Array, mean: Array) -> Array:
    """Of each row's features from a mean of them, the constant left out."""
    found = [norms(rows[part, : len(mean)] - mean) for part in blocks(len(rows))]
    return np.concatenate([np.zeros(0), *found])
