"""Every mechanism with every noise, calibration and neighbouring relation: what the contract tests run over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from privlearn.guarantee import RELATIONS, Guarantee
from privlearn.mechanisms import ReleaseMechanism, Task, mechanisms_of
from privlearn.solvers import Logistic


@dataclass(frozen=True)
class Plan:
    """One way to add noise."""

    mechanism: str
    noise: str
    calibration: str
    neighbours: str

    def guarantee(self, epsilon: float, delta: float = 1e-4) -> Guarantee:
        return Guarantee(epsilon, delta if self.noise == "gaussian" else 0.0, self.neighbours)

    def calibrate(self, epsilon: float, delta: float = 1e-4, **task: Any) -> Any:
        usual: dict[str, Any] = {"loss": Logistic(), "total": 1000, "dimension": 2, "problems": 1}
        usual |= {"regularization": 0.05, "tolerance": 1e-10, "neighbours": self.neighbours}
        kind = mechanisms_of(ReleaseMechanism)[self.mechanism]
        return kind.calibrate(
            Task(**usual | task), self.guarantee(epsilon, delta), self.noise, self.calibration
        )

    def parameters(self, epsilon: float, delta: float = 1e-4, expected: int = 1000) -> dict[str, Any]:
        """Return the same as parameters of an estimator, with the expected records where their number is private."""
        promise = self.guarantee(epsilon, delta)
        return {
            "epsilon": epsilon,
            "delta": promise.delta,
            "neighbours": self.neighbours,
            "expected_records": None if RELATIONS[self.neighbours].count_is_public else expected,
            "mechanism": self.mechanism,
            "noise": self.noise,
            "calibration": self.calibration,
        }

    def __str__(self) -> str:
        return f"{self.mechanism}-{self.noise}-{self.calibration}-{self.neighbours}"


PLANS = [
    Plan(name, noise, calibration, neighbours)
    for name, kind in mechanisms_of(ReleaseMechanism).items()
    if not kind.answers_questions
    for calibration, noises in kind.combinations.items()
    for noise in noises
    for neighbours in RELATIONS
]

every_plan = pytest.mark.parametrize("plan", PLANS, ids=str)


def hockey_stick(epsilon: float, ratio: float) -> float:
    """Return the divergence of N(ratio, 1) from N(0, 1), independent of the package's own formula."""
    return float(
        ndtr(ratio / 2 - epsilon / ratio) - math.exp(epsilon + log_ndtr(-ratio / 2 - epsilon / ratio))
    )


def max_ratio(epsilon: float, delta: float) -> float:
    """Sensitivity / standard deviation at which the Gaussian mechanism is just (epsilon, delta)-private."""
    return float(brentq(lambda ratio: hockey_stick(epsilon, ratio) - delta, 1e-9, 100.0, xtol=1e-14))
