"""Centred rows: minus a released mean and divided by a released radius, so that their norm is spent on what varies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privlearn.arrays import Array, margin, square_sums
from privlearn.data.encoding.arrays import INTERCEPT, ArrayEncoder, blocks

if TYPE_CHECKING:
    from privlearn.data.encoding.encoder import SchemaEncoder


class CentredEncoder:
    """Rows encoded by ``base``, minus a mean, divided by the maximum of their norm and a radius; then the constant.

    Parameters
    ----------
    base : SchemaEncoder or ArrayEncoder
        Encodes the raw rows; its constant feature, if it has one, is replaced.
    mean : array of shape (d,)
        Mean of the d features without the constant; released with noise.
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
        """Return the constant feature; 0 if there is none."""
        return math.sqrt(INTERCEPT) * self._factor if self.base.fit_intercept else 0.0

    @property
    def stretch(self) -> float:
        """Return the norm, without the constant, of rows at the radius and beyond."""
        return math.sqrt(1.0 - INTERCEPT) * self._factor if self.base.fit_intercept else self._factor

    def unscale(self, coefficients: Array) -> tuple[Array, Any]:
        """Return coefficients and intercept in the units of X, for rows of arrays within the radius."""
        slopes = coefficients[..., : len(self.mean)] * (self.stretch / self.radius)
        constants = coefficients[..., len(self.mean) :].sum(axis=-1) * self.constant - slopes @ self.mean
        return cast(ArrayEncoder, self.base).per_unit * slopes, constants

    def encode(self, data: Any) -> Array:
        return self.lift(self.base.encode(data))

    def lift(self, rows: Any) -> Array:
        """Return the features of rows that ``base`` has encoded; each row depends only on itself."""
        centred = np.empty((len(rows), self.dimension))
        centred[:, len(self.mean) :] = self.constant
        for part in blocks(len(rows)):
            block = centred[part, : len(self.mean)]
            np.subtract(rows[part, : len(self.mean)], self.mean, out=block)
            block *= (self.stretch / np.maximum(norms(block), self.radius))[:, np.newaxis]
        return centred


def norms(rows: Array) -> Array:
    """Return the norm of each row; its bits depend on that row only."""
    return np.asarray(np.sqrt(square_sums(rows)))


def distances(rows: Array, mean: Array) -> Array:
    """Return the distance of each row from a mean, without the constant feature."""
    parts = [norms(rows[part, : len(mean)] - mean) for part in blocks(len(rows))]
    return np.concatenate([np.zeros(0), *parts])
