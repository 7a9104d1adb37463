"""Released models: linear scores of classes or of numbers over public features.

Scores have shape (n, k): n rows, and one column per row of the coefficients, which have shape (k, d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import PIECE, Array
from privlearn.data.encoding.encoder import Bounds, from_unit
from privlearn.errors import InvalidParameter, ReleaseError
from privlearn.imports import special
from privlearn.mechanisms.statistics.score_counts import are_log_odds, log_odds_at
from privlearn.release import encoders
from privlearn.release.decision import Decision
from privlearn.release.score_map import MechanismOutput, ScoreMap, output_from_arrays, score_map_from_dict
from privlearn.solvers.losses import LOSSES, LossProperties

_LABEL_TYPES = {str, bool, int, float}


@dataclass(frozen=True, eq=False)
class ScoredFeatures:
    """Public features, and coefficients over them with one row per score; the base of every released model.

    Parameters
    ----------
    output : MechanismOutput, optional
        The output of the mechanism, if the coefficients follow from it by a public model or public weights.
    score_map : ScoreMap, optional
        How products with the coefficients become scores; by default they are the scores.
    """

    encoder: encoders.Encoder
    coefficients: Array
    output: MechanismOutput | None = field(default=None, kw_only=True)
    score_map: ScoreMap | None = field(default=None, kw_only=True)

    @property
    def constants(self) -> Array:
        """Return the offset of each score."""
        return np.zeros(len(self.coefficients)) if self.score_map is None else self.score_map.offsets

    @property
    def stretches(self) -> Array:
        """Return what each product <w_k, x> is multiplied by."""
        return np.ones(len(self.coefficients)) if self.score_map is None else self.score_map.stretches

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that a file stores."""
        output = {} if self.output is None else self.output.arrays()
        return {"coefficients": self.coefficients} | output | encoders.encoder_arrays(self.encoder)

    def _scores(self, data: Any) -> Array:
        """Return one column per row of coefficients, block by block: encoded rows need far more memory than a
        table."""
        products = np.concatenate(
            [row_scores(block, self.coefficients) for block in encoders.encode_blocks(self.encoder, data)]
        )
        return products if self.score_map is None else self.score_map.apply(products)

    def _map_record(self) -> dict[str, Any]:
        return {} if self.score_map is None else {"score_map": self.score_map.to_dict()}


def row_scores(features: Any, coefficients: Array) -> Array:
    """Return each row's products with the coefficients, so that their bits depend on that row alone.

    Those of numpy's matrix product may depend on the number of rows, and then one record would change others' scores.
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
    """Return the probabilities of the classes: one row per point, from one score per class, or one score for two
    classes."""
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
        For a margin model without a link: log-odds of the second class, learnt from counts of scores.
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
        """Return the scores, of shape (n,) for two classes and (n, classes) otherwise."""
        return self._decisions(self._scores(data))

    def decisions_and_probabilities(self, data: Any) -> tuple[Array, Array | None]:
        """Return `decision_function` and `predict_proba` (None without probabilities), encoding the rows once."""
        scores = self._scores(data)
        return self._decisions(scores), self._probabilities(scores) if self.has_probabilities else None

    def _decisions(self, scores: Array) -> Array:
        if len(self.classes) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, data: Any) -> NDArray[Any]:
        return self.labels(self.decision_function(data))

    def labels(self, scores: Array) -> NDArray[Any]:
        """Return the classes that scores of `decision_function` stand for."""
        chosen = (scores > self._cut).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes[chosen])

    @property
    def threshold(self) -> float:
        """Return the score of `own_scores` above which a model of two classes predicts the second one."""
        chosen = None if self.decision is None else self.decision.threshold
        return chosen if chosen is not None else 0.0 if self.link == "none" else 0.5

    def own_scores(self, data: Any) -> Array:
        """Return the probability of the second of two classes, or the decision function if there are no probabilities.

        Scores are as learnt: without a calibration that was chosen afterwards.
        """
        return self._own(self.decision_function(data))

    def _own(self, decisions: Array) -> Array:
        return decisions if self.link == "none" else np.asarray(special.expit(decisions))

    @property
    def _cut(self) -> float:
        """Return the threshold for `decision_function`."""
        return self.threshold if self.link == "none" else float(special.logit(self.threshold))

    def predict_proba(self, data: Any) -> Array:
        """Return the probabilities of the classes, in the order of ``classes``."""
        if not self.has_probabilities:
            raise InvalidParameter(
                "this model has no probabilities. Train PrivateSVC(probability=True) or PrivateLogisticRegression"
            )
        return self._probabilities(self._scores(data))

    @property
    def has_probabilities(self) -> bool:
        calibrated = self.decision is not None and bool(self.decision.scores)
        return calibrated or self.log_odds is not None or self.link != "none"

    def _probabilities(self, scores: Array) -> Array:
        if self.decision is not None and self.decision.scores:
            likely = self.decision.calibrate(self._own(self._decisions(scores)))
            return np.column_stack([1.0 - likely, likely])
        if self.log_odds is not None:
            odds = log_odds_at(scores, self.log_odds)
            return special.expit(np.hstack([-odds, odds]))
        return probabilities_of(scores, self.link)

    def is_learnt_by(self, loss: LossProperties) -> bool:
        """Return whether a model of this kind comes from such a loss."""
        return loss.argument != "residual" and self.link == loss.link

    def is_weighted_by(self, bound: float) -> bool:
        """Return whether the largest class weight is this; where none is stated, the schema's were used, else 1."""
        target = getattr(getattr(encoders.base_of(self.encoder), "schema", None), "target", None)
        schemas = None if target is None else target.class_weights
        weights = schemas if self.class_weights is None else self.class_weights
        if weights is None:
            return bound == 1.0
        fit = len(weights) == len(self.classes) and all(0.0 < weight <= bound for weight in weights)
        return fit and bound in weights

    def to_dict(self) -> dict[str, Any]:
        """Return the public part as JSON; the coefficients are stored as an array."""
        return {
            "encoder": encoders.encoder_to_dict(self.encoder),
            "classes": self.classes.tolist(),
            "link": self.link,
            **self._map_record(),
            **({} if self.decision is None else {"decision": self.decision.to_dict()}),
            **({} if self.class_weights is None else {"class_weights": list(self.class_weights)}),
        }

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
    ) -> LinearModel:
        """Read the forms of ``to_dict`` and ``arrays``; ``kernel`` is the user's function, if one is needed."""
        encoder = encoders.encoder_from_dict(record["encoder"], arrays, kernel)
        decision = Decision.from_dict(record["decision"]) if "decision" in record else None
        classes, log_odds = _read_classes(record["classes"], encoder), arrays.get("log_odds")
        weights = tuple(record["class_weights"]) if "class_weights" in record else None
        fields = (classes, record["link"], log_odds, decision, weights)
        model = cls(encoder, arrays["coefficients"], *fields, **_optional_parts(record, arrays))
        if decision is not None and len(model.classes) != 2:
            raise ReleaseError("only a model of two classes has a threshold")
        rows = 1 if len(model.classes) == 2 and model.link != "softmax" else len(model.classes)
        known = {loss.link for loss in LOSSES.values()}
        learnt = model.log_odds is None or (
            rows == 1 and model.link == "none" and are_log_odds(model.log_odds)
        )
        if model.link not in known or not _has_coefficients(model, rows) or not learnt:
            raise ReleaseError("the model's arrays do not fit its description")
        return model


