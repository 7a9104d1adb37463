"""From encoded rows to the public features in which a kernel machine is linear."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter
from privlearn.estimators.inputs import EncodedRows
from privlearn.features import FourierFeatures, Kernel, LandmarkFeatures, kernel_from_name
from privlearn.release.encoders import FourierEncoder, KernelEncoder

Array = NDArray[np.float64]
Rows = TypeVar("Rows", bound=EncodedRows)
Lifted = tuple[Rows, Callable[[Array], Array]]
"""Rows in the space where the model is linear, and how its coefficients are written down in a release."""

_FOURIER = ("rbf", "laplacian", "cauchy")
_LARGE = 2**26  # features; above it they are kept in float32, half the memory


def lift(estimator: Any, rows: Rows) -> Lifted[Rows]:
    """What an estimator's kernel parameters mean: landmarks on public points, Fourier features, or nothing."""
    if estimator.public_points is not None:
        return _to_landmarks(estimator, rows)
    if isinstance(estimator.kernel, str) and estimator.kernel == "linear":
        return rows, lambda coefficients: coefficients
    return _to_fourier(estimator, rows)


def _to_fourier(estimator: Any, rows: Rows) -> Lifted[Rows]:
    kernel, base = _kernel(estimator), rows.encoder
    if kernel.name not in _FOURIER:
        raise InvalidParameter(
            f"the kernel {kernel.name!r} needs public points: pass public_points=..., unlabelled points like "
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
    points = estimator.public_points if base is None else base.encode(estimator.public_points)
    features = LandmarkFeatures(_kernel(estimator), points)
    count = rows.features.shape[0] if hasattr(rows.features, "shape") else len(rows.features)
    dtype = np.float32 if count * features.dimension > _LARGE else np.float64
    lifted = features.transform(rows.features, dtype=dtype)
    encoder = KernelEncoder(base, features.kernel, features.public_points)
    probes: Any = features.transform(points)
    mapped = dataclasses.replace(rows, encoder=encoder, features=lifted, probes=probes)
    return mapped, features.kernel_coefficients


def _kernel(estimator: Any) -> Kernel:
    return kernel_from_name(
        estimator.kernel,
        gamma=estimator.gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        bound=estimator.kernel_bound,
    )
