"""TDDL with a private bound on the minimiser's norm: JT13 section 5, "by adding a small noise to |w*|"."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.release.answers import least_squares_in_ball
from privlearn.mechanisms.release.tddl import TestDataDependentLearner

FAILURE = 0.05
"""Probability that the private ball does not contain the minimiser; it affects accuracy only."""


@register_mechanism
@dataclass(frozen=True)
class NormBoundedLearner(TestDataDependentLearner):
    """TDDL with a private ball: the norm |w| is one more noisy answer, for each of K problems.

    **Theorem** (JT13 section 5 and Theorem 11). Since ||w| - |w'|| <= |w - w'|, one person moves |w| by at most the S
    of an answer (the norm's own rounding is below that of a product), so T + 1 numbers with Laplace noise cost what
    `TestDataDependentLearner` states for T + 1 probes. The ball is

        C = min(noisy norm + scale log(1 / (2 FAILURE)), public C), at least 0,

    which contains w except with probability FAILURE, and is post-processing. The public C, min(L / Lambda,
    sqrt(l(0) / Lambda)), may be many times |w|; at the noise of T answers the estimate is coarse, and where the noise
    exceeds |w| the smaller ball keeps the model useful (docs/theory/tddl.md, "A ball that is bought").
    """

    name = "tddl_norm"
    title = "test data dependent learner (TDDL) with a private norm bound"

    @property
    def noisy_numbers(self) -> int:
        return self.probes_count + 1

    def exact_answers(self, minimiser: Array, points: Array) -> Array:
        """PRIVATE: return the answers at the points, and last the norm."""
        return np.append(super().exact_answers(minimiser, points), np.linalg.norm(minimiser))

    def fit_answers(self, points: Array, answers: Array) -> Array:
        """Return one model per row of noisy answers, each in its own ball: post-processing."""
        return np.concatenate(
            [least_squares_in_ball(points, row[np.newaxis, :-1], self.radius(row[-1])) for row in answers]
        )

    def radius(self, noisy_norm: float) -> float:
        """Return C for a noisy norm; slightly above 0, so that the ball is not empty."""
        reach = noisy_norm + self.noise_scale * math.log(1.0 / (2.0 * FAILURE))
        return min(max(reach, 1e-9 * self.task.ball_radius), self.task.ball_radius)
