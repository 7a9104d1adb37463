"""TDDL by a session (JT13 section 6.1): ask public points, and fit the answers by a model that answers any others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.release.answers import least_squares_in_ball
from privlearn.sessions.interactive import InteractivePredictor
from privlearn.sessions.machines import SessionLearner

NEGLIGIBLE = 1e-10
"""Directions in which the public points reach no further than this part of the longest are left out of the fit."""


@dataclass(frozen=True, eq=False)
class AnsweredModel:
    """f(z) = sum_t coefficients_t k(points_t, z): made of public points and of answers that were released.

    Attributes
    ----------
    points : array of shape (n, features)
        The public points, encoded.
    coefficients : array of shape (n, functions)
    """

    points: Array
    coefficients: Array

    def scores(self, learner: SessionLearner, z: Any) -> Array:
        """Scores at other points, one row per point; the learner's encoding and kernel are used, which are public."""
        return np.asarray(learner.similarity(learner.encode(z), self.points) @ self.coefficients)


def learn_from_answers(session: InteractivePredictor, learner: SessionLearner, points: Any) -> AnsweredModel:
    """Ask the session about each public point, then fit: least squares in the ball that holds the learnt function.

    The model is post-processing of the session's answers, and costs what the session costs. JT13's Algorithm 2 adds
    Laplace noise to T answers, which grows like sqrt(T); a session with ``mechanism="pinp"`` and ``queries=T`` answers
    within a threshold that grows like log(T), one with ``"function_release"`` with noise that does not grow at all.

    Parameters
    ----------
    session : InteractivePredictor
    learner : KernelLearner
        The session's own; only its public half is used: encoding and kernel.
    points : array or table
        Public points like those that will be asked about, as the session takes them.
    """
    encoded = learner.encode(points)
    answers = np.asarray(session.decide(points).scores, dtype=np.float64).reshape(len(encoded), -1)
    squares, axes = np.linalg.eigh(learner.similarity(encoded, encoded))
    kept = squares > NEGLIGIBLE * squares[-1]
    lengths, axes = np.sqrt(squares[kept]), axes[:, kept]
    radius = session.certificate.mechanism.facts.norm_bound
    fitted = least_squares_in_ball(axes * lengths, answers.T, radius)
    return AnsweredModel(encoded, np.asarray(axes @ (fitted / lengths).T))
