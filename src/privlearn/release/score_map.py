"""How a model's products with rows become scores: offsets from the shares of classes, units from centre and spread.

Both are public or released; the argument is in docs/theory/offsets.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.target import Target
from privlearn.errors import ReleaseError
from privlearn.solvers.losses import LossProperties

MIN_STRETCH = 2.0**-30
"""Smallest unit of a target, relative to half of its range: a public spread may be any number above 0."""

MAX_TARGET = 3.0
"""Standardised targets are cut to this many units; Huber's loss has the same derivative far beyond."""

UNITS_OF_SPREAD = 5.0
"""A target's unit, in spreads: a spread is then 0.2 units, the width of Huber's loss and the deviation that default
regularization assumes."""


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """How products <w_k, x> become scores: ``offsets + stretch * <w_k, x>``, both public or released.

    Parameters
    ----------
    offsets : array of shape (k,)
    stretch : array of shape (k,), optional
        Above 0; 1 by default.
    """

    offsets: Array
    stretch: Array | None = None

    @property
    def stretches(self) -> Array:
        """Return the stretch of each score, 1 by default."""
        return np.ones(len(self.offsets)) if self.stretch is None else self.stretch

    def apply(self, products: Array) -> Array:
        """Return the scores of products of shape (n, k)."""
        return products * self.stretches + self.offsets

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        stretch = {} if self.stretch is None else {"stretch": self.stretch.tolist()}
        return {"offsets": self.offsets.tolist()} | stretch


def score_map_from_dict(record: Mapping[str, Any], rows: int) -> ScoreMap | None:
    """Read the form of `ScoreMap.to_dict` in a model's record; return None where products are scores."""
    if "score_map" not in record:
        return None
    entry = record["score_map"]
    numbers = {name: np.array(entry[name], dtype=np.float64) for name in entry}
    if not set(numbers) <= {"offsets", "stretch"} or "offsets" not in numbers:
        raise ReleaseError("the model's map of scores has unknown parts")
    if any(part.shape != (rows,) or not np.isfinite(part).all() for part in numbers.values()):
        raise ReleaseError("the model's map of scores does not fit its coefficients")
    if "stretch" in numbers and not (numbers["stretch"] > 0.0).all():
        raise ReleaseError("the model's map of scores must increase")
    return ScoreMap(**numbers)


def offsets_of_shares(shares: Array, class_weights: Array | None, together: bool) -> Array:
    """Return the scores of the best constant model of classes with these shares, each above 0.

    Parameters
    ----------
    shares : array of shape (classes,)
    class_weights : array of shape (classes,), optional
    together : bool
        True for the softmax loss, with a score per class; else each class is compared with the rest, of two classes
        the second one.
    """
    weighted = shares if class_weights is None else shares * class_weights
    logs = np.log(weighted / weighted.sum())
    if together:
        return np.asarray(logs - logs.mean())
    odds = np.array([share - np.logaddexp.reduce(np.delete(logs, k)) for k, share in enumerate(logs)])
    return odds[1:] if len(odds) == 2 else odds


def map_of_target(target: Target, class_weights: Array | None, loss: LossProperties) -> ScoreMap | None:
    """Return the offsets or the unit that a schema's target states; None if it states no rates or typical numbers."""
    if target.bounds is not None:
        if target.typical is None or target.spread is None:
            return None
        return map_of_locations(target.bounds, [(target.typical, target.spread)])
    if target.shares is None or loss.link == "none":
        return None
    return ScoreMap(offsets_of_shares(np.array(target.shares), class_weights, loss.argument == "classes"))


def map_of_locations(bounds: Any, locations: Sequence[tuple[float, float]]) -> ScoreMap:
    """Return the map to numbers scaled from their bounds to [-1, 1], of scores in units of a spread around a centre."""
    lower, upper = np.atleast_2d(bounds).T
    centres, spreads = np.array(locations).T
    half = (upper - lower) / 2.0
    units = np.clip(UNITS_OF_SPREAD * (spreads / half), MIN_STRETCH, 1.0)  # divided first: no bounds overflow
    return ScoreMap((centres - lower - half) / half, units)
