"""From a mechanism's output to the scores of a model, in two steps.

1. `MechanismOutput`: the mechanism releases numbers u on the grid of its noise. With a public prior and public weights
   in the regularizer, the coefficients are (u + prior) * scales.
2. `ScoreMap`: the score of a row x is offset + stretch * <coefficients, x>. Offsets follow from the shares of classes,
   stretches from a target's centre and spread. Both are public or released (docs/theory/offsets.md).

`check_grid` checks any noisy numbers: they lie on a grid, so a stated noise scale that is too large shows in their last
bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.target import Target
from privlearn.errors import ReleaseError, VerificationError
from privlearn.solvers.losses import LossProperties

NAMES = ("mechanism", "prior", "scales")


@dataclass(frozen=True, eq=False)
class MechanismOutput:
    """Coefficients u on the grid of the noise; the model's are (u + prior) * scales, one operation per number.

    Parameters
    ----------
    coefficients : array of shape (rows, features)
        The numbers u that the mechanism released.
    prior : array of the same shape, optional
        Public: the model of ``regularize_towards`` over the scaled features, rounded to the same grid.
    scales : array of shape (features,), optional
        Public: 1/sqrt(g) of ``regularization_weights`` g.
    """

    coefficients: Array
    prior: Array | None = None
    scales: Array | None = None

    @property
    def model_coefficients(self) -> Array:
        """Return the coefficients of the model, before any refinement."""
        shifted = self.coefficients if self.prior is None else self.coefficients + self.prior
        return shifted if self.scales is None else shifted * self.scales

    def arrays(self) -> dict[str, Array]:
        """Return the members of a release file, by name."""
        named = zip(NAMES, (self.coefficients, self.prior, self.scales), strict=True)
        return {name: array for name, array in named if array is not None}


def prior_norm(prior: Array | None) -> float:
    """Return the norm of the longest row; no row of features of norm at most 1 has a larger score."""
    return 0.0 if prior is None else float(np.linalg.norm(prior, axis=1).max())


def largest_ridge(scales: Array | None) -> float:
    """Return the largest weight of a coefficient in the regularizer; 1 without weights."""
    return 1.0 if scales is None else float((1.0 / scales**2).max())


def output_from_arrays(arrays: Mapping[str, Array]) -> MechanismOutput | None:
    """Read the form of `MechanismOutput.arrays`; return None where the model is the mechanism's output itself."""
    if "mechanism" not in arrays:
        return None
    return MechanismOutput(arrays["mechanism"], arrays.get("prior"), arrays.get("scales"))


def on_grid(values: Array, step: float) -> Array:
    """Return the nearest multiples of the step; a number of 2^53 steps or more is one already."""
    small = np.abs(values) < 2.0**53 * step
    return np.where(small, np.rint(np.where(small, values, 0.0) / step) * step, values)


def check_grid(values: Array, step: float, what: str) -> None:
    """Refuse values that are not multiples of the step, a power of two."""
    steps = np.asarray(values) / step
    if not np.array_equal(steps, np.rint(steps)):
        raise VerificationError(
            f"the {what} do not lie on the grid of the stated noise: the stated scale is wrong"
        )


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
