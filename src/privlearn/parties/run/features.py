"""Feature maps that all parties share: they depend on public numbers alone, so every party gets the same features."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, Field, StrictInt, StrictStr

from privlearn.arrays import Array
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.schema.public import PublicModel
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import check_kernel_name, kernel_from_name
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.release.encoders import Encoder, FourierEncoder, KernelEncoder


class EncodedFeatures:
    """The encoded rows themselves: a linear model."""

    def __init__(self, base: SchemaEncoder) -> None:
        self.encoder: Encoder = base
        self.dimension = base.dimension

    def transform(self, encoded: Any) -> Any:
        """Return the features, of shape (rows, dimension), of encoded rows."""
        return encoded

    def release_coefficients(self, coefficients: Array) -> Array:
        """Return coefficients for the release's encoder."""
        return coefficients


class SharedFourierFeatures(EncodedFeatures):
    """Random Fourier features from the agreement's public seed."""

    def __init__(self, base: SchemaEncoder, kernel: Kernel, pairs: int, seed: int) -> None:
        self._features = FourierFeatures(kernel, base.dimension, pairs, seed).draw()
        self.encoder = FourierEncoder(base, self._features)
        self.dimension = self._features.dimension

    def transform(self, encoded: Any) -> Any:
        return self._features.transform(encoded, dtype=np.float32, may_be_empty=True)


class SharedLandmarkFeatures(EncodedFeatures):
    """K_ZZ^(-1/2) k_Z(x) for the agreement's public points Z.

    `LandmarkFeatures` works in the eigenvectors of K_ZZ. Another machine may choose other signs and, for equal
    eigenvalues, other directions, and sums over parties would mix coordinates. Rotated back by the same eigenvectors,
    the features are those of the symmetric root, which is unique.
    """

    def __init__(self, base: SchemaEncoder, kernel: Kernel, public_rows: Any) -> None:
        points = base.encode(pa.Table.from_pylist([dict(row) for row in public_rows]))
        self._features = LandmarkFeatures(kernel, points)
        whitening = self._features.kernel_coefficients(np.eye(self._features.dimension))
        self._rotation: Array = whitening / np.linalg.norm(whitening, axis=1, keepdims=True)
        self.encoder = KernelEncoder(base, kernel, self._features.public_points)
        self.dimension = self._rotation.shape[1]

    def transform(self, encoded: Any) -> Any:
        # a rotation preserves norms up to rounding, which must not make a row longer than 1
        return self._features.transform(encoded, may_be_empty=True) @ self._rotation * (1.0 - 2.0**-40)

    def release_coefficients(self, coefficients: Array) -> Array:
        return self._features.kernel_coefficients(coefficients @ self._rotation.T * (1.0 - 2.0**-40))


class KernelSettings(PublicModel):
    """A kernel that all parties expand in the same public features.

    Parameters
    ----------
    name : {"rbf", "laplacian", "cauchy", "polynomial", "linear"}, or one that an extension registers
        Every party and the coordinator must load that extension.
    gamma, degree, coef0
        As in scikit-learn, always numbers.
    fourier_pairs, seed : int
        Random Fourier features of kernels that have them, such as the first three.
    public_rows : list of dict, optional
        Rows of public, unlabelled points, columns as in the schema: landmark features, for any kernel, instead.
    """

    name: Annotated[StrictStr, AfterValidator(check_kernel_name)]
    gamma: Annotated[float, Field(gt=0)] = 1.0
    degree: Annotated[StrictInt, Field(ge=1)] = 3
    coef0: Annotated[float, Field(ge=0)] = 1.0
    fourier_pairs: Annotated[StrictInt, Field(ge=1)] = 500
    seed: Annotated[StrictInt, Field(ge=0)] = 0
    public_rows: tuple[dict[str, Any], ...] | None = None

    def features(self, base: SchemaEncoder) -> EncodedFeatures:
        """Return the feature map over the schema's encoding."""
        kernel: Kernel = kernel_from_name(self.name, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        if self.public_rows is not None:
            return SharedLandmarkFeatures(base, kernel, self.public_rows)
        return SharedFourierFeatures(base, kernel, self.fourier_pairs, self.seed)

    def estimator_settings(self) -> dict[str, Any]:
        """Return the parameters of a single holder's estimator with this kernel."""
        shared = {"kernel": self.name, "gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if self.public_rows is None:
            return shared | {"fourier_pairs": self.fourier_pairs, "fourier_seed": self.seed}
        return shared | {"public_points": pa.Table.from_pylist([dict(row) for row in self.public_rows])}
