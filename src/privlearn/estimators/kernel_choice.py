"""Kernels in estimators: which features a kernel becomes, and the rows lifted into them."""

from __future__ import annotations

import dataclasses
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from privlearn.arrays import Array
from privlearn.errors import DataError, InvalidParameter, shown
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.inputs import EncodedRows
from privlearn.features import FourierFeatures, Kernel, LandmarkFeatures, kernel_from_name
from privlearn.features.kernel import CallableKernel, PrecomputedKernel, as_points
from privlearn.features.kernels import LinearKernel
from privlearn.mechanisms import ReleaseMechanism, mechanisms_of
from privlearn.release.encoders import FourierEncoder, KernelEncoder

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
    lifted = features.transform(rows.features, dtype=np.float32, may_be_empty=True)
    encoder = FourierEncoder(base, features)  # type: ignore[arg-type]
    return dataclasses.replace(rows, encoder=encoder, features=lifted), lambda coefficients: coefficients


def _to_landmarks(estimator: Any, rows: Rows) -> Lifted[Rows]:
    base: Any = rows.encoder
    kernel = _kernel(estimator)
    points = _public_points(estimator.public_points, base, kernel)
    features = LandmarkFeatures(kernel, points)
    # By the public number of records or persons: how many rows a person has must not change everybody's precision.
    dtype = np.float32 if rows.total * features.dimension > _LARGE else np.float64
    lifted = features.transform(rows.features, dtype=dtype, may_be_empty=True)
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


class KernelChoice(PrivateLinearModel):
    """A linear model over the public features of a kernel; `PrivateSVC` lists the parameters."""

    @abstractmethod
    def _read_objects(self, X: Any, y: Any, private: bool) -> Any:
        """Rows that only the user's kernel can read."""

    def _chosen_mechanism(self) -> tuple[str, str]:
        names = ("auto", "function_release", *mechanisms_of(ReleaseMechanism))
        if self.mechanism not in names:
            raise InvalidParameter(
                f"mechanism must be one of {', '.join(names)}, not {shown(self.mechanism)}; "
                "'pinp' answers questions: InteractivePredictor(learner, guarantee, mechanism='pinp', state=...)"
            )
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        if self.mechanism == "tdil" and self.public_points is None and not linear:
            raise InvalidParameter(
                "mechanism='tdil' asks about points of the unit ball, with the linear kernel; "
                f"for another kernel pass a net of points: {PUBLIC_POINTS}"
            )
        if self.mechanism != "function_release":
            return super()._chosen_mechanism()
        self._check_function_release()
        return "output", "gaussian"

    def _check_function_release(self) -> None:
        if self.public_points is None:
            raise InvalidParameter(
                f"mechanism='function_release' is a release at public points: pass {PUBLIC_POINTS}"
            )
        if self.noise not in ("auto", "gaussian") or self.calibration != "tight":
            raise InvalidParameter(
                "mechanism='function_release' has Gaussian noise and the tight calibration: leave noise and "
                "calibration out, or take mechanism='output'"
            )
        if self.delta == 0 and math.isfinite(self.epsilon):
            raise InvalidParameter("mechanism='function_release' needs delta > 0: pass delta=1e-6")

    def _read(self, X: Any, y: Any, private: bool) -> Any:
        self._chosen_mechanism()  # refuse what cannot be before reading what may be long
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        if precomputed and not (self.schema is None and self.norm_bound is None):
            raise InvalidParameter(
                "kernel='precomputed' takes kernel values as they are: leave out schema and norm_bound"
            )
        if self.schema is None and self.norm_bound is None and self._takes_objects:
            return self._read_objects(X, y, private)
        return super()._read(X, y, private)

    @property
    def _takes_objects(self) -> bool:
        return not isinstance(self.kernel, str) or self.kernel == "precomputed"

    def _lift(self, rows: Any) -> tuple[Any, Callable[[Array], Array]]:
        return lift(self, rows)
