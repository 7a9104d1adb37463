"""What is released: encoders as a file holds them, and a linear model of classes or of a number over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import PIECE, Array, is_sparse
from privlearn.data.encode.arrays import FIRST_INTERCEPT, ArrayEncoder, blocks
from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.encode.encoder import Bounds, SchemaEncoder, from_unit
from privlearn.data.encode.plain_cells import single_row
from privlearn.data.encode.resolution import Resolution
from privlearn.data.schema.schema import Schema
from privlearn.erm.losses import LOSSES, LossFacts
from privlearn.errors import InvalidParameter, ReleaseError
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import CallableKernel, Kernel, row_count
from privlearn.features.kernels import kernel_from_dict
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.features.unit_landmarks import UnitLandmarkFeatures
from privlearn.heavy import special
from privlearn.mechanisms.statistics.score_odds import are_log_odds, log_odds_at
from privlearn.release.decision import Decision, decision_from_dict

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

    ``base`` is ``None`` for kernels over objects of the user's own, and for precomputed kernel values. ``unit``: as
    `UnitLandmarkFeatures` has them; version 0.1 knew no such rows. ``seed``: of points that were made up.
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
        """The features of rows that ``base`` has encoded, or of objects."""
        landmarks = self._landmarks
        if isinstance(landmarks, UnitLandmarkFeatures):
            return landmarks.kernel_features(rows)
        return landmarks.kernel_values(rows)

    def one_by_one(self) -> KernelEncoder:
        """The same for single points that somebody asks about, as in `LandmarkFeatures`."""
        alone = copy(self)
        alone._landmarks = self._landmarks.one_by_one()
        return alone

    @cached_property
    def _landmarks(self) -> LandmarkFeatures | UnitLandmarkFeatures:
        """Made when it is needed: a release can be verified without the user's kernel."""
        landmarks = LandmarkFeatures(self.kernel, self.public_points)
        return UnitLandmarkFeatures(landmarks) if self.unit else landmarks


Lifting = FourierEncoder | KernelEncoder | CentredEncoder
"""What turns encoded rows into other features."""

Encoder = RawEncoder | Lifting


def base_of(encoder: Encoder) -> RawEncoder | None:
    """What reads the raw rows."""
    return encoder.base if isinstance(encoder, Lifting) else encoder


def encoded(encoder: Encoder, data: Any) -> Iterator[Any]:
    """The features of rows, block by block; of objects that only a kernel can read, at once."""
    base = base_of(encoder)
    rows = iter([data]) if base is None else _base_rows(base, data)
    if not isinstance(encoder, Lifting):
        return rows
    if base is not None:
        rows = (piece for block in rows for piece in _pieces(block))
    return map(encoder.lift, rows)


_LIFTED = 256  # rows whose features stay near the processor while they are multiplied


def _pieces(block: Any) -> list[Any]:
    """Of a block of rows; one without any is one piece."""
    return [block[part] for part in blocks(block.shape[0], _LIFTED)] or [block]


def _base_rows(base: RawEncoder, data: Any) -> Iterator[Any]:
    if isinstance(base, SchemaEncoder) and single_row(data, list(base.schema.columns)) is not None:
        return iter([base.encode(data)])
    return base.encoded(data).blocks()


def feature_names(encoder: Encoder) -> list[str]:
    """A name for each coefficient."""
    match encoder:
        case CentredEncoder():
            return feature_names(encoder.base)
        case SchemaEncoder():
            return encoder.feature_names
        case ArrayEncoder():
            names = [f"x[{place}]" for place in range(encoder.n_features)]
            return [*names, "intercept"] if encoder.fit_intercept else names
        case FourierEncoder():
            pairs = range(encoder.features.n_pairs)
            return [f"cos[{place}]" for place in pairs] + [f"sin[{place}]" for place in pairs]
    names = [f"point[{place}]" for place in range(encoder.points)]
    return [*names, "mean", "constant"] if encoder.unit else names


def feature_columns(encoder: Encoder) -> list[tuple[str, ...]]:
    """The columns that each coefficient is about: one, two of a pair, none of the intercept.

    Features that mix all columns (Fourier's, a kernel's) are about no column alone.
    """
    match encoder:
        case CentredEncoder():
            return feature_columns(encoder.base)
        case SchemaEncoder():
            return encoder.feature_columns
        case ArrayEncoder():
            columns: list[tuple[str, ...]] = [(f"x[{place}]",) for place in range(encoder.n_features)]
            return [*columns, ()] if encoder.fit_intercept else columns
    raise InvalidParameter("features of a kernel mix all columns, so no part of a score is a column's own")


