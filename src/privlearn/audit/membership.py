"""Membership inference by likelihood ratio (LiRA): was this record among those a model was trained on?

The attacker knows the record, the mechanism and people like those in the data. They train shadow models on random
halves of a pool of such people, note each record's margin under models that had seen it and under models that had not,
fit a Gaussian to either, and judge released models by the ratio of the two densities (Carlini et al. 2022). An audit
asks whether a promise is broken on the worst table; this asks what an attacker gains on a real one.
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
from privlearn.audit.black_box import promise_for_replacement
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee

Flags = NDArray[np.bool_]

FEWEST_MODELS = 16
"""Shadow models, of which about half have seen a given record: fewer do not show a spread."""


@dataclass(frozen=True, eq=False)
class MembershipAttack:
    """How an attack went, over models that it had not learnt from.

    Attributes
    ----------
    scores : array of shape (models, records)
        Logarithm of the likelihood ratio; above 0 the attacker says "was in it".
    members : array of bool, of the same shape
        The truth.
    """

    scores: Array
    members: Flags

    @property
    def advantage(self) -> float:
        """True minus false positive rate of saying "was in it" at likelihood ratios above 1; 0 is guessing."""
        return float(self._advantages().mean())

    @property
    def standard_error(self) -> float:
        """Of the advantage. The unit is the model: verdicts on records of one model are not independent."""
        each = self._advantages()
        return float(each.std(ddof=1) / math.sqrt(len(each)))

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Share of the members found when at most that share of the others is accused."""
        others = self.scores[~self.members]
        return float(np.mean(self.scores[self.members] > np.quantile(others, 1.0 - false_positive_rate)))

    def _advantages(self) -> Array:
        guessed = self.scores > 0.0
        half = self.scores.shape[1] // 2
        return np.asarray((guessed & self.members).sum(1) / half - (guessed & ~self.members).sum(1) / half)


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
        The pool, an even number of records: all of them are attacked.
    shadows, attacked : int, default=256
        Models that the attacker learns from, and fresh ones that are judged.
    seed : int, default=0
        Of the halves; the models get seeds of their own.
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
    """No attack, whatever it knows, has a larger true minus false positive rate."""
    epsilon, delta = promise_for_replacement(guarantee)
    return min(1.0, math.tanh(epsilon / 2.0) + 2.0 * delta / (1.0 + math.exp(min(epsilon, 700.0))))


def true_positive_ceiling(guarantee: Guarantee, false_positive_rate: float) -> float:
    """No attack that accuses this share of the others finds a larger share of the members."""
    epsilon, delta = promise_for_replacement(guarantee)
    by_members = math.exp(min(epsilon, 700.0)) * false_positive_rate + delta
    by_others = 1.0 - math.exp(-epsilon) * (1.0 - delta - false_positive_rate)
    return min(1.0, by_members, by_others)


def _halves(count: int, models: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Random halves. A half with a record and one without it differ, suitably coupled, by one replaced record."""
    rng = np.random.default_rng(seed)
    for _ in range(models):
        yield rng.permutation(count)[: count // 2]


def _margins(model: Any, X: Array, y: NDArray[Any]) -> Array:
    """How far each record's own class is ahead: the log-odds of logistic regression."""
    scores = np.asarray(model.decision_function(X), dtype=float)
    if scores.ndim == 1:
        return np.where(y == model.classes_[1], scores, -scores)
    own = np.searchsorted(model.classes_, y)[:, np.newaxis]
    ahead = np.take_along_axis(scores, own, axis=1)[:, 0]
    np.put_along_axis(scores, own, -np.inf, axis=1)
    return np.asarray(ahead - scores.max(axis=1))


def _log_ratio(margins: Array, members: Flags) -> Callable[[Array], Array]:
    """Of two Gaussians per record, fitted to the shadow models with it and to those without it."""

    def fitted(chosen: Flags) -> tuple[Array, Array]:
        some = np.where(chosen, margins, np.nan)
        spread = np.nanstd(some, axis=0)
        return np.nanmean(some, axis=0), np.maximum(spread, 1e-12 + 1e-9 * np.abs(margins).max())

    (mean, spread), (mean_without, spread_without) = fitted(members), fitted(~members)
    return lambda seen: np.asarray(
        stats.norm.logpdf(seen, mean, spread) - stats.norm.logpdf(seen, mean_without, spread_without)
    )


def _check(X: Array, y: NDArray[Any], shadows: int, attacked: int) -> None:
    if len(X) != len(y) or len(y) < 4 or len(y) % 2:
        raise InvalidParameter(
            "the pool must have an even number of records, at least 4, and a label for each"
        )
    if shadows < FEWEST_MODELS or attacked < 2:
        raise InvalidParameter(f"give shadows={FEWEST_MODELS} or more and attacked=2 or more")
