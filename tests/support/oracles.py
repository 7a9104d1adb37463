"""Oracles of which a test writes down the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privlearn.arrays import Array
from privlearn.mechanisms.summed import NoisySum, Question


@dataclass(frozen=True, eq=False)
class Solver:
    """MinimiserOracle by a function."""

    minimise: Callable[[Array | None, float], Array]
    points: Array | None = None


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums by a function."""

    ask: Callable[[Question], NoisySum]
