"""`KernelMachine`: the records that a `KernelLearner` has read and the functions fitted on them, as a frozen value.

Sessions answer from it. Records and points are encoded rows, objects, or features on public points cut to a grid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import blocks, bounded_array
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.parts import Part
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.table import safely
from privlearn.errors import InvalidParameter, SessionError
from privlearn.estimators.kernel_fit import (
    exact_functions,
    exact_kernel_task,
    landmark_kernel_task,
    landmark_task,
)
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.reading import check_array_shape
from privlearn.estimators.training_rows import TrainingRows
from privlearn.features.kernel import Kernel, as_matrix
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.features.objects import canonical, list_objects, object_to_bytes
from privlearn.guarantee import Relation, get_relation
from privlearn.mechanisms.session.task import KernelTask, refuse_private_count
from privlearn.mechanisms.task import Task
from privlearn.release.encoders import Encoder, describe_encoding

GRID_BITS = 20


def read_objects(data: Any, key: Callable[[Any], Any] | None) -> list[Any]:
    """Return each object, or its key, in canonical form."""
    objects = list_objects(data)
    if key is not None:
        objects = safely(lambda: [key(each) for each in objects], "key= failed. Try it on made-up points")
    return [canonical(each) for each in objects]


@dataclass(frozen=True, eq=False)
class PointReader:
    """A reader of points: as the records were read, before landmarks.

    Parameters
    ----------
    encoder : Encoder or None
        ``None`` for objects that only the kernel can read.
    key : callable, optional
        Maps such objects to a form that can be serialized.
    from_arrays : bool
        Whether the encoder is for plain arrays rather than the user's schema.
    fit_intercept : bool
        Whether the encoder adds a constant feature.
    """

    encoder: Encoder | None
    key: Callable[[Any], Any] | None
    from_arrays: bool
    fit_intercept: bool

    def read(self, data: Any) -> Any:
        """Return the rows of an array or table encoded, or a list of objects."""
        if self.encoder is None:
            return read_objects(data, self.key)
        if self.from_arrays:
            check_array_shape(data)
            if isinstance(self.encoder, SchemaEncoder):
                data = bounded_array(data, self.encoder.schema)
        return as_matrix(self.encoder.encode(data))


def digest_of(features: Array | list[Any], *others: Array | None) -> str:
    """PRIVATE: return a digest of encoded rows or objects and the arrays that belong to them."""
    digest = sha256(b"".join(b"" if other is None else other.tobytes() for other in others))
    for part in blocks(len(features)):
        some = features[part]
        digest.update(object_to_bytes(some) if isinstance(some, list) else some.tobytes())
    return digest.hexdigest()


class SessionLandmarks:
    """Landmark features of records and points, cut to a grid of 2^-20: the space in which a session is linear.

    Cutting shortens, so no row is longer than 1; inner products of such rows are exact in float64; and the last bits of
    another machine's arithmetic do not make another point. docs/theory/function-release.md, "More records", has the
    argument.

    Parameters
    ----------
    kernel : Kernel
    public_points : array, or list of objects
        Encoded as the records are.
    """

    def __init__(self, kernel: Kernel, public_points: Any) -> None:
        self._features = LandmarkFeatures(kernel, public_points)
        self._points = len(public_points)

    @property
    def dimension(self) -> int:
        return self._features.dimension

    def describe(self) -> dict[str, Any]:
        """Public: return the entries for the certificate."""
        return {"landmarks": self._features.kernel.to_dict(), "public_points": self._points}

    def of_records(self, rows: Any) -> Array:
        """Return the features of a table, which may have no rows: their number may be private."""
        return _to_grid(np.asarray(self._features.transform(rows, may_be_empty=True)))

    def of_points(self, points: Any) -> Array:
        """Return the features of at least one point; their bits do not depend on the other points of the query."""
        return _to_grid(np.asarray(self._features.transform(points)))


def _to_grid(features: Array) -> Array:
    return np.asarray(np.ldexp(np.trunc(np.ldexp(features, GRID_BITS)), -GRID_BITS))


@dataclass(frozen=True, eq=False, repr=False)
class KernelMachine:
    """PRIVATE: records, their functions and all public properties that a session needs, never changed.

    A learner that reads other records, or gets other parameters, creates another machine. So a session answers from
    the records whose cost was charged, and its certificate states the number of records as private as it was when the
    records were read.

    Parameters
    ----------
    rows : TrainingRows
        Encoded, or features on landmarks, or objects; with the total that the guarantee's relation makes public.
    records_schema : Schema, optional
        Public: the schema that the records were read by.
    records_part : Part, optional
        Public: the part of a split that the records are.
    relation : Relation
        Public: the neighbouring relation that the records were read for.
    task : Task
        Public: what mechanisms are calibrated by.
    kernel : Kernel
        Public: of encoded points; linear on landmarks.
    reader : PointReader
        Public: reads points as the records were read.
    landmarks : SessionLandmarks, optional
        Public.
    function : array of shape (functions, centres), optional
        The coefficients at the centres; ``None`` before `solve`.
    """

    rows: TrainingRows
    records_schema: Schema | None
    records_part: Part | None
    relation: Relation
    task: Task
    kernel: Kernel
    reader: PointReader
    landmarks: SessionLandmarks | None
    function: Array | None = None

    @property
    def takes_objects(self) -> bool:
        """Public: return whether records and points are objects that only the kernel can read."""
        return self.reader.encoder is None

    @property
    def keeps_objects(self) -> bool:
        """Public: return whether encoded points are objects; on landmarks they are features."""
        return isinstance(self._centres, list)

    def kernel_task(self, neighbours: str) -> KernelTask:
        """Public: return the number of records, regularization, loss and the solver's certified distance."""
        if self.landmarks is None:
            refuse_private_count(get_relation(neighbours))
        self._check_count_is_as_private(neighbours)
        task = dataclasses.replace(self.task, neighbours=neighbours)
        if self.landmarks is not None:
            return landmark_kernel_task(task, self.landmarks.dimension)
        return exact_kernel_task(task, self.kernel, self.rows.dimension)

    def _check_count_is_as_private(self, neighbours: str) -> None:
        """Refuse a session whose relation publishes the number of records where the task has an expected one, or
        keeps it private where the task states it."""
        if get_relation(neighbours).count_is_public != self.relation.count_is_public:
            raise InvalidParameter(
                f"the session's guarantee has neighbours={neighbours!r}, but the learner read its records for "
                f"{self.relation.name!r}, where the number of records is "
                f"{'public' if self.relation.count_is_public else 'private'}. Pass the session's guarantee to the "
                "learner before it reads: KernelLearner(epsilon=..., delta=..., neighbours=..., expected_records=...)"
            )

    def describe(self) -> dict[str, Any]:
        """Public: return encoding, kernel, and labels or bounds of what is predicted."""
        encoder = self.reader.encoder
        if encoder is None:
            encoding: dict[str, Any] = {"objects": "as the kernel reads them"}
        else:
            encoding = describe_encoding(encoder) | {"fit_intercept": self.reader.fit_intercept}
        if self.landmarks is not None:
            encoding |= self.landmarks.describe()
        return {"encoding": encoding, "kernel": self.kernel.to_dict()} | self.rows.targets.describe()

    def encode(self, data: Any) -> Any:
        """Return points as rows of norm at most 1, or a list of objects; refuse those beyond the kernel's bound."""
        points = self.reader.read(data)
        if self.landmarks is not None:
            return self.landmarks.of_points(points)
        self.kernel.check(points)
        return points

    def similarity(self, points: Any, others: Any) -> Array:
        """Public: return the kernel divided by its bound."""
        return self._divide_by_bound(self.kernel(points, others))

    def predict(self, scores: Array) -> NDArray[Any]:
        """Public: return the labels or numbers that scores stand for."""
        return self.rows.targets.predict(scores)

    def values(self, points: Any) -> Array:
        """PRIVATE: return the functions at encoded points; one row per point, one column per function."""
        return np.asarray(self._divide_by_bound(self._towards_centres(points)) @ self._coefficients().T)

    def solve(self) -> KernelMachine:
        """PRIVATE: return the machine with its functions, solving for them unless they are known."""
        return self if self.function is not None else self._with_function(self._minimisers())

    def function_bytes(self) -> bytes:
        """PRIVATE: return the coefficients of the functions."""
        return self._coefficients().astype("<f8").tobytes()

    def restore_function(self, content: bytes) -> KernelMachine:
        """PRIVATE: return the machine with the coefficients of an earlier fit on the same rows."""
        coefficients = np.frombuffer(content, dtype="<f8").astype(np.float64)
        shape = (self.kernel_task(self.relation.name).functions, len(self._centres))
        if coefficients.size != shape[0] * shape[1]:
            raise SessionError(
                "these coefficients belong to other rows. Fit the learner on the session's rows"
            )
        return self._with_function(coefficients.reshape(shape))

    def training_digest(self) -> str:
        """PRIVATE: return a digest of the encoded rows or the objects, their labels or numbers and weights."""
        features: Any = self.rows.features
        return digest_of(features, self.rows.targets.answers, self.rows.weights)

    def __getstate__(self) -> NoReturn:
        raise SessionError("a kernel machine holds private rows and cannot be pickled or copied. Fit again")

    def _with_function(self, function: Array) -> KernelMachine:
        return dataclasses.replace(self, function=function)

    def _coefficients(self) -> Array:
        if self.function is None:
            raise SessionError(
                "this learner has read its records but not been fitted. Fit it, or reopen a session"
            )
        return self.function

    def _minimisers(self) -> Array:
        """PRIVATE: return the coefficients at the centres; within the bounds that the noise is calibrated by."""
        if self.landmarks is not None:
            task = landmark_task(self.task, self.landmarks.dimension)
            return MemoryOracle(self.rows, task).minimise(None, task.regularization)
        return exact_functions(self.rows, self.rows.features, self.kernel, self.kernel_task("replace_one"))

    @cached_property
    def _centres(self) -> Any:
        """Return the points that a function is a sum over: the records, or the axes of the landmarks' space."""
        return self.rows.features if self.landmarks is None else np.eye(self.landmarks.dimension)

    @cached_property
    def _towards_centres(self) -> Callable[[Any], Array]:
        return self.kernel.towards(self._centres)

    def _divide_by_bound(self, values: Array) -> Array:
        bound = self.kernel.bound
        return values if bound == 1.0 else values / bound
