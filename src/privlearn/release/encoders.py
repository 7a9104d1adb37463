"""Encoders as a release stores them: from raw rows to the features that the coefficients belong to.

A raw encoder (`SchemaEncoder`, `ArrayEncoder`, `MapEncoder`) turns n rows into an array of shape (n, d), whose rows
have norm at most 1. A lifting encoder turns those into other features: Fourier features, kernel values, or centred
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from privlearn.arrays import Array, is_sparse
from privlearn.data.encoding.arrays import ArrayEncoder, CentredEncoder, blocks
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.readers import single_row
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, ReleaseError
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import CallableKernel, Kernel, row_count
from privlearn.features.kernels import kernel_from_dict
from privlearn.features.landmarks import LandmarkFeatures, UnitLandmarkFeatures
from privlearn.features.map_encoder import MapEncoder
from privlearn.features.public_map import map_from_dict

Function = Any


RawEncoder = SchemaEncoder | ArrayEncoder | MapEncoder


class FourierEncoder:
    """Encode rows, then map them to random Fourier features of norm 1 from a public seed.

    Examples
    --------
    >>> from privlearn.features import kernel_from_name
    >>> features = FourierFeatures(kernel_from_name("rbf"), n_inputs=2, n_pairs=3, seed=0)
    >>> rows = FourierEncoder(ArrayEncoder(1.0, 2, fit_intercept=False), features).encode([[0.6, 0.8]])
    >>> rows.shape, round(float((rows**2).sum()), 3)
    ((1, 6), 1.0)
    """

    def __init__(self, base: RawEncoder, features: FourierFeatures) -> None:
        self.base = base
        self.features = features
        self.dimension = features.dimension

    def encode(self, data: Any) -> Any:
        return self.lift(self.base.encode(data))

    def lift(self, rows: Any) -> Any:
        """Return the features of rows that ``base`` has encoded."""
        return self.features.transform(rows, dtype=np.float32, may_be_empty=True)


class KernelEncoder:
    """Encode rows as kernel values at public points, which a landmark model multiplies with its coefficients.

    Parameters
    ----------
    base : SchemaEncoder, ArrayEncoder or None
        None for kernels over objects of the user, and for precomputed kernel values.
    kernel : Kernel
    public_points : array or sequence of objects
    unit : bool, default=False
        Whether rows have full length around the mean of the points, as in `UnitLandmarkFeatures`.
    seed : int, optional
        Seed of points that were drawn at random.

    Examples
    --------
    >>> from privlearn.features import kernel_from_name
    >>> encoder = KernelEncoder(ArrayEncoder(1.0, 1, fit_intercept=False), kernel_from_name("rbf"), [[0.0], [1.0]])
    >>> encoder.encode([[0.0]]).round(3)
    array([[1.   , 0.368]])
    """

    def __init__(
        self,
        base: RawEncoder | None,
        kernel: Kernel,
        public_points: Any,
        unit: bool = False,
        seed: int | None = None,
    ) -> None:
        self.base = base
        self.kernel = kernel
        self.public_points = public_points
        self.unit = unit
        self.seed = seed
        self.points = row_count(public_points)
        self.dimension = self.points + (2 if unit else 0)

    def encode(self, data: Any) -> Array:
        return self.lift(data if self.base is None else self.base.encode(data))

    def lift(self, rows: Any) -> Array:
        """Return the features of rows that ``base`` has encoded, or of objects."""
        landmarks = self._landmarks
        if isinstance(landmarks, UnitLandmarkFeatures):
            return landmarks.kernel_features(rows)
        return landmarks.kernel_values(rows)

    @property
    def possible_ranks(self) -> range:
        """Return the numbers of independent features that the public points allow; any, without the user's kernel."""
        if isinstance(self.kernel, _AbsentKernel):
            return range(1, self.points + 1 + self.unit)
        # Of the plain features: unit features would need scipy.
        ranks = LandmarkFeatures(self.kernel, self.public_points).possible_ranks
        return range(ranks.start + self.unit, ranks.stop + self.unit)

    def row_by_row(self) -> KernelEncoder:
        """Return an encoder for single points, as in `LandmarkFeatures`."""
        alone = copy(self)
        alone._landmarks = self._landmarks.row_by_row()
        return alone

    @cached_property
    def _landmarks(self) -> LandmarkFeatures | UnitLandmarkFeatures:
        """Create the features when they are needed: a release can be verified without the user's kernel."""
        landmarks = LandmarkFeatures(self.kernel, self.public_points)
        return UnitLandmarkFeatures(landmarks) if self.unit else landmarks


Lifting = FourierEncoder | KernelEncoder | CentredEncoder

Encoder = RawEncoder | Lifting


def base_of(encoder: Encoder) -> RawEncoder | None:
    """Return the encoder that reads the raw rows; None for a kernel over objects."""
    return encoder.base if isinstance(encoder, Lifting) else encoder


