"""What no mechanism can do (RBHT section 6): lower bounds on epsilon for every useful mechanism.

Names as in `finite`. Outside a theorem's range nothing is excluded, and the bound is 0.
"""

from __future__ import annotations

import math

from privlearn.bounds.checks import check_counts, check_failure, check_positive


def linear_accuracy_limit(rows: int, regularization: float) -> float:
    """Accuracies below this one are the range of `linear_lower_bound`: ``min(sqrt(C), C) / (2n)``.

    RBHT print ``sqrt(C) / (2n)``; their two data sets lie in the unit ball only if the accuracy is at most ``C
    / (2n)``, which matters for C below 1.
    """
    check_counts(rows=rows)
    check_positive(regularization=regularization)
    return min(1.0 / math.sqrt(regularization), 1.0 / regularization) / (2.0 * rows)


def linear_lower_bound(accuracy: float, failure: float, rows: int, regularization: float) -> float:
    """RBHT Theorem 23: hinge loss, linear kernel.

    **Theorem.** For n > 1 and ``accuracy < sqrt(C) / (2n)`` every (accuracy, failure)-useful mechanism has
    epsilon at least ``log((1 - failure) / failure)``. Two neighbouring data sets have minimisers more than
    twice the accuracy apart, so the useful answers of one are failures of the other. (Remark 24 prints failure
    >= exp(-epsilon); the theorem says ``failure >= 1 / (1 + exp(epsilon))``.)
    """
    check_positive(accuracy=accuracy)
    check_failure(failure)
    if rows < 2 or accuracy >= linear_accuracy_limit(rows, regularization):
        return 0.0
    return max(math.log((1.0 - failure) / failure), 0.0)


def rbf_accuracy_limit(rows: int, regularization: float) -> float:
    """Accuracies below this one are the range of `rbf_lower_bound`: ``C / (4n)``."""
    check_counts(rows=rows)
    check_positive(regularization=regularization)
    return 1.0 / (4.0 * rows * regularization)


def rbf_packing(gamma: float) -> int:
    """N: how many pairwise neighbouring data sets have minimisers far from each other, for ``exp(-gamma |x|^2)``.

    ``floor((2 / sigma) sqrt(2 / log 2))`` with ``sigma = 1 / sqrt(2 gamma)``.
    """
    check_positive(gamma=gamma)
    return math.floor(4.0 * math.sqrt(gamma / math.log(2.0)))


def rbf_lower_bound(accuracy: float, failure: float, rows: int, regularization: float, gamma: float) -> float:
    """RBHT Theorem 26: hinge loss, RBF kernel, at least two columns.

    **Theorem.** For ``n > C`` and ``accuracy < C / (4n)`` every (accuracy, failure)-useful mechanism has
    epsilon at least ``log((1 - failure)(N - 1) / failure)``, N as in `rbf_packing`. (Print: only for sigma
    below ``sqrt(1 / (2 log 2))``; the proof needs no more than N >= 2.)
    """
    check_positive(accuracy=accuracy)
    check_failure(failure)
    packed = rbf_packing(gamma)
    if packed < 2 or rows * regularization <= 1.0 or accuracy >= rbf_accuracy_limit(rows, regularization):
        return 0.0
    return max(math.log((1.0 - failure) * (packed - 1) / failure), 0.0)
