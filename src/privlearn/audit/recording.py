"""Randomness that can be replayed, and remembers what it was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privlearn.randomness import Integers, SeededRandomness

Draw = tuple[Any, ...]


@dataclass
class RecordingRandomness:
    """A seeded source; ``draws`` lists each call with its parameters, not its result."""

    seed: int
    draws: list[Draw] = field(default_factory=list)

    description = SeededRandomness.description
    secure = False

    def __post_init__(self) -> None:
        self._source = SeededRandomness(self.seed)

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        self.draws.append(("discrete_gaussian", scale, size))
        return self._source.discrete_gaussian(scale, size)

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        self.draws.append(("discrete_laplace", scale, size))
        return self._source.discrete_laplace(scale, size)

    def bits(self, count: int) -> int:
        self.draws.append(("bits", count))
        return self._source.bits(count)


@dataclass
class RecordingFit:
    """A solver that remembers what it was asked and what it answered."""

    solve: Any
    asked: list[tuple[Any, float]] = field(default_factory=list)
    found: list[Any] = field(default_factory=list)

    def __call__(self, linear: Any, regularization: float) -> Any:
        self.asked.append((None if linear is None else np.array(linear), regularization))
        self.found.append(self.solve(linear, regularization))
        return self.found[-1]

    def asked_the_same(self, other: RecordingFit) -> bool:
        return len(self.asked) == len(other.asked) and all(
            mine[1] == theirs[1] and np.array_equal(mine[0], theirs[0])
            for mine, theirs in zip(self.asked, other.asked, strict=True)
        )
