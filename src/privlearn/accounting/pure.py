"""Optimal composition of mechanisms of which only a pure epsilon is known (Kairouz, Oh and Viswanath 2015)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom


def composed_pure_delta(round_epsilon: float, times: int, epsilon: float) -> float:
    """Smallest delta(epsilon) that holds for every sequence of ``times`` adaptive round_epsilon-private mechanisms.

    Randomised response dominates them all: of its ``times`` answers i speak for one data set with probability
    Binomial(times, 1 / (1 + exp(-round_epsilon))), and the loss is then (2 i - times) round_epsilon.
    """
    answers = np.arange(times + 1)
    losses = (2.0 * answers - times) * round_epsilon
    beyond = losses > epsilon
    chances = binom.pmf(answers[beyond], times, expit(round_epsilon))
    return float(np.sum(chances * -np.expm1(epsilon - losses[beyond])))


def composed_pure_epsilon(round_epsilon: float, times: int, delta: float) -> float:
    """Smallest epsilon with `composed_pure_delta` at most ``delta``; never above times round_epsilon."""
    most = times * round_epsilon

    def excess(epsilon: float) -> float:
        return composed_pure_delta(round_epsilon, times, epsilon) - delta

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, most, xtol=1e-12 * most))
