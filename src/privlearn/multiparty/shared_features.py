"""Features that every party computes for itself, in the same coordinates: the schema's, Fourier's, or landmarks'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.data import SchemaEncoder
from privlearn.features import FourierFeatures, Kernel, LandmarkFeatures
from privlearn.release.encoders import Encoder, FourierEncoder, KernelEncoder

Array = NDArray[np.float64]


class EncodedFeatures:
    """The encoded rows themselves: a linear model."""

    def __init__(self, base: SchemaEncoder) -> None:
        self.encoder: Encoder = base
        self.dimension = base.dimension

    def transform(self, encoded: Any) -> Any:
        return encoded

    def released(self, coefficients: Array) -> Array:
        """Coefficients as the release's encoder takes them."""
        return coefficients


class SharedFourierFeatures(EncodedFeatures):
    """Random Fourier features from the plan's public seed."""

    def __init__(self, base: SchemaEncoder, kernel: Kernel, pairs: int, seed: int) -> None:
        self._features = FourierFeatures(kernel, base.dimension, pairs, seed)
        self.encoder = FourierEncoder(base, self._features)
        self.dimension = self._features.dimension

    def transform(self, encoded: Any) -> Any:
        return self._features.transform(encoded, dtype=np.float32)


class SharedLandmarkFeatures(EncodedFeatures):
    """K_ZZ^(-1/2) k_Z(x) for the plan's public points Z.

    `LandmarkFeatures` works in the eigenvectors of K_ZZ, whose signs and, for equal eigenvalues, directions another
    machine may choose otherwise: sums over parties would mix coordinates. Turned back by the same eigenvectors, the
    features are those of the symmetric root, which is unique.
    """

    def __init__(self, base: SchemaEncoder, kernel: Kernel, public_rows: Any) -> None:
        points = base.encode(pa.Table.from_pylist([dict(row) for row in public_rows]))
        self._features = LandmarkFeatures(kernel, points)
        whitening = self._features.kernel_coefficients(np.eye(self._features.dimension))
        self._turn: Array = whitening / np.linalg.norm(whitening, axis=1, keepdims=True)
        self.encoder = KernelEncoder(base, kernel, self._features.public_points)
        self.dimension = self._turn.shape[1]

    def transform(self, encoded: Any) -> Any:
        # turning keeps lengths but for rounding, which must not make a row longer than 1
        return self._features.transform(encoded) @ self._turn * (1.0 - 2.0**-40)

    def released(self, coefficients: Array) -> Array:
        return self._features.kernel_coefficients(coefficients @ self._turn.T * (1.0 - 2.0**-40))
