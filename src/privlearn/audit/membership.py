"""Membership inference by likelihood ratio (LiRA): was this record among those a model was trained on?

The attacker knows the record, the mechanism and people like those in the data. They train shadow models on random
halves of a pool of such people, record each record's margin under models trained with it and without it, fit a Gaussian
to each of the two, and score released models by the ratio of the two densities (Carlini et al. 2022). Other audits ask
whether a guarantee is broken on the worst table; this one measures what an attacker gains on a real one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privlearn.arrays import Array
from privlearn.audit.black_box import replacement_guarantee
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee

Flags = NDArray[np.bool_]

MIN_MODELS = 16
"""Minimum number of shadow models; about half of them are trained with a given record."""


@dataclass(frozen=True, eq=False)
class MembershipAttack:
    """Result of an attack on models that were not among the shadow models.

    Attributes
    ----------
    scores : array of shape (models, records)
        Logarithm of the likelihood ratio; above 0 the attacker guesses "member".
    members : array of bool, of the same shape
        Whether the record was in the training half of the model.
    """

    scores: Array
    members: Flags

    @property
    def advantage(self) -> float:
        """True minus false positive rate of guessing "member" at likelihood ratios above 1; 0 without information."""
        return float(self._advantages().mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the advantage over models, since guesses about one model are not independent."""
        advantages = self._advantages()
        return float(advantages.std(ddof=1) / math.sqrt(len(advantages)))

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Return the share of members identified at this false positive rate."""
        others = self.scores[~self.members]
        return float(np.mean(self.scores[self.members] > np.quantile(others, 1.0 - false_positive_rate)))

    def _advantages(self) -> Array:
        """Return each model's true minus false positive rate, an array of shape (models,)."""
        guesses = self.scores > 0.0
        half = self.scores.shape[1] // 2
        return np.asarray((guesses & self.members).sum(1) / half - (guesses & ~self.members).sum(1) / half)


def membership_attack(
    make: Callable[[int], Any],
    X: Array,
    y: NDArray[Any],
    *,
    shadows: int = 256,
    attacked: int = 256,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> MembershipAttack:
    """Attack models of two or more classes that are trained on random halves of a pool.

    Parameters
    ----------
    make : callable
        ``make(seed)`` returns a new estimator, with ``fit``, ``classes_`` and ``decision_function``.
    X, y : arrays
        The pool, an even number of records, all of which are attacked.
    shadows, attacked : int, default=256
        Number of models that the attacker learns from, and of fresh models to attack.
    seed : int, default=0
        Seed of the halves; model i gets ``seed + i``.
    progress : callable, optional
        Called with (models trained, all models).

    Returns
    -------
    MembershipAttack

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 40)), rng.integers(0, 2, 60)
    >>> plain = membership_attack(lambda seed: LogisticRegression(C=100.0), X, y, shadows=64, attacked=16)
    >>> plain.advantage > 0.5
    True
    """
    _check(X, y, shadows, attacked)
    margins, members = np.empty((shadows + attacked, len(y))), np.zeros((shadows + attacked, len(y)), bool)
    for model, half in enumerate(_halves(len(y), shadows + attacked, seed)):
        members[model, half] = True
        margins[model] = _margins(make(seed + model).fit(X[half], y[half]), X, y)
        if progress is not None:
            progress(model + 1, shadows + attacked)
    ratio = _log_ratio(margins[:shadows], members[:shadows])
    return MembershipAttack(ratio(margins[shadows:]), members[shadows:])


def advantage_ceiling(guarantee: Guarantee) -> float:
    """Return the maximum true minus false positive rate of any attack under the guarantee."""
    epsilon, delta = replacement_guarantee(guarantee)
    return min(1.0, math.tanh(epsilon / 2.0) + 2.0 * delta / (1.0 + math.exp(min(epsilon, 700.0))))


def true_positive_ceiling(guarantee: Guarantee, false_positive_rate: float) -> float:
    """Return the maximum true positive rate of any attack with this false positive rate."""
    epsilon, delta = replacement_guarantee(guarantee)
    by_members = math.exp(min(epsilon, 700.0)) * false_positive_rate + delta
    by_others = 1.0 - math.exp(-epsilon) * (1.0 - delta - false_positive_rate)
    return min(1.0, by_members, by_others)


def _halves(count: int, models: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Yield random halves. Suitably coupled, a half with a record and one without differ by one replaced record."""
    rng = np.random.default_rng(seed)
    for _ in range(models):
        yield rng.permutation(count)[: count // 2]


def _margins(model: Any, X: Array, y: NDArray[Any]) -> Array:
    """Return each record's score of its own class minus the highest other one; for two classes, the log-odds."""
    scores = np.asarray(model.decision_function(X), dtype=float)
    if scores.ndim == 1:
        return np.where(y == model.classes_[1], scores, -scores)
    own_class = np.searchsorted(model.classes_, y)[:, np.newaxis]
    own_score = np.take_along_axis(scores, own_class, axis=1)[:, 0]
    np.put_along_axis(scores, own_class, -np.inf, axis=1)  # so that the maximum is over the other classes
    return np.asarray(own_score - scores.max(axis=1))


def _log_ratio(margins: Array, members: Flags) -> Callable[[Array], Array]:
    """Return the log ratio of two Gaussians per record, fitted to shadow models with and without the record."""

    def fit(selected: Flags) -> tuple[Array, Array]:
        values = np.where(selected, margins, np.nan)
        deviation = np.nanstd(values, axis=0)
        return np.nanmean(values, axis=0), np.maximum(deviation, 1e-12 + 1e-9 * np.abs(margins).max())

    (mean, deviation), (mean_without, deviation_without) = fit(members), fit(~members)
    return lambda seen: np.asarray(
        stats.norm.logpdf(seen, mean, deviation) - stats.norm.logpdf(seen, mean_without, deviation_without)
    )


def _check(X: Array, y: NDArray[Any], shadows: int, attacked: int) -> None:
    if len(X) != len(y) or len(y) < 4 or len(y) % 2:
        raise InvalidParameter(
            "the pool must have an even number of records, at least 4, and a label for each. Add or remove one."
        )
    if shadows < MIN_MODELS or attacked < 2:
        raise InvalidParameter(f"shadows must be at least {MIN_MODELS} and attacked at least 2. Train more")
