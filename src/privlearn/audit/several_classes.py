"""The softmax loss written out anew: gradients, Hessians, and the plane in which records move a release."""

from __future__ import annotations

from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.multinomial import minimise_multinomial


def minimiser(task: Any, rows: Array, labels: Array, regularization: float, linear: Array | None) -> Array:
    """As every estimator computes it; classes one after another."""
    found = minimise_multinomial(
        rows,
        labels.astype(np.int64),
        task.classes,
        regularization=regularization,
        total=task.total,
        linear=None if linear is None else linear.reshape(task.classes, -1),
        tolerance=task.tolerance,
    )
    return found.coefficients.ravel()


def gradients(classes: int, rows: Array, labels: Array, points: Array) -> Array:
    """Sum over the records of the gradients at each of the points."""
    residuals = _probabilities(classes, rows, points) - np.eye(classes)[labels.astype(np.int64)]
    return np.asarray(np.einsum("pik,ij->pkj", residuals, rows)).reshape(points.shape)


def hessians(classes: int, rows: Array, points: Array) -> Array:
    """Sum over the records of ``(diag(p) - p p') (x) x x'`` at each of the points."""
    chances = _probabilities(classes, rows, points)
    inner = np.einsum("pik,kl->pikl", chances, np.eye(classes)) - np.einsum("pik,pil->pikl", chances, chances)
    blocks = np.einsum("pikl,ij,im->pkjlm", inner, rows, rows)
    return np.asarray(blocks).reshape(len(points), points.shape[1], points.shape[1])


def _probabilities(classes: int, rows: Array, points: Array) -> Array:
    """Of shape (points, records, classes)."""
    scores = np.einsum("pkj,ij->pik", points.reshape(len(points), classes, -1), rows)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


def plane_of_three(points: Array) -> Array:
    """Points of a plane as coefficients of three classes on a line that add up to 0.

    No record moves their sum, since every gradient's adds up to 0: there both laws are those of the noise.
    """
    axes = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]])
    return np.asarray(points @ (axes / np.linalg.norm(axes, axis=1, keepdims=True)))
