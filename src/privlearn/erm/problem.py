"""What is minimised and what comes back: plain values, checked once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privlearn.erm.losses import Array, Loss
from privlearn.errors import InvalidParameter, shown

Features = Any
"""A dense float64 or float32 array, or a scipy CSR matrix or array of those."""

Progress = Callable[[int, float], None]
"""Called with the number of iterations so far and the certified gradient norm (or duality gap) reached."""


@dataclass(frozen=True, eq=False)
class Problem:
    """``J(w) = (1/N) sum_i weight_i loss(sign_i <w, x_i> - offset_i) + (Lambda/2) |w|^2 + <linear, w>``.

    There is no intercept: it is one more bounded feature, regularised like the others.

    Parameters
    ----------
    features : array or CSR matrix of shape (n, d)
        Rows of Euclidean norm at most ``norm_bound``; float64 or float32.
    signs : array of shape (n,)
        +1 or -1.
    loss : Loss
    regularization : float
        Lambda above 0; it makes the minimiser unique.
    total : int
        N, the public number of records; an empty or deleted record still counts.
    row_weights : array of shape (n,), optional
        Non-negative (weights of classes or persons); ones by default.
    linear : array of shape (d,), optional
        The perturbation of objective perturbation, already divided by N; zero by default.
    norm_bound : float, default=1.0
        R, public.
    offsets : array of shape (n,), optional
        What regression subtracts, so that the loss sees residuals; zero by default.
    """

    features: Features
    signs: NDArray[Any]
    loss: Loss
    regularization: float
    total: int
    row_weights: Array | None = None
    linear: Array | None = None
    norm_bound: float = 1.0
    offsets: Array | None = None

    def __post_init__(self) -> None:
        check_features(self.features)
        check_scalars(self.regularization, self.total, self.norm_bound)
        rows, columns = self.features.shape
        check_signs(self.signs, rows)
        check_row_weights(self.row_weights, rows)
        if self.linear is not None:
            check_vector("linear", self.linear, columns)
        if self.offsets is not None:
            check_vector("offsets", self.offsets, rows)


@dataclass(frozen=True, eq=False)
class Solution:
    """A point and the proof of how near the minimiser it is.

    Attributes
    ----------
    coefficients : array
    gradient_norm : float
        Upper bound on the norm of the exact gradient there, rounding errors included. For the hinge,
        which has no gradient, ``regularization * distance``.
    distance : float
        Upper bound on the distance to the exact minimiser.
    iterations : int
    """

    coefficients: Array
    gradient_norm: float
    distance: float
    iterations: int


def check_features(features: Features) -> None:
    """Refuse what the solvers cannot read without a copy."""
    if sparse.issparse(features):
        if cast(Any, features).format != "csr":
            raise InvalidParameter("sparse features must be in CSR format: call .tocsr() first")
    elif not isinstance(features, np.ndarray):
        raise InvalidParameter("features must be a numpy array or a scipy CSR matrix")
    if features.ndim != 2 or features.shape[1] == 0:
        raise InvalidParameter("features must have two dimensions and at least one column")
    if features.dtype not in (np.float64, np.float32):
        raise InvalidParameter("features must be float64 or float32: call .astype(numpy.float64) first")


def check_scalars(regularization: float, total: int, norm_bound: float) -> None:
    """The three public numbers must be finite and positive."""
    given = {"regularization": regularization, "total": total, "norm_bound": norm_bound}
    for name, value in given.items():
        if not 0 < value < math.inf:
            raise InvalidParameter(f"{name} must be a finite number above 0, not {shown(value)}")


def check_tolerance(tolerance: float) -> None:
    """The gradient norm asked for must be finite and positive."""
    if not 0 < tolerance < math.inf:
        raise InvalidParameter(f"tolerance must be a finite number above 0, not {shown(tolerance)}")


def check_signs(signs: NDArray[Any], rows: int) -> None:
    """One sign for each row."""
    check_vector("signs", signs, rows)
    if not np.all(np.abs(signs) == 1):
        raise InvalidParameter("signs must be +1 or -1: map the two classes to them")


def check_row_weights(row_weights: Array | None, rows: int) -> None:
    """Weights keep the objective convex only if none is negative."""
    if row_weights is None:
        return
    check_vector("row_weights", row_weights, rows)
    if np.any(row_weights < 0):
        raise InvalidParameter("row_weights must not be negative")


def check_vector(name: str, vector: NDArray[Any], length: int) -> None:
    """A finite number for each row or column."""
    if vector.shape != (length,):
        raise InvalidParameter(f"{name} must have shape ({length},), not {vector.shape}")
    if not np.all(np.isfinite(vector)):
        raise InvalidParameter(f"{name} must be finite")
