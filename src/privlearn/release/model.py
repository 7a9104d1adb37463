"""A released linear model: public encoder, noisy coefficients, labels. It predicts without any private data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from privlearn.data import BoundedRows, Schema, SchemaEncoder
from privlearn.errors import InvalidParameter, ReleaseError

Array = NDArray[np.float64]
Encoder = SchemaEncoder | BoundedRows

LINK_OF_LOSS = {"logistic": "logistic", "multinomial": "softmax"}
LINKS = ("none", *LINK_OF_LOSS.values())


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores <w_k, encode(x)> over features of norm at most 1.

    Parameters
    ----------
    encoder : SchemaEncoder or BoundedRows
    coefficients : array of shape (problems, dimension)
        One row for two classes (positive score: the second class), one row a class otherwise.
    classes : array
        The declared labels, in the order that decides ties.
    link : {"none", "logistic", "softmax"}
        How scores become probabilities.
    """

    encoder: Encoder
    coefficients: Array
    classes: NDArray[Any]
    link: str

    def decision_function(self, data: Any) -> Array:
        """Scores, of shape (n,) for two classes and (n, classes) otherwise."""
        scores = self._scores(data)
        if len(self.classes) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, data: Any) -> NDArray[Any]:
        scores = self.decision_function(data)
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

    def _scores(self, data: Any) -> Array:
        """One column a row of coefficients."""
        return np.asarray(self.encoder.encode(data) @ self.coefficients.T)

    def to_dict(self) -> dict[str, Any]:
        """The public part, for a release's manifest; the coefficients travel as an array."""
        return {
            "encoder": encoder_to_dict(self.encoder),
            "classes": self.classes.tolist(),
            "link": self.link,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], coefficients: Array) -> LinearModel:
        encoder = _encoder_from_dict(record["encoder"])
        model = cls(encoder, coefficients, np.array(record["classes"]), record["link"])
        rows = 1 if len(model.classes) == 2 and model.link != "softmax" else len(model.classes)
        if model.link not in LINKS or coefficients.shape != (rows, encoder.dimension):
            raise ReleaseError("the model's arrays do not fit its description")
        return model


def encoder_to_dict(encoder: Encoder) -> dict[str, Any]:
    if isinstance(encoder, SchemaEncoder):
        return {"schema": encoder.schema.to_dict(), "fit_intercept": encoder.fit_intercept}
    return {
        "norm_bound": encoder.clip_bound,
        "n_features": encoder.n_features,
        "fit_intercept": encoder.fit_intercept,
    }


def _encoder_from_dict(record: Mapping[str, Any]) -> Encoder:
    if "schema" in record:
        return SchemaEncoder(Schema.from_dict(record["schema"]), fit_intercept=record["fit_intercept"])
    return BoundedRows(record["norm_bound"], record["n_features"], fit_intercept=record["fit_intercept"])
