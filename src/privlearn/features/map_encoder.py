"""`choose_map` and `MapEncoder`: the public map that a parameter names, and raw rows as its features."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from privlearn.data.encoding.arrays import INTERCEPT, ArrayEncoder
from privlearn.data.sources.passes import in_order, one_blas_thread
from privlearn.data.sources.row_source import ArrayRows, EncodedRows, Matrix
from privlearn.errors import DataError, InvalidParameter, did_you_mean, preview
from privlearn.features.public_map import FEATURE_MAPS, PublicMap
from privlearn.features.scattering import ScatteringFeatures
from privlearn.features.texts import TextFeatures
from privlearn.features.weights_file import ENDINGS, WeightsFeatures


def choose_map(features: Any, X: Any) -> PublicMap:
    """Public: return the map that a parameter names; of X only its shape and type are read."""
    if isinstance(features, PublicMap):
        return features
    if features == "text":
        return TextFeatures()
    if features == "scattering":
        return _scattering(X)
    if isinstance(features, str) and PurePath(features).suffix in ENDINGS:
        return WeightsFeatures(features)
    names = ("scattering", "text", *FEATURE_MAPS)
    raise InvalidParameter(
        f"features must be 'scattering', 'text', the name of an .npz or .onnx file, or a PublicMap, not "
        f"{preview(features)}{did_you_mean(features, names)}"
    )


def _scattering(X: Any) -> ScatteringFeatures:
    shape, kind = getattr(X, "shape", ()), getattr(X, "dtype", np.dtype(object))
    if len(shape) not in (3, 4) or kind != np.uint8:
        size = tuple(shape[1:3]) if len(shape) in (3, 4) else (28, 28)
        raise InvalidParameter(
            "features='scattering' reads an array of bytes of shape (n, height, width). For other inputs pass "
            f"features=ScatteringFeatures({size}, value_bounds=(0, 1)), with the range of their values"
        )
    return ScatteringFeatures(shape[1:])


BLOCK = 1024  # rows that one thread maps at a time


class MapEncoder:
    """The map from raw rows (images, signals, texts) to vectors of norm at most 1.

    Features z of the map become ``(sqrt(1 - share) z, sqrt(share))`` with an intercept, in single precision where
    `ArrayEncoder` has it.

    Parameters
    ----------
    features : PublicMap
    fit_intercept, intercept_share
        As in `ArrayEncoder`.

    Attributes
    ----------
    dimension : int
        Number of features, intercept included.
    row_bound : float
        The bound of the encoded rows without the constant feature.

    Examples
    --------
    >>> from privlearn.features.texts import TextFeatures
    >>> rows = MapEncoder(TextFeatures(dimension=64)).encode(["to be or not to be", ""])
    >>> rows.shape, [round(float(norm), 3) for norm in (rows**2).sum(axis=1)]  # an empty text has the constant alone
    ((2, 65), [1.0, 0.05])
    """

    norm_bound = 1.0

    def __init__(
        self, features: PublicMap, fit_intercept: bool = True, intercept_share: float = INTERCEPT
    ) -> None:
        self._array = ArrayEncoder(1.0, features.dimension, fit_intercept, intercept_share)
        self.features = features
        self.fit_intercept, self.intercept_share = fit_intercept, self._array.intercept_share
        self.dimension, self.row_bound = self._array.dimension, self._array.row_bound
        self.precision = self._array.precision

    def encode(self, X: Any, *, may_be_empty: bool = False) -> Matrix:
        """Return the features of raw rows, of shape (n, dimension)."""
        rows = self.encode_lazily(X)
        if len(rows) == 0 and not may_be_empty:
            raise DataError("X has no rows. Pass at least one.")
        return rows.in_memory()

    def encode_lazily(self, X: Any) -> EncodedRows:
        """Return the rows as a source that encodes them block by block, in each pass."""
        return EncodedRows(ArrayRows(self.features.read(X)), self._encode_block, self.dimension, False)

    def _encode_block(self, rows: Any) -> Any:
        encoded = np.empty((len(rows), self.dimension), dtype=self.precision)
        parts = [slice(start, start + BLOCK) for start in range(0, len(rows), BLOCK)]

        def encode(part: slice) -> tuple[slice, Any]:
            return part, self._array.encode(self.features.transform(rows[part], dtype=np.float32))

        # The last bits of a product may depend on the number of BLAS's threads, and so on what else runs.
        with one_blas_thread():
            for part, features in in_order(encode, parts, many=len(parts) > 1):
                encoded[part] = features
        return encoded
