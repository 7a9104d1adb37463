"""Kernels in estimators: which features a kernel becomes, and the rows lifted into them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np
from scipy import sparse

from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.resolution import Resolution
from privlearn.data.made_up import FROM_SCHEMA, uniform_ball, uniform_table
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import DataError, InvalidParameter, did_you_mean, shown
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.fitting import Fitting
from privlearn.estimators.goal import TrainingRows
from privlearn.estimators.learner import KernelParameters
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import CallableKernel, Kernel, PrecomputedKernel, as_points
from privlearn.features.kernels import LinearKernel, ShiftInvariantKernel, named_kernels
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.features.unit_landmarks import UnitLandmarkFeatures
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism, mechanisms_of
from privlearn.release.encoders import FourierEncoder, KernelEncoder, RawEncoder


class Lifts(Protocol):
    """The parameters that say which public features a learner's rows become."""

    public_points: Any
    fourier_pairs: int
    fourier_seed: int
    mechanism: str

    def chosen_kernel(self, rows: RawEncoder | None = None) -> Kernel: ...


PUBLIC_POINTS = "public_points=... (in the shell --public-points FILE)"

_LARGE = 2**26  # features; above it they are kept in float32, half the memory


def lift(estimator: Lifts, rows: TrainingRows) -> TrainingRows:
    """What an estimator's kernel parameters mean: landmarks on public points, Fourier features, or nothing."""
    kernel = estimator.chosen_kernel(cast(RawEncoder | None, rows.encoder))
    if estimator.public_points is not None:
        return _to_landmarks(estimator, kernel, rows)
    if isinstance(kernel, LinearKernel) and rows.encoder is not None:
        return rows
    return _to_fourier(estimator, kernel, rows)


def _to_fourier(estimator: Lifts, kernel: Kernel, rows: TrainingRows) -> TrainingRows:
    base = cast(RawEncoder | None, rows.encoder)
    if isinstance(kernel, PrecomputedKernel):
        raise InvalidParameter(
            "kernel='precomputed' needs the kernel values among public points: pass public_points=K, a square matrix, "
            "and to fit the values of each row against those points"
        )
    if not isinstance(kernel, ShiftInvariantKernel):
        raise InvalidParameter(
            f"the kernel {kernel.name!r} needs public points: pass {PUBLIC_POINTS}, unlabelled points like "
            f"those you will predict; or take one of {', '.join(named_kernels(ShiftInvariantKernel))}"
        )
    if base is None:
        raise InvalidParameter("Fourier features need rows of numbers: pass schema=... or norm_bound=...")
    features = FourierFeatures(
        kernel, base.dimension, estimator.fourier_pairs, estimator.fourier_seed
    ).drawn()
    lifted = features.transform(in_memory(rows.features), dtype=np.float32, may_be_empty=True)
    return dataclasses.replace(rows, encoder=FourierEncoder(base, features), features=lifted)


OF_THE_KERNEL = ("function_release", "tddl", "tdil")
"""Mechanisms whose theorems speak of the kernel's own space: their landmark rows have its inner products."""


def _to_landmarks(estimator: Lifts, kernel: Kernel, rows: TrainingRows) -> TrainingRows:
    base = cast(RawEncoder | None, rows.encoder)
    made = isinstance(estimator.public_points, str)
    if made:
        projected = made_landmarks(estimator, kernel, base)
    else:
        projected = LandmarkFeatures(kernel, _public_points(estimator.public_points, base, kernel))
    unit = estimator.mechanism not in OF_THE_KERNEL
    landmarks = UnitLandmarkFeatures(projected) if unit else projected
    # By the public number of records or persons: how many rows a person has must not change everybody's precision.
    dtype = np.float32 if rows.total * landmarks.dimension > _LARGE else np.float64
    lifted = landmarks.transform(in_memory(rows.features), dtype=dtype, may_be_empty=True)
    encoder = KernelEncoder(
        base, landmarks.kernel, landmarks.public_points, unit, estimator.fourier_seed if made else None
    )
    points = np.asarray(landmarks.transform(landmarks.public_points), dtype=np.float64)
    return dataclasses.replace(rows, encoder=encoder, features=lifted, landmarks=landmarks, points=points)


