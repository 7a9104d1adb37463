"""Landmark features of norm 1, centred at a public mean (docs/theory/landmarks.md)."""

from __future__ import annotations

import math
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, Features, margin
from privlearn.data.encoding.arrays import INTERCEPT, norms
from privlearn.features.feature_map import FeatureMap
from privlearn.features.landmarks import LandmarkFeatures

MIN_NORM = 2.0**-10
"""Rows below this norm are multiplied as if they had it: rounding errors stay small, and 0 stays 0."""


class UnitLandmarkFeatures(FeatureMap):
    """(sqrt(0.95) u(u(psi(x)) - mean), sqrt(0.05)): psi of `LandmarkFeatures`, and u(v) = v / max(|v|, 2^-10).

    Noise is calibrated to rows of norm 1. psi(x) is shorter, by the part of x outside the span of the public points,
    and has a part that all rows share; a model learns nothing from either. The mean is that of the leave-one-out
    features of the public points, and a constant feature replaces it. Inner products are no longer the kernel's.

    Parameters
    ----------
    landmarks : LandmarkFeatures

    Attributes
    ----------
    dimension : int
        One more than that of the landmark features.
    mean : array
        Public.

    Examples
    --------
    >>> from privlearn.features import kernel_from_name
    >>> points = [[0.6, 0.8], [1.0, 0.0], [0.0, 0.9]]
    >>> features = UnitLandmarkFeatures(LandmarkFeatures(kernel_from_name("rbf"), points))
    >>> bool(abs(np.linalg.norm(features.transform([[0.3, -0.5]])) - 1) < 1e-9)
    True
    """

    def __init__(self, landmarks: LandmarkFeatures) -> None:
        self.landmarks = landmarks
        self.kernel = landmarks.kernel
        self.public_points = landmarks.public_points
        self.dimension = landmarks.dimension + 1
        self._constant = math.sqrt(INTERCEPT) * margin(self.dimension)
        alone = landmarks.leave_one_out_features()
        self.mean: Array = np.mean(alone * self._stretch(alone), axis=0)

    def kernel_coefficients(self, coefficients: NDArray[np.float64]) -> Array:
        """Return the c with ``<coefficients, features of x> = <c, kernel_features of x>``."""
        coefficients = np.asarray(coefficients, dtype=np.float64)
        directions, constants = coefficients[..., :-1], coefficients[..., -1:]
        of_points = self.landmarks.kernel_coefficients(directions)
        of_mean = -(directions @ self.mean)[..., np.newaxis]
        return np.concatenate([of_points, of_mean, constants * self._constant], axis=-1)

    def kernel_features(self, X: Any) -> Array:
        """Return k_Z(x) and a number for the mean, each scaled like the features of x, and 1.

        Releases store coefficients of these: they belong to the points, while eigenvectors can differ between
        platforms. Norms do not depend on eigenvectors.
        """
        values = self.landmarks.kernel_values(X)
        rows = self.landmarks.of_kernel_values(values)
        first = self._stretch(rows)
        second = math.sqrt(1.0 - INTERCEPT) * self._stretch(rows * first - self.mean)
        return np.hstack([values * (first * second), second, np.ones_like(second)])

    def row_by_row(self) -> Self:
        """Return the same map, computed row by row, as in `LandmarkFeatures`."""
        alone = copy(self)
        alone.landmarks = self.landmarks.row_by_row()
        return alone

    def _fill(self, X: Any, out: Features) -> None:
        rows = self.landmarks.transform(X)
        rows *= self._stretch(rows)
        rows -= self.mean
        out[:, :-1] = math.sqrt(1.0 - INTERCEPT) * self._stretch(rows) * rows
        out[:, -1] = self._constant

    def _stretch(self, rows: Any) -> Array:
        """Return the factor of each row, of shape (n, 1); it depends on that row only."""
        factors: Array = margin(self.dimension) / np.maximum(norms(rows), MIN_NORM)
        return factors[:, np.newaxis]