def reads_columns(encoder: Encoder) -> bool:
    """Return whether features belong to columns: of a schema or an array, centred or not."""
    lifted = isinstance(encoder, FourierEncoder | KernelEncoder)
    return not lifted and isinstance(base_of(encoder), SchemaEncoder | ArrayEncoder)


def encode_blocks(encoder: Encoder, data: Any) -> Iterator[Any]:
    """Yield the features of rows, block by block; of objects that only a kernel can read, at once."""
    base = base_of(encoder)
    rows = iter([data]) if base is None else _base_rows(base, data)
    if not isinstance(encoder, Lifting):
        return rows
    if base is not None:
        rows = (piece for block in rows for piece in _pieces(block))
    return map(encoder.lift, rows)


_LIFTED = 256  # rows whose features stay near the processor while they are multiplied


def _pieces(block: Any) -> list[Any]:
    """Split a block of rows into small pieces; a block without rows is one piece."""
    return [block[part] for part in blocks(block.shape[0], _LIFTED)] or [block]


def _base_rows(base: RawEncoder, data: Any) -> Iterator[Any]:
    if isinstance(base, SchemaEncoder) and single_row(data, list(base.schema.columns)) is not None:
        return iter([base.encode(data)])
    return base.encode_lazily(data).blocks()


def feature_names(encoder: Encoder) -> list[str]:
    """Return a name for each coefficient."""
    match encoder:
        case CentredEncoder():
            return feature_names(encoder.base)
        case SchemaEncoder():
            return encoder.feature_names
        case ArrayEncoder():
            names = [f"x[{index}]" for index in range(encoder.n_features)]
            return [*names, "intercept"] if encoder.fit_intercept else names
        case MapEncoder():
            names = [f"{encoder.features.name}[{index}]" for index in range(encoder.features.dimension)]
            return [*names, "intercept"] if encoder.fit_intercept else names
        case FourierEncoder():
            pairs = range(encoder.features.n_pairs)
            return [f"cos[{index}]" for index in pairs] + [f"sin[{index}]" for index in pairs]
    names = [f"point[{index}]" for index in range(encoder.points)]
    return [*names, "mean", "constant"] if encoder.unit else names


def feature_columns(encoder: Encoder) -> list[tuple[str, ...]]:
    """Return the columns of each coefficient: one, two for a pair, none for the intercept.

    Raises InvalidParameter for Fourier features, kernels and feature maps, which mix all columns.
    """
    match encoder:
        case CentredEncoder():
            return feature_columns(encoder.base)
        case SchemaEncoder():
            return encoder.feature_columns
        case ArrayEncoder():
            columns: list[tuple[str, ...]] = [(f"x[{index}]",) for index in range(encoder.n_features)]
            return [*columns, ()] if encoder.fit_intercept else columns
    raise InvalidParameter(
        "features of a kernel or a feature map mix all columns, so no part of a score is a column's own"
    )


def encoder_to_dict(encoder: Encoder | None) -> dict[str, Any] | None:
    """Return the JSON form; public points that are numbers are stored as an array, see `points_array`."""
    match encoder:
        case SchemaEncoder():
            described = {"schema": encoder.schema.to_dict(), "fit_intercept": encoder.fit_intercept}
            return described | _resolution(encoder)
        case ArrayEncoder():
            return {
                "norm_bound": encoder.clip_bound,
                "n_features": encoder.n_features,
                "fit_intercept": encoder.fit_intercept,
                "intercept_share": encoder.intercept_share,
            }
        case MapEncoder():
            shares = {"fit_intercept": encoder.fit_intercept, "intercept_share": encoder.intercept_share}
            return {"feature_map": encoder.features.to_dict()} | shares
        case FourierEncoder():
            return {"base": encoder_to_dict(encoder.base), "fourier": encoder.features.to_dict()}
        case CentredEncoder():
            return {"base": encoder_to_dict(encoder.base), "centred": {"radius": encoder.radius}}
        case KernelEncoder():
            objects = None if points_array(encoder) is not None else list(encoder.public_points)
            described = {"base": encoder_to_dict(encoder.base), "landmarks": encoder.kernel.to_dict()}
            described |= {"unit": True} if encoder.unit else {}
            described |= {} if encoder.seed is None else {"seed": encoder.seed}
            return described | ({} if objects is None else {"public_points": objects})
    return None


