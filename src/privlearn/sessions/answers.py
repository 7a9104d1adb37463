"""What a session says about points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Source = Literal["noisy", "guess", "exhausted"]
"""``noisy``: the private function's value plus noise. ``guess``: PINP's public function, which passed the private test.
``exhausted``: PINP's public function, no longer compared with the private one."""


@dataclass(frozen=True)
class Answer:
    """The answer at one point."""

    score: float
    source: Source


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers at one point or many: scalars for one point, arrays otherwise.

    Attributes
    ----------
    scores : float or array
        Above 0: the second class.
    labels : label or array of labels
    sources : str or array of str
        See `Source`; a session that has used up its budget says ``exhausted``.
    """

    scores: Any
    labels: Any
    sources: Any

    @classmethod
    def of(cls, answers: list[Answer], classes: NDArray[Any], *, single: bool) -> Answers:
        scores = np.array([answer.score for answer in answers])
        sources = np.array([answer.source for answer in answers])
        labels = classes[(scores > 0).astype(np.intp)]
        return cls(scores[0], labels[0], str(sources[0])) if single else cls(scores, labels, sources)
