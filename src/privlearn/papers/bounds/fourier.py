"""PrivateSVM (RBHT Algorithm 3): Laplace noise on the coefficients of random Fourier features.

Names as in `finite`. The argument and the errors of the print are in docs/theory/bounds.md.
"""

from __future__ import annotations

import math

from privlearn.errors import InvalidParameter, check_positive, preview
from privlearn.papers.bounds.finite import check_counts, check_failure, finite_private_noise

DIAMETER = 2.0  # of the unit ball, where encoded rows lie


def frequency_moment(kernel: str, dimension: int, gamma: float) -> float:
    """Return ``sigma_p = sqrt(E |w|^2)`` for the frequencies w of a translation-invariant kernel.

    RBF ``exp(-gamma |x|^2)``: ``sqrt(2 gamma d)``. Cauchy ``prod 1 / (1 + (gamma x_j)^2)``: ``gamma sqrt(2
    d)``. The Laplacian's frequencies have no second moment, so Theorem 13, which lists it, does not
    apply to it.
    """
    check_counts(dimension=dimension)
    check_positive(gamma=gamma)
    if kernel == "rbf":
        return math.sqrt(2.0 * gamma * dimension)
    if kernel == "cauchy":
        return gamma * math.sqrt(2.0 * dimension)
    raise InvalidParameter(
        f"kernel must be 'rbf' or 'cauchy', not {preview(kernel)}. The theorem needs frequencies with a second moment"
    )


def fourier_features(
    accuracy: float,
    failure: float,
    regularization: float,
    dimension: int,
    moment: float,
    *,
    lipschitz: float = 1.0,
    diameter: float = DIAMETER,
) -> int:
    """Return a sufficient number of random frequencies, d-hat, with two features each (RBHT Theorem 13, first part).

    **Theorem.** With ``theta = min(1, accuracy^4 / (2^4 (Lambda_1 + 2 sqrt((C L + Lambda_1 / 2)
    Lambda_1))^4))``, where ``Lambda_1`` bounds the L1-norm of the dual variables in both spaces (``C L`` does,
    for every L-Lipschitz loss), and ``d-hat >= 4 (d + 2) / theta log(2^9 (sigma_p diam)^2 / (failure theta))``,
    the machine over the random features is within ``accuracy / 2`` of the exact one, everywhere on a set of
    that diameter, except with probability ``failure / 2``.
    """
    check_positive(accuracy=accuracy, moment=moment, diameter=diameter)
    check_positive(regularization=regularization, lipschitz=lipschitz)
    check_failure(failure)
    check_counts(dimension=dimension)
    dual_norm = lipschitz / regularization
    reach = dual_norm + 2.0 * math.sqrt(1.5 * dual_norm * dual_norm)
    theta = min(1.0, (accuracy / (2.0 * reach)) ** 4)
    # Rahimi and Recht's claim needs a set no smaller than the allowed error; a larger set does no harm
    size = max((moment * diameter) ** 2, theta)
    return math.ceil(4.0 * (dimension + 2) / theta * math.log(2.0**9 * size / (failure * theta)))


def fourier_useful_noise(accuracy: float, failure: float, frequencies: int) -> float:
    """Return the largest scale of Laplace noise with which Algorithm 3 is useful (RBHT Theorem 13, second part).

    **Theorem.** ``min(accuracy / (2^4 log(2) sqrt(d-hat)), accuracy sqrt(d-hat) / (8 log(2 / failure)))`` moves
    no value by more than ``accuracy / 2``, except with probability ``failure / 2``.
    """
    check_positive(accuracy=accuracy)
    check_failure(failure)
    check_counts(frequencies=frequencies)
    root = math.sqrt(frequencies)
    return min(accuracy / (16.0 * math.log(2.0) * root), accuracy * root / (8.0 * math.log(2.0 / failure)))


def fourier_private_noise(
    epsilon: float, rows: int, regularization: float, frequencies: int, *, lipschitz: float = 1.0
) -> float:
    """Return the noise of Theorem 10 for the 2 d-hat features, whose rows have norm 1 (RBHT Corollary 12)."""
    check_counts(frequencies=frequencies)
    return finite_private_noise(epsilon, rows, regularization, 2 * frequencies, lipschitz=lipschitz)


def fourier_upper_bound(
    accuracy: float,
    failure: float,
    rows: int,
    regularization: float,
    dimension: int,
    moment: float,
    *,
    lipschitz: float = 1.0,
    diameter: float = DIAMETER,
) -> float:
    """Return an epsilon that some useful mechanism satisfies, with constants (RBHT Theorem 21).

    Corollary 12 and Theorem 13 together: ``2^1.5 L C sqrt(d-hat) / (n noise)``. It grows like ``C^5 /
    (accuracy^5 n)`` up to logarithms. (Print: ``O(C / (accuracy^3 n) log^1.5)``: its proof reads ``log(2)
    sqrt(d-hat)`` as ``log(2 sqrt(d-hat))`` and drops ``C^4`` from d-hat.)
    """
    frequencies = fourier_features(
        accuracy, failure, regularization, dimension, moment, lipschitz=lipschitz, diameter=diameter
    )
    noise = fourier_useful_noise(accuracy, failure, frequencies)
    return fourier_private_noise(noise, rows, regularization, frequencies, lipschitz=lipschitz)
