"""What is chosen for a model of two classes after it was learnt: where it says the second class, and how likely."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, VerificationError


@dataclass(frozen=True)
class Decision:
    """A threshold, and a monotone map from scores to probabilities.

    Scores are the model's own: the probability of the second class, or its decision function if it has no
    probabilities.

    Parameters
    ----------
    threshold : float, optional
        Scores above it are the second class; by default 0.5, or 0.
    scores, probabilities : tuple of float
        Corners of the map, both not decreasing; between them it is linear. Empty if probabilities stay as they are.
    """

    threshold: float | None = None
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = [*self.scores, *self.probabilities, *([] if self.threshold is None else [self.threshold])]
        rising = all(
            one <= other
            for corners in (self.scores, self.probabilities)
            for one, other in itertools.pairwise(corners)
        )
        bounded = all(0.0 <= value <= 1.0 for value in self.probabilities)
        if not (numbers and all(map(math.isfinite, numbers)) and rising and bounded):
            raise InvalidParameter("a decision is a threshold, or a rising map from scores to probabilities")
        if len(self.scores) != len(self.probabilities):
            raise InvalidParameter("a map from scores to probabilities has as many of these as of those")

    def calibrated(self, scores: Array) -> Array:
        """Probabilities of the second class."""
        return np.asarray(np.interp(scores, self.scores, self.probabilities))

    def to_dict(self) -> dict[str, Any]:
        """For a release's file."""
        return {
            "threshold": self.threshold,
            "scores": list(self.scores),
            "probabilities": list(self.probabilities),
        }


def decision_from_dict(record: Mapping[str, Any]) -> Decision:
    """Inverse of `Decision.to_dict`."""
    if set(record) != {"threshold", "scores", "probabilities"}:
        raise VerificationError("a decision states threshold, scores and probabilities")
    return Decision(record["threshold"], tuple(record["scores"]), tuple(record["probabilities"]))
