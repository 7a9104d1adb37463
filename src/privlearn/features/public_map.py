"""Public feature maps with a name: from raw rows (images, signals, texts) to vectors of norm at most 1.

A map is a value. Its settings determine every feature, they are part of a release's certificate, and its digest names
them. A public function of one row with norm at most 1 changes no theorem (docs/theory/feature-maps.md).
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.data.sources.table import refuse_masked, safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter
from privlearn.features.feature_map import FeatureMap
from privlearn.imports import look_up, register

MapType = TypeVar("MapType", bound="type[PublicMap]")


class PublicMap(FeatureMap):
    """A feature map that a release names: `to_dict` states its settings, `map_from_dict` rebuilds it.

    Attributes
    ----------
    name : str
        Name in `FEATURE_MAPS`.
    settings : tuple of str
        Names of the constructor's parameters, which are attributes too.
    input_shape : tuple of int
        Shape of one raw row: (784,) for a vector, (28, 28) for an image. Empty for a text.
    dimension : int
        Number of features.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    input_shape: tuple[int, ...]

    @property
    def n_inputs(self) -> int:
        """Return the number of numbers in one raw row; 1 for a text."""
        return math.prod(self.input_shape)

    def to_dict(self) -> dict[str, Any]:
        """Return name and settings as plain JSON values."""
        described = {"map": self.name} | {setting: getattr(self, setting) for setting in self.settings}
        plain: dict[str, Any] = json.loads(json.dumps(described))
        return plain

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the map's canonical JSON."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return what a certificate states."""
        stated = {"dimension": self.dimension, "norm_bound": self.norm_bound, "sha256": self.digest}
        return self.to_dict() | stated

    def read(self, X: Any) -> Any:
        """Return raw rows as an array of shape (n, n_inputs); refuse other shapes and numbers that are not finite."""
        refuse_masked(X)
        rows = safely(lambda: np.asarray(X), "X cannot be read as numbers. Pass an array of numbers.")
        if rows.dtype.kind not in "buif" or rows.shape[1:] not in (self.input_shape, (self.n_inputs,)):
            raise DataError(
                f"X has shape {rows.shape} and type {rows.dtype}. The map {self.name!r} needs numbers of shape "
                f"(n, {', '.join(map(str, self.input_shape))})."
            )
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            raise DataError(
                f"X has NaN or infinite entries. Fill them in, or drop those rows ({ON_DROPPING})"
            )
        return rows.reshape(len(rows), self.n_inputs)

    @abstractmethod
    def _fill(self, X: Any, out: Any) -> None: ...

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.settings)})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicMap) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest)


FEATURE_MAPS: dict[str, type[PublicMap]] = {}
"""The maps with a name."""


def register_feature_map(kind: MapType) -> MapType:
    """Add a map's class to `FEATURE_MAPS`, so that estimators and releases can name it."""
    register(FEATURE_MAPS, kind.name, kind, "feature map", ("name", "settings"))
    return kind


def map_from_dict(content: Mapping[str, Any]) -> PublicMap:
    """Return the map that ``to_dict`` described."""
    settings = dict(content)
    kind: Any = look_up(FEATURE_MAPS, settings.pop("map", None), "feature map")
    if set(settings) != set(kind.settings):
        raise InvalidParameter("this does not describe a feature map. Pass what PublicMap.to_dict() returns.")
    result: PublicMap = kind(**settings)
    return result


def gaussian_matrix(rows: int, columns: int, seed: int) -> NDArray[np.float32]:
    """Return independent standard normal numbers from a public seed, the same in every version of numpy.

    numpy guarantees the raw bits of PCG64, not its normal variates; pairs of uniforms become normal by Box and Muller.
    """
    count = rows * columns
    bits = np.random.PCG64(seed).random_raw(count + count % 2).reshape(2, -1)
    uniform = ((bits >> np.uint64(12)) + np.float64(0.5)) * 2.0**-52
    radius, angle = np.sqrt(-2.0 * np.log(uniform[0])), 2.0 * np.pi * uniform[1]
    numbers = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
    return numbers.reshape(rows, columns).astype(np.float32)
