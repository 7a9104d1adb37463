"""Decision rules chosen after training: a threshold and a calibration curve for two-class models.

Both are post-processing of a released model and its evaluation, so they cost no privacy budget. A model gives n rows
scores of shape (n,). The threshold turns them into classes; the curve turns them into probabilities (n,), linearly
between its knots and constant outside. Neither depends on the other:

>>> rule = Decision(threshold=-0.2, scores=(-1.0, 0.0, 2.0), probabilities=(0.1, 0.4, 0.9))
>>> scores = np.array([-5.0, -0.5, 0.0, 1.0])
>>> scores > rule.threshold
array([False, False,  True,  True])
>>> rule.calibrate(scores)
array([0.1 , 0.25, 0.4 , 0.65])
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, VerificationError


@dataclass(frozen=True)
class Decision:
    """Decision rule for a two-class model.

    Scores are the model's probabilities of the second class or, for models without
    probabilities, the values of its decision function.

    Parameters
    ----------
    threshold : float, optional
        Predict the second class for scores above this value. Default: 0.5 for probabilities,
        0 for decision functions.
    scores, probabilities : tuple of float
        Knots of a piecewise linear calibration curve from scores to probabilities, both in
        non-decreasing order. Leave both empty to keep the model's own probabilities.
    """

    threshold: float | None = None
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.threshold is None and not self.scores:
            raise InvalidParameter(
                "pass a threshold, a calibration curve (scores and probabilities), or both"
            )
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise InvalidParameter("threshold must be a finite number")
        if len(self.scores) != len(self.probabilities):
            raise InvalidParameter("scores and probabilities must have the same length")
        _check_knots("scores", self.scores)
        _check_knots("probabilities", self.probabilities)
        if any(not 0.0 <= p <= 1.0 for p in self.probabilities):
            raise InvalidParameter("probabilities must lie between 0 and 1")

    def calibrate(self, scores: Array) -> Array:
        """Return the calibrated probability of the second class for each score."""
        return np.asarray(np.interp(scores, self.scores, self.probabilities))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that is stored in a release file."""
        return {
            "threshold": self.threshold,
            "scores": list(self.scores),
            "probabilities": list(self.probabilities),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Decision:
        """Read the JSON form of `to_dict`; refuse missing and unknown fields."""
        if set(record) != {"threshold", "scores", "probabilities"}:
            raise VerificationError("a decision must have exactly: threshold, scores, probabilities")
        return cls(record["threshold"], tuple(record["scores"]), tuple(record["probabilities"]))


def _check_knots(name: str, values: Sequence[float]) -> None:
    if not all(map(math.isfinite, values)):
        raise InvalidParameter(f"{name} must be finite numbers")
    if any(left > right for left, right in itertools.pairwise(values)):
        raise InvalidParameter(f"{name} must be in non-decreasing order")
