"""Landmark features: a finite map, of norm at most 1, for any kernel, on public points (docs/theory/landmarks.md)."""

from __future__ import annotations

from copy import copy, deepcopy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, Features, is_sparse, square_sums
from privlearn.errors import DataError, InvalidParameter
from privlearn.features.equal_blocks import block_size, in_equal_blocks, with_whole_groups
from privlearn.features.feature_map import FeatureMap
from privlearn.features.kernel import Kernel, as_matrix, as_points, row_count
from privlearn.features.kernels import VectorKernel
from privlearn.heavy import linalg

# Relative to the largest eigenvalue:
RANK_CUT = 1e-10  # smaller ones are dropped; far above rounding, far below what a prediction can show
INDEFINITE = 1e-6  # what lies this far below 0 is no rounding error, not even of a kernel in float32
EXCESS = 0.01  # of |psi|^2 over 1: as much as rounding near the cut can explain


class LandmarkFeatures(FeatureMap):
    """psi(x) = K_ZZ^(-1/2) k_Z(x) / sqrt(bound), in the coordinates of K_ZZ's eigenvectors.

    Inner products of features are the kernel's, divided by its bound, wherever one of the two points is a public
    point, and those of the projections on the span of the public points elsewhere.

    Parameters
    ----------
    kernel : Kernel
    public_points : array, CSR matrix, or the sequence that the kernel takes
        The points Z: they are part of every release, so no private record may be among them, nor anything computed
        from private records. For a precomputed kernel, the square matrix of their kernel values.

    Attributes
    ----------
    dimension : int
        The numerical rank of K_ZZ: repeated and nearly repeated points add nothing.
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
        eigenvalues, eigenvectors = _spectrum(kernel(self.public_points, self.public_points))
        self.dimension = len(eigenvalues)
        self._whitening: Array = eigenvectors / np.sqrt(eigenvalues * kernel.bound)
        self._multiplies = isinstance(kernel, VectorKernel) and not is_sparse(self.public_points)
        self._wide = with_whole_groups(self._whitening)
        self._points = self.public_points
        if self._multiplies:
            self._points = with_whole_groups(as_matrix(as_points(self.public_points)).T).T

    def kernel_coefficients(self, coefficients: NDArray[np.float64]) -> Array:
        """The c with ``<coefficients, psi(x)> = sum_j c_j k(z_j, x)``.

        A release should keep these: they belong to the points, while eigenvectors can differ between platforms.
        """
        return np.asarray(np.asarray(coefficients, dtype=np.float64) @ self._whitening.T)

    def of_kernel_values(self, values: Array) -> Array:
        """psi(x) of the rows k_Z(x), as it comes out: rounding may leave it a little longer than 1."""
        return in_equal_blocks(lambda block: block @ self._wide, values, self._together)[:, : self.dimension]

    def kernel_values(self, X: Any) -> Array:
        """k_Z(x) of each point."""
        values = in_equal_blocks(self.kernel.towards(self._points), X, self._together)
        return values[:, : row_count(self.public_points)]

    @cached_property
    def _together(self) -> int:
        # Products with sparse points are made row by row, and what a user's kernel does is the user's.
        return block_size([self._points.T, self._wide] if self._multiplies else [self._wide])

    def one_by_one(self) -> Self:
        """The same features to within rounding, of each row by itself: quicker for one.

        For points that somebody asks about. Rows of a private table are computed in one way, however many they are.
        """
        alone = copy(self)
        alone._together = 1
        return alone

    def seen_by_the_others(self) -> Array:
        """psi of each public point as if that point were not among them, one row per point.

        Within the span of all of them z_j has psi = K^(1/2) e_j / sqrt(bound), of norm 1 for most kernels, whatever a
        new point would have. What the others do not see of it is the multiple of K^(-1/2) e_j that is orthogonal to
        them, (K^-1)_jj to divide by. A ridge at the cut stands for K^-1 where points repeat.
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
                f"the kernel {self.kernel.name!r} contradicts its bound at some points: it must be positive "
                "semidefinite, with k(x, x) at most its bound"
            )
        out[:] = features


def _spectrum(gram: Array) -> tuple[Array, Array]:
    """Eigenvalues above the cut, largest first, and their eigenvectors.

    Dropping the others only shortens psi. Eigenvalues below 0 tell how inexact the matrix is, and what is not
    clearly larger is dropped too.
    """
    eigenvalues, eigenvectors = linalg.eigh(gram / 2.0 + gram.T / 2.0)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if largest <= 0.0 or smallest < -INDEFINITE * largest or not _is_symmetric(gram, largest):
        raise InvalidParameter(
            "the kernel of the public points is not a symmetric, positive semidefinite matrix other than 0: "
            "check the kernel, or give other points"
        )
    kept = np.flatnonzero(eigenvalues > max(RANK_CUT * largest, -2.0 * smallest))[::-1]
    return eigenvalues[kept], eigenvectors[:, kept]


def _is_symmetric(gram: Array, scale: float) -> bool:
    return bool(np.max(np.abs(gram - gram.T)) <= INDEFINITE * scale)
