"""Records and points of a session: encoded rows, objects, or features on public points cut to a grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import blocks, bounded_array
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.sources.table import safely
from privlearn.estimators.learner import check_array_shape
from privlearn.features.kernel import Kernel, as_matrix
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.features.objects import canonical, list_objects, object_to_bytes
from privlearn.release.encoders import Encoder

GRID_BITS = 20


def read_objects(data: Any, key: Callable[[Any], Any] | None) -> list[Any]:
    """Return each object, or its key, in canonical form."""
    objects = list_objects(data)
    if key is not None:
        objects = safely(lambda: [key(each) for each in objects], "key= failed: try it on made-up points")
    return [canonical(each) for each in objects]


@dataclass(frozen=True, eq=False)
class PointReader:
    """Read points as the records were read, before landmarks.

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