def encoder_to_dict(encoder: Encoder | None) -> dict[str, Any] | None:
    """Plain JSON values; public points that are numbers travel as an array instead, see `points_array`."""
    match encoder:
        case SchemaEncoder():
            described = {"schema": encoder.schema.to_dict(), "fit_intercept": encoder.fit_intercept}
            return described | _resolution(encoder)
        case ArrayEncoder():
            return {
                "norm_bound": encoder.clip_bound,
                "n_features": encoder.n_features,
                "fit_intercept": encoder.fit_intercept,
                **_beside_version_0_1(encoder),
            }
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
    """Inverse of `encoder_to_dict`; a kernel that is the user's own code has to be given again."""
    if "schema" in record:
        return _schema_encoder(record)
    if "norm_bound" in record:
        return ArrayEncoder(
            record["norm_bound"],
            record["n_features"],
            fit_intercept=record["fit_intercept"],
            intercept_share=_checked_share(record.get("intercept_share", FIRST_INTERCEPT)),
        )
    base: Any = None if record["base"] is None else encoder_from_dict(record["base"], {}, None)
    if "fourier" in record:
        return FourierEncoder(base, FourierFeatures.from_dict(record["fourier"]))
    if "centred" in record:
        return CentredEncoder(base, _checked_mean(arrays["mean"], base), _checked_radius(record["centred"]))
    points = record.get("public_points", arrays.get("public_points"))
    kernel, unit = _kernel(record["landmarks"], function), record.get("unit", False) is True
    return KernelEncoder(base, kernel, points, unit, record.get("seed"))


def _beside_version_0_1(encoder: ArrayEncoder) -> dict[str, Any]:
    """What its files do not state."""
    first = not encoder.fit_intercept or encoder.intercept_share == FIRST_INTERCEPT
    return {} if first else {"intercept_share": encoder.intercept_share}


def _checked_share(share: float) -> float:
    if not 0.0 < share < 1.0:
        raise ReleaseError("the share of a constant feature must lie between 0 and 1")
    return share


def _checked_mean(mean: Array, base: RawEncoder | None) -> Array:
    if base is None or mean.shape != (base.dimension - base.fit_intercept,) or not np.isfinite(mean).all():
        raise ReleaseError("the model's arrays do not fit its description")
    return mean


def _checked_radius(record: Mapping[str, Any]) -> float:
    radius = float(record["radius"])
    if not 0.0 < radius < np.inf:
        raise ReleaseError("the radius of a centred model must be a finite number above 0")
    return radius


def encoder_arrays(encoder: Encoder) -> dict[str, Array]:
    """What of an encoder travels as arrays: public points that are numbers, or a released mean."""
    if isinstance(encoder, CentredEncoder):
        return {"mean": encoder.mean}
    points = points_array(encoder)
    return {} if points is None else {"public_points": points}


def _schema_encoder(record: Mapping[str, Any]) -> SchemaEncoder:
    """Version 0.1 knew no resolution: its files keep their encoding."""
    chosen = Resolution.from_dict(record["resolution"]) if "resolution" in record else None
    schema = Schema.from_dict(record["schema"])
    return SchemaEncoder(schema, fit_intercept=record["fit_intercept"], resolution=chosen)


def _resolution(encoder: SchemaEncoder) -> dict[str, Any]:
    """The resolution as a file and a certificate state it; nothing if there is none."""
    return {} if encoder.resolution is None else {"resolution": encoder.resolution.to_dict()}


def points_array(encoder: Encoder) -> Array | None:
    """The public points as a matrix, if the encoder has such points."""
    if not isinstance(encoder, KernelEncoder):
        return None
    points = encoder.public_points
    if is_sparse(points):
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
        described |= _resolution(base)
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


@dataclass(frozen=True, eq=False)
class ScoredFeatures:
    """What every released model is: public features, and coefficients over them with one row per score."""

    encoder: Encoder
    coefficients: Array

    def arrays(self) -> dict[str, Array]:
        """What travels as arrays."""
        return {"coefficients": self.coefficients} | encoder_arrays(self.encoder)

    def _scores(self, data: Any) -> Array:
        """One column a row of coefficients; block by block, since encoded rows need far more memory than a table."""
        return np.concatenate([row_scores(block, self.coefficients) for block in encoded(self.encoder, data)])


def row_scores(features: Any, coefficients: Array) -> Array:
    """Each row's products with the coefficients, whose bits depend on that row alone.

    Those of numpy's matrix product may depend on how many rows there are, and then one record would move others.
    """
    if isinstance(features, np.ndarray):
        rows: Array = features.astype(np.float64, copy=False)
        products: Array = np.zeros((len(rows), len(coefficients)))
        for start in range(0, rows.shape[1], PIECE):
            part = slice(start, start + PIECE)
            products += np.einsum("ij,kj->ik", rows[:, part], coefficients[:, part])
        return products
    return np.asarray(features @ coefficients.T)


