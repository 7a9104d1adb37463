"""How many mistakes a model makes on rows, counted so that one record changes the count by at most 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privlearn.estimators.targets import RegressionSet
from privlearn.estimators.work import Work

Array = NDArray[np.float64]

_UNIT = 2.0**20


def count_mistakes(work: Work, coefficients: Array) -> float:
    """Rows whose class is predicted wrongly; for a regression, absolute errors as parts of the target's range.

    A record counts at most 1; where a person's rows are averaged, all of them together do. Each row's part is
    cut to a multiple of 2^-20, so that the sum is exact in any order: sums of whole numbers, below 2^53 for all tables
    of fewer than 2^33 rows.
    """
    parts = _errors(work, coefficients)
    if work.rows.person_weights is not None:
        parts = parts * work.rows.person_weights
    ignored = getattr(work.rows, "ignored", None)
    if ignored is not None:
        parts = np.where(ignored, 0.0, parts)
    return float(np.floor(parts * _UNIT).astype(np.int64).sum()) / _UNIT


def _errors(work: Work, coefficients: Array) -> Array:
    """Of each row, between 0 and 1."""
    rows = work.rows
    scores = np.asarray(rows.features @ coefficients.T, dtype=np.float64)
    if isinstance(rows, RegressionSet):
        return np.minimum(np.abs(np.clip(scores[:, 0], -1.0, 1.0) - rows.targets) / 2.0, 1.0)
    predicted = scores[:, 0] > 0.0 if scores.shape[1] == 1 else np.argmax(scores, axis=1)
    return np.asarray(predicted != rows.labels, dtype=np.float64)  # type: ignore[attr-defined]
