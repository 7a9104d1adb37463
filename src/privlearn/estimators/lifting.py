"""From encoded rows to the public features in which a kernel machine is linear."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.inputs import EncodedRows
from privlearn.features import FourierFeatures, Kernel, LandmarkFeatures, kernel_from_name
from privlearn.features.kernel import CallableKernel, PrecomputedKernel
from privlearn.features.points import as_points
from privlearn.features.vector_kernels import LinearKernel
from privlearn.release.encoders import FourierEncoder, KernelEncoder

Array = NDArray[np.float64]
Rows = TypeVar("Rows", bound=EncodedRows)
Lifted = tuple[Rows, Callable[[Array], Array]]
"""Rows in the space where the model is linear, and how its coefficients are written down in a release."""

PUBLIC_POINTS = "public_points=... (in the shell --public-points FILE)"

_FOURIER = ("rbf", "laplacian", "cauchy")
_LARGE = 2**26  # features; above it they are kept in float32, half the memory


def lift(estimator: Any, rows: Rows) -> Lifted[Rows]:
    """What an estimator's kernel parameters mean: landmarks on public points, Fourier features, or nothing."""
    if estimator.public_points is not None:
        return _to_landmarks(estimator, rows)
    kernel = _kernel(estimator)
    if isinstance(kernel, LinearKernel) and rows.encoder is not None:
        return rows, lambda coefficients: coefficients
    return _to_fourier(estimator, kernel, rows)


def _to_fourier(estimator: Any, kernel: Kernel, rows: Rows) -> Lifted[Rows]:
    base = rows.encoder
    if isinstance(kernel, PrecomputedKernel):
        raise InvalidParameter(
            "kernel='precomputed' needs the kernel values among public points: pass public_points=K, a square matrix, "
            "and to fit the values of each row against those points"
        )
    if kernel.name not in _FOURIER:
        raise InvalidParameter(
            f"the kernel {kernel.name!r} needs public points: pass {PUBLIC_POINTS}, unlabelled points like "
            f"those you will predict; or take one of {', '.join(_FOURIER)}"
        )
    if base is None:
        raise InvalidParameter("Fourier features need rows of numbers: pass schema=... or norm_bound=...")
    features = FourierFeatures(kernel, base.dimension, estimator.fourier_pairs, estimator.fourier_seed)
    lifted = features.transform(rows.features, dtype=np.float32)
    encoder = FourierEncoder(base, features)  # type: ignore[arg-type]
    return dataclasses.replace(rows, encoder=encoder, features=lifted), lambda coefficients: coefficients


def _to_landmarks(estimator: Any, rows: Rows) -> Lifted[Rows]:
    base: Any = rows.encoder
    kernel = _kernel(estimator)
    points = _public_points(estimator.public_points, base, kernel)
    features = LandmarkFeatures(kernel, points)
    # By the public number of records or persons: how many rows a person has must not change everybody's precision.
    dtype = np.float32 if rows.total * features.dimension > _LARGE else np.float64
    lifted = features.transform(rows.features, dtype=dtype)
    encoder = KernelEncoder(base, features.kernel, features.public_points)
    probes: Any = features.transform(points)
    mapped = dataclasses.replace(rows, encoder=encoder, features=lifted, probes=probes)
    return mapped, features.kernel_coefficients


def _public_points(points: Any, base: Any, kernel: Kernel) -> Any:
    """As the kernel takes them, and as a release can hold them."""
    try:
        if base is not None:
            return base.encode(points)
        return _as_objects(points) if isinstance(kernel, CallableKernel) else as_points(points)
    except DataError as error:
        raise DataError(f"public_points: {error}") from None


def _as_objects(points: Any) -> Any:
    """Points for a kernel of the user's own: an array, or a list that JSON can hold."""
    if isinstance(points, str | bytes) or sparse.issparse(points):
        return points
    if isinstance(points, np.ndarray) and points.dtype != object:
        return points
    if isinstance(points, Mapping) or hasattr(points, "columns"):
        raise DataError("a kernel of your own takes a list of points, or pass schema=... for a table")
    listed = list(points)
    try:
        json.dumps(listed, allow_nan=False)
    except (TypeError, ValueError):
        raise DataError(
            "they become part of the release, which holds no Python objects: give arrays, or lists of texts, numbers, "
            "and lists or dicts of those"
        ) from None
    return listed


def _kernel(estimator: Any) -> Kernel:
    return kernel_from_name(
        estimator.kernel,
        gamma=estimator.gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        bound=estimator.kernel_bound,
    )
