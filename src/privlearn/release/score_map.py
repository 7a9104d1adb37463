"""Offsets of a model's scores, from the shares of classes, which are public or released: docs/theory/offsets.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import ReleaseError


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """How products <w_k, x> become scores: ``offsets + <w_k, x>``, with public or released offsets of shape (k,)."""

    offsets: Array

    def apply(self, products: Array) -> Array:
        """Return the scores of products of shape (n, k)."""
        return products + self.offsets

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"offsets": self.offsets.tolist()}


def score_map_from_dict(record: Mapping[str, Any], rows: int) -> ScoreMap | None:
    """Read the form of `ScoreMap.to_dict` in a model's record; return None where products are scores."""
    if "score_map" not in record:
        return None
    if set(record["score_map"]) != {"offsets"}:
        raise ReleaseError("the model's map of scores has unknown parts")
    offsets = np.array(record["score_map"]["offsets"], dtype=np.float64)
    if offsets.shape != (rows,) or not np.isfinite(offsets).all():
        raise ReleaseError("the model's map of scores does not fit its coefficients")
    return ScoreMap(offsets)


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
