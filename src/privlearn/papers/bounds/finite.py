"""RBHT's bounds for finitely many features: what some mechanism achieves, and what no mechanism can do.

"Useful" means within an accuracy at every point, except with probability ``failure``. C = 1 / Lambda in the paper.
"""

from __future__ import annotations

import math

from scipy import stats

from privlearn.errors import InvalidParameter, check_positive, preview


def check_counts(**numbers: int) -> None:
    """Refuse arguments that are not whole numbers of at least 1."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidParameter(f"{name} must be a whole number of at least 1, not {preview(number)}")


def check_failure(failure: float) -> None:
    """Refuse a probability of failure that is not between 0 and 1."""
    if not 0 < failure < 1:
        raise InvalidParameter(f"failure must lie between 0 and 1, e.g. 0.05, not {preview(failure)}")


def sensitivity(
    rows: int, regularization: float, *, lipschitz: float = 1.0, norm_bound: float = 1.0
) -> float:
    """Return how far one replaced record moves the minimiser: ``2 L kappa / (n Lambda)``.

    RBHT Lemma 9 prints ``4 L C kappa / n``; strong convexity gives half of it, for the hinge loss too.
    """
    check_counts(rows=rows)
    check_positive(regularization=regularization, lipschitz=lipschitz, norm_bound=norm_bound)
    return 2.0 * lipschitz * norm_bound / (rows * regularization)


def finite_private_noise(
    epsilon: float,
    rows: int,
    regularization: float,
    features: int,
    *,
    lipschitz: float = 1.0,
    norm_bound: float = 1.0,
) -> float:
    """Return the smallest scale of Laplace noise with which Algorithm 2 is epsilon-private (RBHT Theorem 10).

    **Theorem.** For a convex L-Lipschitz loss and F features with ``k(x, x) <= kappa^2``, Laplace noise of
    scale at least ``sqrt(F) D / epsilon`` on each coefficient, D the L2-sensitivity, is epsilon-differentially
    private. (Print: ``4 L C kappa sqrt(F) / (beta n)``, twice that.)
    """
    check_positive(epsilon=epsilon)
    check_counts(features=features)
    moved = sensitivity(rows, regularization, lipschitz=lipschitz, norm_bound=norm_bound)
    return math.sqrt(features) * moved / epsilon


def finite_useful_noise(accuracy: float, failure: float, features: int, *, entry_bound: float = 1.0) -> float:
    """Return the largest scale of Laplace noise with which Algorithm 2 is useful (RBHT Theorem 11).

    **Theorem.** If no feature exceeds Phi, noise of scale at most ``accuracy / (2 Phi (F log 2 +
    log(1/failure)))`` is useful for every data set. (Print: F instead of F log 2, which its proof gives and its
    Corollary 19 uses.)
    """
    check_positive(accuracy=accuracy, entry_bound=entry_bound)
    check_failure(failure)
    check_counts(features=features)
    return accuracy / (2.0 * entry_bound * (features * math.log(2.0) - math.log(failure)))


def finite_upper_bound(
    accuracy: float,
    failure: float,
    rows: int,
    regularization: float,
    features: int,
    *,
    lipschitz: float = 1.0,
    norm_bound: float = 1.0,
    entry_bound: float = 1.0,
) -> float:
    """Return an epsilon that some useful mechanism satisfies (RBHT Corollary 19).

    **Corollary.** The least epsilon of all useful mechanisms is at most ``4 L kappa Phi sqrt(F) (F log 2 +
    log(1/failure)) / (n Lambda accuracy)``. (Print: 8, and no ``sqrt(F)``: it is lost between Theorem 10 and
    the corollary, whose number has no proof for F above 4.)
    """
    useful = finite_useful_noise(accuracy, failure, features, entry_bound=entry_bound)
    # Epsilon and noise are interchangeable: their product is sqrt(F) D.
    return finite_private_noise(
        useful, rows, regularization, features, lipschitz=lipschitz, norm_bound=norm_bound
    )


def ball_upper_bound(
    accuracy: float,
    failure: float,
    rows: int,
    regularization: float,
    features: int,
    *,
    lipschitz: float = 1.0,
    norm_bound: float = 1.0,
) -> float:
    """Return `finite_upper_bound` for noise with density ``exp(-epsilon |b| / D)`` (CMS11 Algorithm 1): never worse.

    ``|b|`` has the Gamma(F, D/epsilon) distribution and moves no value by more than ``kappa |b|``: the least
    epsilon of all useful mechanisms is at most ``D kappa q / accuracy``, q the upper ``failure`` quantile of
    Gamma(F, 1).
    """
    check_positive(accuracy=accuracy)
    check_failure(failure)
    check_counts(features=features)
    moved = sensitivity(rows, regularization, lipschitz=lipschitz, norm_bound=norm_bound)
    return moved * norm_bound * float(stats.gamma.isf(failure, features)) / accuracy


def linear_accuracy_limit(rows: int, regularization: float) -> float:
    """Return the accuracy below which `linear_lower_bound` applies: ``min(sqrt(C), C) / (2n)``.

    RBHT print ``sqrt(C) / (2n)``; their two data sets lie in the unit ball only if the accuracy is at most ``C
    / (2n)``, which matters for C below 1.
    """
    check_counts(rows=rows)
    check_positive(regularization=regularization)
    return min(1.0 / math.sqrt(regularization), 1.0 / regularization) / (2.0 * rows)


def linear_lower_bound(accuracy: float, failure: float, rows: int, regularization: float) -> float:
    """Return an epsilon that no useful mechanism goes below: hinge loss, linear kernel (RBHT Theorem 23).

    **Theorem.** For n > 1 and ``accuracy < sqrt(C) / (2n)`` every (accuracy, failure)-useful mechanism has
    epsilon at least ``log((1 - failure) / failure)``. Two neighbouring data sets have minimisers more than
    twice the accuracy apart, so the useful answers of one are failures of the other. (Remark 24 prints failure
    >= exp(-epsilon); the theorem gives ``failure >= 1 / (1 + exp(epsilon))``.)
    """
    check_positive(accuracy=accuracy)
    check_failure(failure)
    if rows < 2 or accuracy >= linear_accuracy_limit(rows, regularization):
        return 0.0
    return max(math.log((1.0 - failure) / failure), 0.0)


def rbf_accuracy_limit(rows: int, regularization: float) -> float:
    """Return the accuracy below which `rbf_lower_bound` applies: ``C / (4n)``."""
    check_counts(rows=rows)
    check_positive(regularization=regularization)
    return 1.0 / (4.0 * rows * regularization)


def rbf_packing(gamma: float) -> int:
    """Return N, the number of pairwise neighbouring data sets with distant minimisers, for ``exp(-gamma |x|^2)``.

    ``floor((2 / sigma) sqrt(2 / log 2))`` with ``sigma = 1 / sqrt(2 gamma)``.
    """
    check_positive(gamma=gamma)
    return math.floor(4.0 * math.sqrt(gamma / math.log(2.0)))


def rbf_lower_bound(accuracy: float, failure: float, rows: int, regularization: float, gamma: float) -> float:
    """Return an epsilon that no useful mechanism goes below: hinge loss, RBF kernel, two or more columns (Theorem 26).

    **Theorem.** For ``n > C`` and ``accuracy < C / (4n)`` every (accuracy, failure)-useful mechanism has
    epsilon at least ``log((1 - failure)(N - 1) / failure)``, N as in `rbf_packing`. (Print: only for sigma
    below ``sqrt(1 / (2 log 2))``; the proof needs no more than N >= 2.)
    """
    check_positive(accuracy=accuracy)
    check_failure(failure)
    packing = rbf_packing(gamma)
    if packing < 2 or rows * regularization <= 1.0 or accuracy >= rbf_accuracy_limit(rows, regularization):
        return 0.0
    return max(math.log((1.0 - failure) * (packing - 1) / failure), 0.0)
