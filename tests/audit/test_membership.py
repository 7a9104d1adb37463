"""The attack finds what a plain model gives away, nothing where there is nothing, and never more than is possible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from privlearn import Guarantee, PrivateLogisticRegression
from privlearn.audit import MembershipAttack, advantage_ceiling, membership_attack, true_positive_ceiling
from privlearn.errors import InvalidParameter

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 30))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
LABELS = RNG.integers(0, 2, 40)
"""Labels without a rule and nearly as many columns as records: a plain model learns them by heart."""


class Shout:
    """Randomised response about one record, the mechanism for which the ceiling is met."""

    classes_ = np.array([0, 1])

    def __init__(self, seed: int, truth: float) -> None:
        self.rng, self.truth = np.random.default_rng(seed), truth

    def fit(self, X: Any, y: Any) -> Shout:
        inside = bool(np.any(np.all(ROWS[0] == X, axis=1)))
        self.says = inside if self.rng.random() < self.truth else not inside
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        about = np.all(ROWS[0] == X, axis=1)
        return np.where(about, 1.0 if self.says else -1.0, self.rng.normal(size=len(X)))


def private(epsilon: float) -> Any:
    return lambda seed: PrivateLogisticRegression(
        epsilon=epsilon, delta=1e-5, norm_bound=1.0, classes=[0, 1], regularization=1e-2, random_state=seed
    )


def attack(make: Any, **settings: int) -> MembershipAttack:
    return membership_attack(make, ROWS, LABELS, **dict[str, Any](shadows=96, attacked=96, seed=1) | settings)


def test_a_plain_model_gives_its_records_away() -> None:
    found = attack(lambda seed: LogisticRegression(C=100.0))
    assert found.advantage - 4.0 * found.standard_error > 0.6
    assert found.true_positive_rate(0.01) > 0.1  # ten times guessing


def test_without_noise_ours_does_so_too() -> None:
    assert attack(private(math.inf), shadows=48, attacked=24).advantage > 0.6


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_private_model_stays_below_its_ceiling(epsilon: float) -> None:
    found = attack(private(epsilon))
    assert found.advantage - 4.0 * found.standard_error < advantage_ceiling(Guarantee(epsilon, 1e-5))
    assert found.advantage < 0.1


def test_too_little_noise_is_noticed() -> None:
    """The same as above with a promise of 0.1 and the noise of 1,000."""
    found = attack(private(1000.0))
    assert found.advantage - 4.0 * found.standard_error > advantage_ceiling(Guarantee(0.1, 1e-5))


def test_who_looks_at_nothing_finds_nothing() -> None:
    """Margins that do not depend on the training rows."""

    class Deaf(Shout):
        def fit(self, X: Any, y: Any) -> Shout:
            self.says = bool(self.rng.random() < 0.5)
            return self

    found = attack(lambda seed: Deaf(seed, 0.5))
    assert abs(found.advantage) < 4.0 * found.standard_error
    assert found.true_positive_rate(0.05) < 0.08


def test_the_ceiling_is_reached_and_not_passed() -> None:
    """Randomised response at epsilon 1 has exactly the ceiling's advantage on the record it is about."""
    truth = 1.0 / (1.0 + math.exp(-1.0))
    found = attack(lambda seed: Shout(seed, truth), shadows=200, attacked=2000)
    said, was = found.scores[:, 0] > 0, found.members[:, 0]
    measured = said[was].mean() - said[~was].mean()
    assert measured == pytest.approx(advantage_ceiling(Guarantee(1.0)), abs=4.0 / math.sqrt(2000))


def test_ceilings() -> None:
    assert advantage_ceiling(Guarantee(math.inf)) == 1.0
    assert advantage_ceiling(Guarantee(1.0, 0.01)) == pytest.approx((math.e - 1.0 + 0.02) / (math.e + 1.0))
    twice = advantage_ceiling(Guarantee(0.5, 0.0, "zero_out"))
    assert twice == pytest.approx(advantage_ceiling(Guarantee(1.0)))
    assert true_positive_ceiling(Guarantee(1.0, 1e-3), 0.01) == pytest.approx(math.e * 0.01 + 1e-3)
    rates = np.linspace(0.0, 1.0, 10_001)
    gains = [true_positive_ceiling(Guarantee(1.0, 0.01), rate) - rate for rate in rates]
    assert max(gains) == pytest.approx(advantage_ceiling(Guarantee(1.0, 0.01)), abs=1e-3)


def test_several_classes() -> None:
    labels = RNG.integers(0, 3, 40)
    found = membership_attack(
        lambda seed: LogisticRegression(C=100.0), ROWS, labels, shadows=64, attacked=16, seed=2
    )
    assert found.advantage > 0.6


@pytest.mark.parametrize(
    "changed",
    [{"shadows": 4}, {"attacked": 1}, {"y": LABELS[:-1]}, {"X": ROWS[:-1], "y": LABELS[:-1]}],
    ids=["shadows", "attacked", "labels", "odd"],
)
def test_what_shows_nothing_is_refused(changed: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"X": ROWS, "y": LABELS, "shadows": 16, "attacked": 2} | changed
    with pytest.raises(InvalidParameter):
        membership_attack(private(1.0), **settings)
