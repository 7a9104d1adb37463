"""What a session says about points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Source = Literal["noisy", "guess", "exhausted"]
"""``noisy``: the private function's value plus noise. ``guess``: PINP's public function, which passed the private test.
``exhausted``: PINP's public function, no longer compared with the private one."""


@dataclass(frozen=True)
class Answer:
    """The answer at one point."""

    scores: Array
    source: Source


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers at one point or many: scalars for one point, arrays otherwise.

    Attributes
    ----------
    scores : float or array
        Of two classes: above 0 is the second. Of a number: -1 to 1 stands for its bounds. Of several classes: a score
        for each, of which the largest decides.
    predictions : label or number, or array of them
    sources : str or array of str
        See `Source`; a session that has used up its budget says ``exhausted``.
    """

    scores: Any
    predictions: Any
    sources: Any

    @classmethod
    def of(
        cls, answers: list[Answer], predicted: Callable[[Array], NDArray[Any]], *, single: bool
    ) -> Answers:
        scores = np.array([answer.scores for answer in answers])
        sources = np.array([answer.source for answer in answers])
        predictions = predicted(scores)
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        return (
            cls(scores[0], predictions[0], str(sources[0])) if single else cls(scores, predictions, sources)
        )