def probabilities_of(scores: Array, link: str) -> Array:
    """Of the classes, from their scores: one row per point, one column per class, or one score for two classes."""
    if link == "softmax":
        return np.asarray(special.softmax(scores, axis=1))
    if scores.shape[1] == 1:
        return special.expit(np.hstack([-scores, scores]))
    odds = special.expit(scores) + np.finfo(float).tiny  # all-negative scores underflow together
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class LinearModel(ScoredFeatures):
    """Scores <w_k, encode(x)> over public features.

    Parameters
    ----------
    encoder : SchemaEncoder, ArrayEncoder, FourierEncoder or KernelEncoder
    coefficients : array of shape (problems, dimension)
        One row for two classes (positive score: the second class), one row per class otherwise.
    classes : array
        The declared labels, in the order that decides ties.
    link : {"none", "logistic", "softmax"}
        How scores become probabilities.
    log_odds : array, optional
        Or else how they do: log-odds of the second class, learnt from counts of scores.
    decision : Decision, optional
        A threshold or calibration that was chosen afterwards, for two classes.
    class_weights : tuple of float, optional
        Public weights that the classes had in training: those of ``class_weight``, else the schema's.
    """

    classes: NDArray[Any]
    link: str
    log_odds: Array | None = None
    decision: Decision | None = None
    class_weights: tuple[float, ...] | None = None

    def arrays(self) -> dict[str, Array]:
        return super().arrays() | ({} if self.log_odds is None else {"log_odds": self.log_odds})

    def decision_function(self, data: Any) -> Array:
        """Scores, of shape (n,) for two classes and (n, classes) otherwise."""
        return self._decisions(self._scores(data))

    def decisions_and_probabilities(self, data: Any) -> tuple[Array, Array | None]:
        """`decision_function` and `predict_proba` of rows that are encoded once; ``None`` if there is no such thing."""
        scores = self._scores(data)
        return self._decisions(scores), self._probabilities(scores) if self.has_probabilities else None

    def _decisions(self, scores: Array) -> Array:
        if len(self.classes) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, data: Any) -> NDArray[Any]:
        return self.labels(self.decision_function(data))

    def labels(self, scores: Array) -> NDArray[Any]:
        """What scores of `decision_function` stand for."""
        chosen = (scores > self._cut).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes[chosen])

    @property
    def threshold(self) -> float:
        """Of two classes: the score of `own_scores` above which it says the second one."""
        chosen = None if self.decision is None else self.decision.threshold
        return chosen if chosen is not None else 0.0 if self.link == "none" else 0.5

    def own_scores(self, data: Any) -> Array:
        """Of two classes: the probability of the second one, or the decision function if there are no probabilities.

        As it was learnt: without a calibration that was chosen afterwards.
        """
        return self._own(self.decision_function(data))

    def _own(self, decisions: Array) -> Array:
        return decisions if self.link == "none" else np.asarray(special.expit(decisions))

    @property
    def _cut(self) -> float:
        """The threshold, for `decision_function`."""
        return self.threshold if self.link == "none" else float(special.logit(self.threshold))

    def predict_proba(self, data: Any) -> Array:
        """Probabilities of the classes, in the order of ``classes``."""
        if not self.has_probabilities:
            raise InvalidParameter(
                "this model has no probabilities: train PrivateSVC(probability=True) or PrivateLogisticRegression"
            )
        return self._probabilities(self._scores(data))

    @property
    def has_probabilities(self) -> bool:
        calibrated = self.decision is not None and bool(self.decision.scores)
        return calibrated or self.log_odds is not None or self.link != "none"

    def _probabilities(self, scores: Array) -> Array:
        if self.decision is not None and self.decision.scores:
            likely = self.decision.calibrated(self._own(self._decisions(scores)))
            return np.column_stack([1.0 - likely, likely])
        if self.log_odds is not None:
            odds = log_odds_at(scores, self.log_odds)
            return special.expit(np.hstack([-odds, odds]))
        return probabilities_of(scores, self.link)

    def is_learnt_by(self, loss: LossFacts) -> bool:
        """Whether a model of this kind comes from such a loss."""
        return loss.sees != "residual" and self.link == loss.link

    def is_weighted_by(self, bound: float, first: bool) -> bool:
        """Whether the largest class weight is this; where none is stated, the schema's were used.

        The first version stated none, and had none in schemas: of its files it is not known.
        """
        target = getattr(getattr(base_of(self.encoder), "schema", None), "target", None)
        schemas = None if target is None else target.class_weights
        weights = schemas if self.class_weights is None else self.class_weights
        if weights is None:
            return first or bound == 1.0
        fit = len(weights) == len(self.classes) and all(0.0 < weight <= bound for weight in weights)
        return fit and bound in weights

    def to_dict(self) -> dict[str, Any]:
        """The public part, for a release's manifest; the coefficients travel as an array."""
        return {
            "encoder": encoder_to_dict(self.encoder),
            "classes": self.classes.tolist(),
            "link": self.link,
            **({} if self.decision is None else {"decision": self.decision.to_dict()}),
            **({} if self.class_weights is None else {"class_weights": list(self.class_weights)}),
        }

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
    ) -> LinearModel:
        """Inverse of ``to_dict`` and ``arrays``; ``kernel`` is the user's function, if one is needed."""
        encoder = encoder_from_dict(record["encoder"], arrays, kernel)
        decision = decision_from_dict(record["decision"]) if "decision" in record else None
        classes, log_odds = np.array(record["classes"]), arrays.get("log_odds")
        weights = tuple(record["class_weights"]) if "class_weights" in record else None
        model = cls(encoder, arrays["coefficients"], classes, record["link"], log_odds, decision, weights)
        if decision is not None and len(model.classes) != 2:
            raise ReleaseError("only a model of two classes has a threshold")
        rows = 1 if len(model.classes) == 2 and model.link != "softmax" else len(model.classes)
        known = {loss.link for loss in LOSSES.values()}
        learnt = model.log_odds is None or (
            rows == 1 and model.link == "none" and are_log_odds(model.log_odds)
        )
        if model.link not in known or model.coefficients.shape != (rows, encoder.dimension) or not learnt:
            raise ReleaseError("the model's arrays do not fit its description")
        return model


