"""Landmark features: a finite map of norm at most 1 for any kernel, on public points (docs/theory/landmarks.md).

`UnitLandmarkFeatures` have norm 1 and are centred at a public mean.
"""

from __future__ import annotations

import math
from copy import copy, deepcopy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, Features, is_sparse, margin, square_sums
from privlearn.data.encoding.arrays import INTERCEPT, norms
from privlearn.errors import DataError, InvalidParameter
from privlearn.features.feature_map import FeatureMap, block_size, in_equal_blocks, with_whole_groups
from privlearn.features.kernel import Kernel, as_matrix, as_points, row_count
from privlearn.features.kernels import VectorKernel
from privlearn.imports import linalg

# Relative to the largest eigenvalue:
RANK_CUT = 1e-10  # smaller ones are dropped; far above rounding errors, far below any effect on predictions
INDEFINITE = 1e-6  # an eigenvalue this far below 0 is not a rounding error, not even of a kernel in float32
NEAR_CUT = 1.1  # times the cut: rounding moves no eigenvalue that far, for up to about 100,000 points
EXCESS = 0.01  # of |psi|^2 over 1, which rounding near the cut can explain


class LandmarkFeatures(FeatureMap):
    """psi(x) = K_ZZ^(-1/2) k_Z(x) / sqrt(bound), in the coordinates of K_ZZ's eigenvectors.

    If one of two points is public, the inner product of their features is the kernel divided by its bound; otherwise it
    is that of their projections on the span of the public points.

    Parameters
    ----------
    kernel : Kernel
    public_points : array, CSR matrix, or the sequence that the kernel takes
        The points Z. They are part of every release, so they must not be, or depend on, private records.
        For a precomputed kernel, the square matrix of their kernel values.

    Attributes
    ----------
    dimension : int
        The numerical rank of K_ZZ: (nearly) repeated points add nothing.
    possible_ranks : range
        The dimensions that are possible on other machines, which round differently.
    public_points
        As given, copied.

    Examples
    --------
    >>> from privlearn.features import kernel_from_name
    >>> features = LandmarkFeatures(kernel_from_name("polynomial"), public_points=[[0.6, 0.8], [1.0, 0.0]])
    >>> psi = features.transform([[0.6, 0.8], [0.0, -0.5]])
    >>> round(8 * float(psi[0] @ psi[1]), 6), round((1 - 0.4) ** 3, 6)
    (0.216, 0.216)
    """

    def __init__(self, kernel: Kernel, public_points: Any) -> None:
        self.kernel = kernel
        self.public_points = deepcopy(public_points)
        kernel.check(self.public_points)
        eigenvalues, eigenvectors, possible = _spectrum(kernel(self.public_points, self.public_points))
        self.dimension = len(eigenvalues)
        self.possible_ranks = possible
        self._whitening: Array = eigenvectors / np.sqrt(eigenvalues * kernel.bound)
        self._multiplies = isinstance(kernel, VectorKernel) and not is_sparse(self.public_points)
        self._padded_whitening = with_whole_groups(self._whitening)
        self._points = self.public_points
        if self._multiplies:
            self._points = with_whole_groups(as_matrix(as_points(self.public_points)).T).T

    def kernel_coefficients(self, coefficients: NDArray[np.float64]) -> Array:
        """Return the c with ``<coefficients, psi(x)> = sum_j c_j k(z_j, x)``.

        Releases store these: they belong to the points, while eigenvectors can differ between platforms.
        """
        return np.asarray(np.asarray(coefficients, dtype=np.float64) @ self._whitening.T)

    def of_kernel_values(self, values: Array) -> Array:
        """Return psi(x) for rows k_Z(x); rounding may leave norms slightly above 1."""
        return in_equal_blocks(lambda block: block @ self._padded_whitening, values, self._block_size)[
            :, : self.dimension
        ]

    def kernel_values(self, X: Any) -> Array:
        """Return k_Z(x) for each point."""
        size = self._block_size if self.kernel.is_row_local else 1
        values = in_equal_blocks(self.kernel.towards(self._points), X, size)
        return values[:, : row_count(self.public_points)]

    @cached_property
    def _block_size(self) -> int:
        # Products with sparse points are computed row by row.
        return block_size(
            [self._points.T, self._padded_whitening] if self._multiplies else [self._padded_whitening]
        )

    def row_by_row(self) -> Self:
        """Return the same map up to rounding, computed row by row, which is faster for a single point.

        For points of queries only: rows of a private table are always computed in equal blocks.
        """
        alone = copy(self)
        alone._block_size = 1
        return alone

    def leave_one_out_features(self) -> Array:
        """Return psi of each public point as if it were not one of the public points, one row per point.

        As a public point, z_j has psi = K^(1/2) e_j / sqrt(bound), of norm 1 for most kernels, unlike a new point. The
        part of it that is orthogonal to the other points is K^(-1/2) e_j / (K^-1)_jj, up to the same factor, and is
        subtracted. A ridge at the cut makes K invertible if points repeat.
        """
        gram = self.kernel(self.public_points, self.public_points)
        gram = gram / 2.0 + gram.T / 2.0
        eigenvalues, eigenvectors = linalg.eigh(gram)
        inverse = 1.0 / (np.maximum(eigenvalues, 0.0) + RANK_CUT * eigenvalues[-1])
        own = (eigenvectors * inverse) @ eigenvectors.T
        return self.of_kernel_values(gram - (own / np.diagonal(own)[:, np.newaxis]) @ gram)

    def _fill(self, X: Any, out: Features) -> None:
        self.kernel.check(X)
        features = self.of_kernel_values(self.kernel_values(X))
        squares = square_sums(features)
        if not np.all(squares <= 1.0 + EXCESS):
            raise DataError(
                f"the kernel {self.kernel.name!r} contradicts its bound at some points. It must be positive "
                "semidefinite, with k(x, x) at most its bound."
            )
        out[:] = features


def _spectrum(gram: Array) -> tuple[Array, Array, range]:
    """Return eigenvalues above the cut, in descending order, their eigenvectors, and the ranks on other machines.

    Dropping the others only shortens psi. Negative eigenvalues show how inexact the matrix is, and eigenvalues that are
    not clearly larger than that are dropped too.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(gram / 2.0 + gram.T / 2.0)
    minimum, maximum = float(eigenvalues[0]), float(eigenvalues[-1])
    if maximum <= 0.0 or minimum < -INDEFINITE * maximum or not _is_symmetric(gram, maximum):
        raise InvalidParameter(
            "the kernel of the public points is not a symmetric, positive semidefinite matrix other than 0. "
            "Check the kernel, or pass other points."
        )
    cut = max(RANK_CUT * maximum, -2.0 * minimum)
    retained = np.flatnonzero(eigenvalues > cut)[::-1]
    min_rank, max_rank = (int(np.sum(eigenvalues > factor * cut)) for factor in (NEAR_CUT, 1.0 / NEAR_CUT))
    return eigenvalues[retained], eigenvectors[:, retained], range(min_rank, max_rank + 1)


def _is_symmetric(gram: Array, scale: float) -> bool:
    return bool(np.max(np.abs(gram - gram.T)) <= INDEFINITE * scale)


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