def encoder_from_dict(
    record: Mapping[str, Any], arrays: Mapping[str, Array], function: Function | None
) -> Encoder:
    """Read the JSON form of `encoder_to_dict`; a kernel that is the user's own code must be passed again."""
    if "schema" in record:
        return _schema_encoder(record)
    if "norm_bound" in record:
        return ArrayEncoder(
            record["norm_bound"],
            record["n_features"],
            fit_intercept=record["fit_intercept"],
            intercept_share=_read_share(record),
        )
    if "feature_map" in record:
        return MapEncoder(map_from_dict(record["feature_map"]), record["fit_intercept"], _read_share(record))
    base: Any = None if record["base"] is None else encoder_from_dict(record["base"], {}, None)
    if "fourier" in record:
        return FourierEncoder(base, FourierFeatures.from_dict(record["fourier"]))
    if "centred" in record:
        return CentredEncoder(base, _check_mean(arrays["mean"], base), _read_radius(record["centred"]))
    points = record.get("public_points", arrays.get("public_points"))
    kernel, unit = _kernel(record["landmarks"], function), record.get("unit", False) is True
    return KernelEncoder(base, kernel, points, unit, record.get("seed"))


def _read_share(record: Mapping[str, Any]) -> float:
    share: float = record["intercept_share"]
    if not (0.0 < share < 1.0 if record["fit_intercept"] else share == 0.0):
        raise ReleaseError("the share of a constant feature must lie between 0 and 1, and be 0 without one")
    return share


def _check_mean(mean: Array, base: RawEncoder | None) -> Array:
    if base is None or mean.shape != (base.dimension - base.fit_intercept,) or not np.isfinite(mean).all():
        raise ReleaseError("the model's arrays do not fit its description")
    return mean


def _read_radius(record: Mapping[str, Any]) -> float:
    radius = float(record["radius"])
    if not 0.0 < radius < np.inf:
        raise ReleaseError("the radius of a centred model must be a finite number above 0")
    return radius


def encoder_arrays(encoder: Encoder) -> dict[str, Array]:
    """Return the arrays that a file stores for an encoder: public points that are numbers, or a released mean."""
    if isinstance(encoder, CentredEncoder):
        return {"mean": encoder.mean}
    points = points_array(encoder)
    return {} if points is None else {"public_points": points}


def _schema_encoder(record: Mapping[str, Any]) -> SchemaEncoder:
    """Return the encoder of a schema; kernels have no resolution."""
    chosen = Resolution.from_dict(record["resolution"]) if "resolution" in record else Resolution()
    schema = Schema.from_dict(record["schema"])
    return SchemaEncoder(schema, fit_intercept=record["fit_intercept"], resolution=chosen)


def _resolution(encoder: SchemaEncoder) -> dict[str, Any]:
    """Return the resolution as a file and a certificate state it; empty for that of kernels."""
    return {} if encoder.resolution == Resolution() else {"resolution": encoder.resolution.to_dict()}


def points_array(encoder: Encoder) -> Array | None:
    """Return the public points as a matrix, if the encoder has such points."""
    if not isinstance(encoder, KernelEncoder):
        return None
    points = encoder.public_points
    if is_sparse(points):
        return np.asarray(points.toarray())
    return points if isinstance(points, np.ndarray) else None


def describe_encoding(encoder: Encoder) -> dict[str, Any]:
    """Return the certificate's description: schema by name and digest or the norm bound, and the features."""
    base = base_of(encoder)
    described: dict[str, Any] = {}
    if isinstance(base, SchemaEncoder):
        described = {"dataset": base.schema.name, "schema_sha256": base.schema.digest}
        if base.schema.private_bounds:
            described["private_bounds"] = base.schema.to_dict()["private_bounds"]
        described |= _resolution(base)
    elif isinstance(base, MapEncoder):
        described = {"feature_map": base.features.describe()}
    elif base is not None:
        described = {"norm_bound": base.clip_bound, "features": base.n_features}
    if isinstance(encoder, FourierEncoder):
        described["fourier"] = encoder.features.to_dict()
    if isinstance(encoder, CentredEncoder):
        described["centred"] = "rows less a released mean, divided by a released radius"
    if isinstance(encoder, KernelEncoder):
        described["landmarks"] = encoder.kernel.to_dict()
        described["public_points"] = encoder.points
        if encoder.seed is not None:
            described["points_made"] = f"uniformly within what is declared public, seed {encoder.seed}"
        if encoder.unit:
            described["rows"] = "at full length around the mean of the public points, and a constant"
        described["meant_for"] = _FAR if encoder.unit else _FAR_FROM_KERNEL
    return described


_FAR = "points like the public points: elsewhere its answers mean little"
_FAR_FROM_KERNEL = "points like the public points: elsewhere the model falls back to a score near 0"


class _AbsentKernel(CallableKernel):
    """The user's own kernel in a release that was loaded without it: it can be verified, but cannot predict."""

    def __call__(self, X: Any, Z: Any) -> Array:
        raise ReleaseError(
            f"the kernel {self.name!r} is code, and a release holds no code: "
            "Release.load(path, kernel=the_function_it_was_trained_with)"
        )


def _kernel(record: Mapping[str, Any], function: Function | None) -> Kernel:
    if record.get("kernel") == "callable" and function is None:
        return _AbsentKernel(lambda X, Z: None, record["bound"], record["name"])
    return kernel_from_dict(record, function)