_NUMBERS_MADE = (125, 250, 500, 1000)
_SEEN = 0.95  # of a point's squared norm


def made_landmarks(estimator: Lifts, kernel: Kernel, base: RawEncoder | None) -> LandmarkFeatures:
    """Public: on as many made-up points as see 95 % of each other's squared norm, but at most 1000."""
    if estimator.public_points != FROM_SCHEMA:
        raise InvalidParameter(
            f"public_points must be points, or the word 'schema', not {shown(estimator.public_points)}"
        )
    if base is None:
        raise InvalidParameter(
            "points cannot be made up for a kernel over objects: bring public_points=[...]"
        )
    most, seed = _NUMBERS_MADE[-1], estimator.fourier_seed
    if isinstance(base, SchemaEncoder):
        encoded = base.encode(uniform_table(base.schema, most, seed))
    else:
        encoded = base.encode(uniform_ball(base.n_features, base.clip_bound, most, seed))
    for number in _NUMBERS_MADE:
        landmarks = LandmarkFeatures(kernel, encoded[:number])
        whole = landmarks.transform(landmarks.public_points)
        if float(np.sum(landmarks.seen_by_the_others() ** 2)) >= _SEEN * float(np.sum(whole**2)):
            break
    return landmarks


def _public_points(points: Any, base: RawEncoder | None, kernel: Kernel) -> Any:
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


class KernelChoice(KernelParameters, PrivateLinearModel):
    """A linear model over the public features of a kernel; `PrivateLinearClassifier` lists the parameters."""

    public_points: Any
    fourier_pairs: int
    fourier_seed: int

    def chosen_mechanism(self) -> tuple[str, str]:
        names = ("auto", "function_release", *mechanisms_of(ReleaseMechanism))
        if self.mechanism not in names:
            answers = ": it answers questions, InteractivePredictor(learner, guarantee, mechanism='pinp', state=...)"
            hint = answers if self.mechanism == "pinp" else did_you_mean(self.mechanism, names)
            raise InvalidParameter(
                f"mechanism must be one of {', '.join(names)}, not {shown(self.mechanism)}{hint}"
            )
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        kind = mechanisms_of(ReleaseMechanism).get(self.mechanism)
        asks_the_ball = kind is not None and kind.perturbs == "choices"
        if asks_the_ball and self.public_points is None and not linear:
            raise InvalidParameter(
                f"mechanism={self.mechanism!r} asks about points of the unit ball, with the linear kernel; "
                f"for another kernel pass a net of points: {PUBLIC_POINTS}"
            )
        if self.mechanism != "function_release":
            return super().chosen_mechanism()
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
        if self.delta == 0 and self.promise().is_private:
            raise InvalidParameter("mechanism='function_release' needs delta > 0: pass delta=1e-6")

    def prepare(self, X: Any, y: Any, private: bool) -> Fitting:
        self.chosen_mechanism()  # refuse what cannot be before reading what may be long
        if self._is_precomputed and not self._is_undescribed:
            raise InvalidParameter(
                "kernel='precomputed' takes kernel values as they are: leave out schema, norm_bound and column_bounds"
            )
        return super().prepare(X, y, private)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _takes_objects(self) -> bool:
        return self._is_undescribed and (not isinstance(self.kernel, str) or self._is_precomputed)

    @property
    def _is_undescribed(self) -> bool:
        return self.schema is None and self.norm_bound is None and self.column_bounds is None

    def resolution(self, schema: Schema, records: int, promise: Guarantee | None = None) -> Resolution | None:
        """Public: a kernel sees rows by their distances, which fine bins would make all alike."""
        linear = self.public_points is None and isinstance(self.chosen_kernel(), LinearKernel)
        return super().resolution(schema, records, promise) if linear else None

    def _lift(self, rows: TrainingRows) -> TrainingRows:
        return lift(self, rows)
