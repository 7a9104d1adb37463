"""What a session's records and points are beside rows: objects, or features on public points."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.arrays import blocks
from privlearn.data.sources.table import safely
from privlearn.features.kernel import Kernel
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.features.objects import canonical, listed_objects, object_to_bytes

GRID_BITS = 20


def read_objects(data: Any, key: Callable[[Any], Any] | None) -> list[Any]:
    """Each as its canonical bytes give it back, or those of its key."""
    objects = listed_objects(data)
    if key is not None:
        objects = safely(lambda: [key(each) for each in objects], "key= failed: try it on made-up points")
    return [canonical(each) for each in objects]


def digest_of(features: Array | list[Any], *others: Array | None) -> str:
    """PRIVATE: of encoded rows or objects, and what belongs to them."""
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
        """Public: what the certificate says."""
        return {"landmarks": self._features.kernel.to_dict(), "public_points": self._points}

    def of_records(self, rows: Any) -> Array:
        return _to_grid(np.asarray(self._features.transform(rows)))

    def of_points(self, points: Any) -> Array:
        """A point's bits do not depend on those asked with it."""
        return self.of_records(points)


def _to_grid(features: Array) -> Array:
    return np.asarray(np.ldexp(np.trunc(np.ldexp(features, GRID_BITS)), -GRID_BITS))
