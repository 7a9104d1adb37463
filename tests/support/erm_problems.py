"""Simulated problems, and the gradient computed slowly in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.solvers import Problem


def simulate(rows: int, columns: int, seed: int = 0, noise: float = 1.0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    direction = rng.normal(size=columns)
    signs = np.where(features @ direction + noise * rng.normal(size=rows) * 0.5 > 0, 1.0, -1.0)
    return features, signs


def exact_gradient_norm(problem: Problem, coefficients: NDArray[Any]) -> float:
    """Extended precision: some thousand times more exact than the solver's."""
    long = np.longdouble
    plain: Any = problem.features
    plain = plain.toarray() if hasattr(plain, "toarray") else plain
    features, signs, w = plain.astype(long), problem.signs.astype(long), coefficients.astype(long)
    weights = np.ones(len(signs), long) if problem.row_weights is None else problem.row_weights.astype(long)
    slopes = slope(problem.loss, signs * (features @ w))
    gradient = (
        features.T @ (weights * signs * slopes) / long(problem.total) + long(problem.regularization) * w
    )
    if problem.linear is not None:
        gradient = gradient + problem.linear.astype(long)
    return float(np.sqrt(np.sum(gradient**2)))


def slope(loss: Any, z: NDArray[Any]) -> NDArray[Any]:
    if loss.name == "logistic":
        small = np.exp(-np.abs(z))
        return -np.where(z > 0, small, 1) / (1 + small)
    t: Any = np.clip((1 - z) / np.asarray(loss.width, np.longdouble), -1, 1)
    return -(1 + t) / 2 if loss.name == "huber_hinge" else -(2 + 3 * t - t**3) / 4