def numbers_of(scores: Array, bounds: Bounds | tuple[Bounds, ...]) -> Array:
    """What scores of one number, or of several, stand for."""
    if isinstance(bounds[0], float):
        return from_unit(scores[:, 0], bounds)
    return np.column_stack([from_unit(column, pair) for column, pair in zip(scores.T, bounds, strict=True)])


@dataclass(frozen=True, eq=False)
class RegressionModel(ScoredFeatures):
    """Scores <w_k, encode(x)>, scaled from [-1, 1] to public bounds and clamped to them.

    Parameters
    ----------
    encoder : SchemaEncoder, ArrayEncoder, FourierEncoder or KernelEncoder
    coefficients : array of shape (numbers, dimension)
    target_bounds : tuple of two floats, or of several such tuples
        Public bounds of the number it predicts, or of each of them.
    """

    target_bounds: Bounds | tuple[Bounds, ...]

    def predict(self, data: Any) -> Array:
        """Of shape (n,) for one number, (n, numbers) for several."""
        return numbers_of(self._scores(data), self.target_bounds)

    def is_learnt_by(self, loss: LossFacts) -> bool:
        """Whether a model of this kind comes from such a loss."""
        return loss.sees == "residual"

    def is_weighted_by(self, bound: float, first: bool) -> bool:
        """Whether the largest class weight is this; numbers have none."""
        return bound == 1.0

    def to_dict(self) -> dict[str, Any]:
        """The public part, for a release's manifest; the coefficients travel as an array."""
        return {
            "encoder": encoder_to_dict(self.encoder),
            "target_bounds": np.array(self.target_bounds).tolist(),
        }

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
    ) -> RegressionModel:
        """Inverse of ``to_dict`` and ``arrays``; ``kernel`` is the user's function, if one is needed."""
        encoder = encoder_from_dict(record["encoder"], arrays, kernel)
        ends = np.array(record["target_bounds"], dtype=np.float64)
        lower, upper = np.atleast_2d(ends).T
        bounds: Any = tuple(ends.tolist()) if ends.ndim == 1 else tuple(map(tuple, ends.tolist()))
        schema = getattr(base_of(encoder), "schema", None)
        stated = schema is None or (schema.target is not None and schema.target.bounds == bounds)
        ordered = bool(np.all(lower < upper) and np.isfinite(upper - lower).all())
        if not (stated and ordered) or arrays["coefficients"].shape != (len(lower), encoder.dimension):
            raise ReleaseError("the model's arrays do not fit its description")
        return cls(encoder, arrays["coefficients"], bounds)


Model = LinearModel | RegressionModel


def model_from_dict(
    record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
) -> Model:
    """The model that a release describes: a regression if it states bounds of what it predicts."""
    kind: Any = RegressionModel if "target_bounds" in record else LinearModel
    return kind.from_dict(record, arrays, kernel)  # type: ignore[no-any-return]
