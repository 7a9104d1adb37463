"""The public encoders a release can hold, and their form on disk: JSON, with public points as an array or a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.schema import Schema
from privlearn.errors import ReleaseError
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import CallableKernel, Kernel
from privlearn.features.kernels import kernel_from_dict

Function = Any


RawEncoder = SchemaEncoder | ArrayEncoder
"""What reads the raw rows."""


class FourierEncoder:
    """Rows of norm at most 1, then random Fourier features of norm 1 from a public seed."""

    def __init__(self, base: RawEncoder, features: FourierFeatures) -> None:
        self.base = base
        self.features = features
        self.dimension = features.dimension

    def encode(self, data: Any) -> Any:
        return self.lift(self.base.encode(data))

    def lift(self, rows: Any) -> Any:
        """The features of rows that ``base`` has encoded."""
        return self.features.transform(rows, dtype=np.float32)


class KernelEncoder:
    """Kernel values against public points; what a landmark model multiplies with its coefficients.

    ``base`` is ``None`` for kernels over objects of the user's own, and for precomputed kernel values.
    """

    def __init__(self, base: RawEncoder | None, kernel: Kernel, public_points: Any) -> None:
        self.base = base
        self.kernel = kernel
        self.public_points = public_points
        self.dimension = public_points.shape[0] if hasattr(public_points, "shape") else len(public_points)

    def encode(self, data: Any) -> Array:
        return self.lift(data if self.base is None else self.base.encode(data))

    def lift(self, rows: Any) -> Array:
        """The features of rows that ``base`` has encoded, or of objects."""
        return self.kernel(rows, self.public_points)


Encoder = RawEncoder | FourierEncoder | KernelEncoder


def base_of(encoder: Encoder) -> RawEncoder | None:
    """What reads the raw rows."""
    return encoder.base if isinstance(encoder, FourierEncoder | KernelEncoder) else encoder


def encoded(encoder: Encoder, data: Any) -> Iterator[Any]:
    """The features of rows, block by block; of objects that only a kernel can read, at once."""
    base = base_of(encoder)
    rows = iter([data]) if base is None else base.encoded(data).blocks()
    return map(encoder.lift, rows) if isinstance(encoder, FourierEncoder | KernelEncoder) else rows


def feature_names(encoder: Encoder) -> list[str]:
    """A name for each coefficient."""
    match encoder:
        case SchemaEncoder():
            return encoder.feature_names
        case ArrayEncoder():
            names = [f"x[{place}]" for place in range(encoder.n_features)]
            return [*names, "intercept"] if encoder.fit_intercept else names
        case FourierEncoder():
            pairs = range(encoder.features.n_pairs)
            return [f"cos[{place}]" for place in pairs] + [f"sin[{place}]" for place in pairs]
    return [f"point[{place}]" for place in range(encoder.dimension)]


def encoder_to_dict(encoder: Encoder | None) -> dict[str, Any] | None:
    """Plain JSON values; public points that are numbers travel as an array instead, see `points_array`."""
    match encoder:
        case SchemaEncoder():
            return {"schema": encoder.schema.to_dict(), "fit_intercept": encoder.fit_intercept}
        case ArrayEncoder():
            return {
                "norm_bound": encoder.clip_bound,
                "n_features": encoder.n_features,
                "fit_intercept": encoder.fit_intercept,
            }
        case FourierEncoder():
            return {"base": encoder_to_dict(encoder.base), "fourier": encoder.features.to_dict()}
        case KernelEncoder():
            objects = None if points_array(encoder) is not None else list(encoder.public_points)
            described = {"base": encoder_to_dict(encoder.base), "landmarks": encoder.kernel.to_dict()}
            return described | ({} if objects is None else {"public_points": objects})
    return None


def encoder_from_dict(record: Mapping[str, Any], points: Array | None, function: Function | None) -> Encoder:
    """Inverse of `encoder_to_dict`; a kernel that is the user's own code has to be given again."""
    if "schema" in record:
        return SchemaEncoder(Schema.from_dict(record["schema"]), fit_intercept=record["fit_intercept"])
    if "norm_bound" in record:
        return ArrayEncoder(record["norm_bound"], record["n_features"], fit_intercept=record["fit_intercept"])
    base: Any = None if record["base"] is None else encoder_from_dict(record["base"], None, None)
    if "fourier" in record:
        return FourierEncoder(base, FourierFeatures.from_dict(record["fourier"]))
    return KernelEncoder(base, _kernel(record["landmarks"], function), record.get("public_points", points))


def points_array(encoder: Encoder) -> Array | None:
    """The public points as a matrix, if the encoder has such points."""
    if not isinstance(encoder, KernelEncoder):
        return None
    points = encoder.public_points
    if isinstance(points, sparse.csr_array):
        return np.asarray(points.toarray())
    return points if isinstance(points, np.ndarray) else None


def describe_encoding(encoder: Encoder) -> dict[str, Any]:
    """What the certificate says of the encoding: schema by name and digest or the norm bound, and the features."""
    base = base_of(encoder)
    described: dict[str, Any] = {}
    if isinstance(base, SchemaEncoder):
        described = {"dataset": base.schema.name, "schema_sha256": base.schema.digest}
        if base.schema.bought:
            described["bought"] = base.schema.to_dict()["bought"]
    elif base is not None:
        described = {"norm_bound": base.clip_bound, "features": base.n_features}
    if isinstance(encoder, FourierEncoder):
        described["fourier"] = encoder.features.to_dict()
    if isinstance(encoder, KernelEncoder):
        described["landmarks"] = encoder.kernel.to_dict()
        described["public_points"] = encoder.dimension
        described["meant_for"] = (
            "points like the public points: elsewhere the model falls back to a score near 0"
        )
    return described


class _AbsentKernel(CallableKernel):
    """The user's own kernel of a release that was loaded without it: it can be verified, but not predict."""

    def __call__(self, X: Any, Z: Any) -> Array:
        raise ReleaseError(
            f"the kernel {self.name!r} is code, and a release holds no code: "
            "Release.load(path, kernel=the_function_it_was_trained_with)"
        )


def _kernel(record: Mapping[str, Any], function: Function | None) -> Kernel:
    if record.get("kernel") == "callable" and function is None:
        return _AbsentKernel(lambda X, Z: None, record["bound"], record["name"])
    return kernel_from_dict(record, function)