def _read_classes(labels: Any, encoder: encoders.Encoder) -> NDArray[Any]:
    """Return the classes of a release file: distinct labels of one type, and those of the schema if there is one."""
    types = {type(label) for label in labels} if isinstance(labels, list) else set()
    if len(types) != 1 or not types <= _LABEL_TYPES or len(set(labels)) < max(len(labels), 2):
        raise ReleaseError("the model's classes must be at least two distinct labels of one type")
    schema = getattr(encoders.base_of(encoder), "schema", None)
    if schema is not None and schema.target is not None and list(schema.target.classes) != labels:
        raise ReleaseError("the model's classes are not those of its schema, in the same order")
    return np.array(labels)


def _has_coefficients(model: ScoredFeatures, rows: int) -> bool:
    """Return whether the coefficients have the model's shape, and differences of scores are finite for every row.

    Features lie between -1 and 1, so a score is at most the sum of the absolute coefficients.
    """
    shape = (rows, model.encoder.dimension)
    with np.errstate(over="ignore"):
        return model.coefficients.shape == shape and bool(np.isfinite(2.0 * np.abs(model.coefficients).sum()))


def _optional_parts(record: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, Any]:
    score_map = score_map_from_dict(record, len(arrays["coefficients"]))
    return {"output": output_from_arrays(arrays), "score_map": score_map}


def target_values(scores: Array, bounds: Bounds | tuple[Bounds, ...]) -> Array:
    """Return numbers between the public bounds for scores of shape (n, k): one target, or several."""
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
        """Return the predictions, of shape (n,) for one number and (n, numbers) for several."""
        return target_values(self._scores(data), self.target_bounds)

    def is_learnt_by(self, loss: LossProperties) -> bool:
        """Return whether a model of this kind comes from such a loss."""
        return loss.argument == "residual"

    def is_weighted_by(self, bound: float) -> bool:
        """Return whether the largest class weight is this; numbers have none."""
        return bound == 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the public part as JSON; the coefficients are stored as an array."""
        return {
            "encoder": encoders.encoder_to_dict(self.encoder),
            "target_bounds": np.array(self.target_bounds).tolist(),
            **self._map_record(),
        }

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
    ) -> RegressionModel:
        """Read the forms of ``to_dict`` and ``arrays``; ``kernel`` is the user's function, if one is needed."""
        encoder = encoders.encoder_from_dict(record["encoder"], arrays, kernel)
        ends = np.array(record["target_bounds"], dtype=np.float64)
        lower, upper = np.atleast_2d(ends).T
        bounds: Any = tuple(ends.tolist()) if ends.ndim == 1 else tuple(map(tuple, ends.tolist()))
        schema = getattr(encoders.base_of(encoder), "schema", None)
        stated = schema is None or (schema.target is not None and schema.target.bounds == bounds)
        ordered = bool(np.all(lower < upper) and np.isfinite(upper - lower).all())
        model = cls(encoder, arrays["coefficients"], bounds, **_optional_parts(record, arrays))
        if not (stated and ordered and _has_coefficients(model, len(lower))):
            raise ReleaseError("the model's arrays do not fit its description")
        return model


Model = LinearModel | RegressionModel


def model_from_dict(
    record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
) -> Model:
    """Return the model that a release describes: a regression if it states bounds of its target."""
    kind: Any = RegressionModel if "target_bounds" in record else LinearModel
    return kind.from_dict(record, arrays, kernel)  # type: ignore[no-any-return]
