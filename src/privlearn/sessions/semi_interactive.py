"""TDDL by a session (JT13 section 6.1): query public points, and fit a model to the answers that predicts others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.release.answers import least_squares_in_ball
from privlearn.sessions.interactive import InteractivePredictor
from privlearn.sessions.machines import SessionLearner

NEGLIGIBLE = 1e-10
"""Directions whose squared length is below this part of the longest one's are left out of the fit."""


@dataclass(frozen=True, eq=False)
class AnsweredModel:
    """f(z) = sum_t coefficients_t k(points_t, z): computed from public points and released answers.

    Attributes
    ----------
    points : array of shape (n, features)
        The public points, encoded.
    coefficients : array of shape (n, functions)
    """

    points: Array
    coefficients: Array

    def scores(self, learner: SessionLearner, z: Any) -> Array:
        """Return scores of shape (points, functions) at other points, by the learner's public encoding and kernel."""
        frozen = learner.freeze()
        return np.asarray(frozen.similarity(frozen.encode(z), self.points) @ self.coefficients)


def learn_from_answers(session: InteractivePredictor, learner: SessionLearner, points: Any) -> AnsweredModel:
    """Query the session at each public point, then fit least squares in the ball that contains the learnt function.

    The model is post-processing of the session's answers, and costs what the session costs. JT13's Algorithm 2 adds
    Laplace noise to T answers, which grows like sqrt(T); a session with ``mechanism="pinp"`` and ``queries=T`` answers
    within a threshold that grows like log(T), one with ``"function_release"`` with noise that does not grow at all.

    Parameters
    ----------
    session : InteractivePredictor
    learner : KernelLearner
        The session's; only its public encoding and kernel are used.
    points : array or table
        Public points like those of later predictions, as the session takes them.
    """
    frozen = learner.freeze()
    encoded = frozen.encode(points)
    answers = np.asarray(session.decide(points).scores, dtype=np.float64).reshape(len(encoded), -1)
    squares, axes = np.linalg.eigh(frozen.similarity(encoded, encoded))
    used = squares > NEGLIGIBLE * squares[-1]
    lengths, axes = np.sqrt(squares[used]), axes[:, used]
    radius = session.certificate.mechanism.kernel_task.norm_bound
    fitted = least_squares_in_ball(axes * lengths, answers.T, radius)
    return AnsweredModel(encoded, np.asarray(axes @ (fitted / lengths).T))
