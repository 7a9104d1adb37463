"""PrivateSVM-Finite (RBHT Algorithm 2): Laplace noise on the coefficients of F features.

RBHT writes C, beta, (epsilon, delta) for what is here ``1 / regularization``, ``epsilon``, ``(accuracy,
failure)``: a released function is (accuracy, failure)-useful if with probability ``1 - failure`` it is nowhere
further than ``accuracy`` from the exact machine's. The argument and the slips of the print are in
docs/theory/bounds.md.
"""

from __future__ import annotations

import math

from scipy import stats

from privlearn.bounds.checks import check_counts, check_failure, check_positive


def sensitivity(
    rows: int, regularization: float, *, lipschitz: float = 1.0, norm_bound: float = 1.0
) -> float:
    """How far one replaced record moves the minimiser: ``2 L kappa / (n Lambda)``.

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
    """RBHT Theorem 10: the least scale of Laplace noise with which Algorithm 2 is epsilon-private.

    **Theorem.** For a convex L-Lipschitz loss and F features with ``k(x, x) <= kappa^2``, Laplace noise of
    scale at least ``sqrt(F) D / epsilon`` on each coefficient, D the L2-sensitivity, is epsilon-differentially
    private. (Print: ``4 L C kappa sqrt(F) / (beta n)``, twice that.)
    """
    check_positive(epsilon=epsilon)
    check_counts(features=features)
    moved = sensitivity(rows, regularization, lipschitz=lipschitz, norm_bound=norm_bound)
    return math.sqrt(features) * moved / epsilon


def finite_useful_noise(accuracy: float, failure: float, features: int, *, entry_bound: float = 1.0) -> float:
    """RBHT Theorem 11: the largest scale of Laplace noise with which Algorithm 2 is (accuracy, failure)-useful.

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
    """RBHT Corollary 19: an epsilon that some (accuracy, failure)-useful mechanism keeps.

    **Corollary.** The least epsilon of all useful mechanisms is at most ``4 L kappa Phi sqrt(F) (F log 2 +
    log(1/failure)) / (n Lambda accuracy)``. (Print: 8, and no ``sqrt(F)``: it is lost between Theorem 10 and
    the corollary, whose number has no proof for F above 4.)
    """
    useful = finite_useful_noise(accuracy, failure, features, entry_bound=entry_bound)
    return finite_private_noise(
        useful, rows, regularization, features, lipschitz=lipschitz, norm_bound=norm_bound
    )  # epsilon and noise change places: their product is sqrt(F) D


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
    """The same for noise with density ``exp(-epsilon |b| / D)`` (CMS11 Algorithm 1): never worse, often much better.

    ``|b|`` has the Gamma(F, D/epsilon) distribution and moves no value by more than ``kappa |b|``: the least
    epsilon of all useful mechanisms is at most ``D kappa q / accuracy``, q the upper ``failure`` quantile of
    Gamma(F, 1).
    """
    check_positive(accuracy=accuracy)
    check_failure(failure)
    check_counts(features=features)
    moved = sensitivity(rows, regularization, lipschitz=lipschitz, norm_bound=norm_bound)
    return moved * norm_bound * float(stats.gamma.isf(failure, features)) / accuracy
