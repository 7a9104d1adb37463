"""What is released: a linear model over encoded rows, of classes or of a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from privlearn.arrays import Array
from privlearn.data.encode.encoder import Bounds, from_unit
from privlearn.erm.losses import LOSSES, LossFacts
from privlearn.errors import InvalidParameter, ReleaseError
from privlearn.release.encoders import (
    Encoder,
    base_of,
    encoded,
    encoder_from_dict,
    encoder_to_dict,
    points_array,
)


@dataclass(frozen=True, eq=False)
class ScoredFeatures:
    """What every released model is: public features, and coefficients over them with one row per score."""

    encoder: Encoder
    coefficients: Array

    def arrays(self) -> dict[str, Array]:
        """What travels as arrays."""
        points = points_array(self.encoder)
        return {"coefficients": self.coefficients} | ({} if points is None else {"public_points": points})

    def _scores(self, data: Any) -> Array:
        """One column a row of coefficients; block by block, since encoded rows need far more memory than a table."""
        scored = [np.asarray(block @ self.coefficients.T) for block in encoded(self.encoder, data)]
        return np.concatenate(scored)


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
    """

    classes: NDArray[Any]
    link: str

    def decision_function(self, data: Any) -> Array:
        """Scores, of shape (n,) for two classes and (n, classes) otherwise."""
        scores = self._scores(data)
        if len(self.classes) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, data: Any) -> NDArray[Any]:
        return self.labels(self.decision_function(data))

    def labels(self, scores: Array) -> NDArray[Any]:
        """What scores of `decision_function` stand for."""
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes[chosen])

    def predict_proba(self, data: Any) -> Array:
        """Probabilities of the classes, in the order of ``classes``."""
        if self.link == "none":
            raise InvalidParameter("only a logistic model has probabilities: train PrivateLogisticRegression")
        scores = self._scores(data)
        if self.link == "softmax":
            return np.asarray(softmax(scores, axis=1))
        if len(self.classes) == 2:
            return expit(np.hstack([-scores, scores]))
        odds = expit(scores) + np.finfo(float).tiny  # all-negative scores underflow together
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def is_learnt_by(self, loss: LossFacts) -> bool:
        """Whether a model of this kind comes from such a loss."""
        return loss.sees != "residual" and self.link == loss.link

    def to_dict(self) -> dict[str, Any]:
        """The public part, for a release's manifest; the coefficients travel as an array."""
        return {
            "encoder": encoder_to_dict(self.encoder),
            "classes": self.classes.tolist(),
            "link": self.link,
        }

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
    ) -> LinearModel:
        """Inverse of ``to_dict`` and ``arrays``; ``kernel`` is the user's function, if one is needed."""
        encoder = encoder_from_dict(record["encoder"], arrays.get("public_points"), kernel)
        model = cls(encoder, arrays["coefficients"], np.array(record["classes"]), record["link"])
        rows = 1 if len(model.classes) == 2 and model.link != "softmax" else len(model.classes)
        known = {loss.link for loss in LOSSES.values()}
        if model.link not in known or model.coefficients.shape != (rows, encoder.dimension):
            raise ReleaseError("the model's arrays do not fit its description")
        return model


@dataclass(frozen=True, eq=False)
class RegressionModel(ScoredFeatures):
    """The score <w, encode(x)>, scaled from [-1, 1] to public bounds and clamped to them.

    Parameters
    ----------
    encoder : SchemaEncoder, ArrayEncoder, FourierEncoder or KernelEncoder
    coefficients : array of shape (1, dimension)
    target_bounds : tuple of two floats
        Public bounds of the numbers it predicts.
    """

    target_bounds: Bounds

    def predict(self, data: Any) -> Array:
        return from_unit(self._scores(data)[:, 0], self.target_bounds)

    def is_learnt_by(self, loss: LossFacts) -> bool:
        """Whether a model of this kind comes from such a loss."""
        return loss.sees == "residual"

    def to_dict(self) -> dict[str, Any]:
        """The public part, for a release's manifest; the coefficients travel as an array."""
        return {"encoder": encoder_to_dict(self.encoder), "target_bounds": list(self.target_bounds)}

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
    ) -> RegressionModel:
        """Inverse of ``to_dict`` and ``arrays``; ``kernel`` is the user's function, if one is needed."""
        encoder = encoder_from_dict(record["encoder"], arrays.get("public_points"), kernel)
        lower, upper = map(float, record["target_bounds"])
        schema = getattr(base_of(encoder), "schema", None)
        stated = schema is None or (schema.target is not None and schema.target.bounds == (lower, upper))
        ordered = lower < upper and np.isfinite(upper - lower)
        if not (stated and ordered) or arrays["coefficients"].shape != (1, encoder.dimension):
            raise ReleaseError("the model's arrays do not fit its description")
        return cls(encoder, arrays["coefficients"], (lower, upper))


Model = LinearModel | RegressionModel


def model_from_dict(
    record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
) -> Model:
    """The model that a release describes: a regression if it states bounds of what it predicts."""
    kind: Any = RegressionModel if "target_bounds" in record else LinearModel
    return kind.from_dict(record, arrays, kernel)  # type: ignore[no-any-return]
