"""Public features of a kernel: landmarks on public points, or random Fourier features; `lift` maps rows into them.

Neither depends on a private row. An estimator is linear over these features, and so are its theorems.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from privlearn.data.datasets import FROM_SCHEMA, uniform_ball, uniform_table
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.parts import require_public
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import DataError, InvalidParameter, did_you_mean, preview
from privlearn.estimators.training_rows import TrainingRows
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import CallableKernel, Kernel, PrecomputedKernel, as_points
from privlearn.features.kernels import LinearKernel, ShiftInvariantKernel, kernel_names
from privlearn.features.landmarks import LandmarkFeatures, UnitLandmarkFeatures
from privlearn.features.map_encoder import MapEncoder
from privlearn.mechanisms.mechanism import ReleaseMechanism, mechanisms_of
from privlearn.release.encoders import FourierEncoder, KernelEncoder, RawEncoder

if TYPE_CHECKING:
    from privlearn.estimators.estimator import PrivateEstimator


PUBLIC_POINTS = "public_points=... (in the shell --public-points FILE)"

_LARGE = 2**26  # features; above it they are kept in float32, half the memory


def lift(estimator: PrivateEstimator, rows: TrainingRows) -> TrainingRows:
    """Return the rows as features of the estimator's kernel; a linear kernel leaves rows as they are."""
    kernel = estimator.select_kernel(cast(RawEncoder | None, rows.encoder))
    if estimator.public_points is not None:
        return _to_landmarks(estimator, kernel, rows)
    if isinstance(kernel, LinearKernel) and rows.encoder is not None:
        return rows
    return _to_fourier(estimator, kernel, rows)


def _to_fourier(estimator: PrivateEstimator, kernel: Kernel, rows: TrainingRows) -> TrainingRows:
    base = cast(RawEncoder | None, rows.encoder)
    if isinstance(kernel, PrecomputedKernel):
        raise InvalidParameter(
            "kernel='precomputed' needs the kernel values among public points. Pass public_points=K, a square matrix, "
            "and to fit the values of each row against those points"
        )
    if not isinstance(kernel, ShiftInvariantKernel):
        raise InvalidParameter(
            f"the kernel {kernel.name!r} needs public points. Pass {PUBLIC_POINTS}, unlabelled points like "
            f"those you will predict; or use one of {', '.join(kernel_names(ShiftInvariantKernel))}"
        )
    if base is None:
        raise InvalidParameter("Fourier features need rows of numbers. Pass schema=... or norm_bound=...")
    features = FourierFeatures(kernel, base.dimension, estimator.fourier_pairs, estimator.fourier_seed).draw()
    lifted = features.transform(in_memory(rows.features), dtype=np.float32, may_be_empty=True)
    return dataclasses.replace(rows, encoder=FourierEncoder(base, features), features=lifted)


KERNEL_SPACE_MECHANISMS = ("function_release", "tddl", "tdil")
"""Mechanisms whose theorems are about the kernel's own space: their landmark rows have its inner products."""


def _to_landmarks(estimator: PrivateEstimator, kernel: Kernel, rows: TrainingRows) -> TrainingRows:
    base = cast(RawEncoder | None, rows.encoder)
    is_simulated = isinstance(estimator.public_points, str)
    if is_simulated:
        projected = _simulate_landmarks(estimator, kernel, base)
    else:
        projected = LandmarkFeatures(kernel, _public_points(estimator.public_points, base, kernel))
    unit = estimator.mechanism not in KERNEL_SPACE_MECHANISMS
    landmarks = UnitLandmarkFeatures(projected) if unit else projected
    # By the public number of records or persons: one person's number of rows must not change the precision for all.
    dtype = np.float32 if rows.total * landmarks.dimension > _LARGE else np.float64
    lifted = landmarks.transform(in_memory(rows.features), dtype=dtype, may_be_empty=True)
    encoder = KernelEncoder(
        base,
        landmarks.kernel,
        landmarks.public_points,
        unit,
        estimator.fourier_seed if is_simulated else None,
    )
    points = np.asarray(landmarks.transform(landmarks.public_points), dtype=np.float64)
    return dataclasses.replace(rows, encoder=encoder, features=lifted, landmarks=landmarks, points=points)


_LANDMARK_COUNTS = (125, 250, 500, 1000)
_EXPLAINED_SHARE = 0.95  # of a point's squared norm, by its projection on the other points


def _simulate_landmarks(
    estimator: PrivateEstimator, kernel: Kernel, base: RawEncoder | None
) -> LandmarkFeatures:
    """Public: return landmarks on simulated points, enough to explain 95 % of each other's norm, at most 1000."""
    if estimator.public_points != FROM_SCHEMA:
        raise InvalidParameter(
            f"public_points must be points, or the word 'schema', not {preview(estimator.public_points)}"
        )
    if base is None:
        raise InvalidParameter(
            "points cannot be simulated for a kernel over objects. Pass public_points=[...]"
        )
    max_count, seed = _LANDMARK_COUNTS[-1], estimator.fourier_seed
    if isinstance(base, SchemaEncoder):
        encoded = base.encode(uniform_table(base.schema, max_count, seed))
    elif isinstance(base, MapEncoder):
        raise InvalidParameter("points cannot be simulated for a feature map. Pass public_points=[...]")
    else:
        encoded = base.encode(uniform_ball(base.n_features, base.clip_bound, max_count, seed))
    for count in _LANDMARK_COUNTS:
        landmarks = LandmarkFeatures(kernel, encoded[:count])
        whole = landmarks.transform(landmarks.public_points)
        if float(np.sum(landmarks.leave_one_out_features() ** 2)) >= _EXPLAINED_SHARE * float(
            np.sum(whole**2)
        ):
            break
    return landmarks


def _public_points(points: Any, base: RawEncoder | None, kernel: Kernel) -> Any:
    """Return public points as the kernel takes them and as a release can hold them."""
    require_public(points, "public_points")
    try:
        if base is not None:
            return base.encode(points)
        return _as_objects(points) if isinstance(kernel, CallableKernel) else as_points(points)
    except DataError as error:
        raise DataError(f"public_points: {error}") from None


def _as_objects(points: Any) -> Any:
    """Return points for a user's kernel function: an array, or a list that JSON can hold."""
    if isinstance(points, str | bytes) or sparse.issparse(points):
        return points
    if isinstance(points, np.ndarray) and points.dtype != object:
        return points
    if isinstance(points, Mapping) or hasattr(points, "columns"):
        raise DataError("a kernel function takes a list of points. For a table pass schema=...")
    objects = list(points)
    try:
        json.dumps(objects, allow_nan=False)
    except (TypeError, ValueError):
        raise DataError(
            "they become part of the release, which holds no Python objects. Give arrays, or lists of texts, numbers, "
            "and lists or dicts of those"
        ) from None
    return objects


def check_mechanism(estimator: PrivateEstimator) -> None:
    """Raise InvalidParameter for an unknown mechanism, or one that does not go with the kernel or the noise."""
    kinds = mechanisms_of(ReleaseMechanism)
    name, names = estimator.mechanism, ("auto", "function_release", *kinds)
    if name not in names:
        answers = (
            ": it answers questions, InteractivePredictor(learner, guarantee, mechanism='pinp', state=...)"
        )
        hint = answers if name == "pinp" else did_you_mean(name, names)
        raise InvalidParameter(f"mechanism must be one of {', '.join(names)}, not {preview(name)}{hint}")
    is_linear = isinstance(estimator.kernel, str) and estimator.kernel == "linear"
    asks_about_the_ball = name in kinds and kinds[name].perturbs == "choices"
    if asks_about_the_ball and estimator.public_points is None and not is_linear:
        raise InvalidParameter(
            f"mechanism={name!r} asks about points of the unit ball, with the linear kernel; "
            f"for another kernel pass a net of points: {PUBLIC_POINTS}"
        )
    if name == "function_release":
        _check_function_release(estimator)


def _check_function_release(estimator: PrivateEstimator) -> None:
    if estimator.public_points is None:
        raise InvalidParameter(
            f"mechanism='function_release' is a release at public points. Pass {PUBLIC_POINTS}"
        )
    if estimator.noise not in ("auto", "gaussian") or estimator.calibration != "tight":
        raise InvalidParameter(
            "mechanism='function_release' has Gaussian noise and the tight calibration. Leave noise and "
            "calibration out, or use mechanism='output'"
        )
    if estimator.delta == 0 and estimator.make_guarantee().is_private:
        raise InvalidParameter("mechanism='function_release' needs delta > 0. Pass delta=1e-6")
