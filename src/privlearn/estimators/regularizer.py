"""Other regularizers: around a public model, (Lambda/2) |w - w0|^2, and weighted, (Lambda/2) sum_j g_j w_j^2.

The argument is in docs/theory/regularization.md, "Other regularizers".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privlearn.arrays import Array, is_sparse
from privlearn.data.encoding.arrays import ArrayEncoder
from privlearn.errors import InvalidParameter
from privlearn.estimators.training_rows import TrainingRows
from privlearn.imports import sparse
from privlearn.release.artifact import Release
from privlearn.release.encoders import encoder_to_dict
from privlearn.release.model import LinearModel
from privlearn.solvers.losses import LossProperties


def public_coefficients(
    given: Release | Array | None, rows: TrainingRows, loss: LossProperties
) -> Array | None:
    """Return w0 over the features of the rows, one line per problem; refuse what belongs to other features.

    Parameters
    ----------
    given : Release, or array of shape (problems, dimension), or None
    rows : TrainingRows
        Their encoder and targets are compared with the release's. No row is read.
    loss : LossProperties
        One whose argument is a single score.
    """
    if given is None:
        return None
    if loss.argument == "classes" or not math.isfinite(loss.smoothness):
        raise InvalidParameter(
            f"regularize_towards is not available for the {loss.name} loss. Use a smooth margin loss, one class "
            "against the rest: loss='logistic' or 'huber_hinge'"
        )
    if rows.landmarks is not None or rows.on_cluster:
        raise InvalidParameter(
            "regularize_towards needs linear or Fourier features of rows on this machine. Leave it out, or leave out "
            "public_points"
        )
    coefficients = _read_release(given, rows) if isinstance(given, Release) else _read_array(given)
    problems, dimension = rows.targets.shape(rows.dimension, loss)
    if coefficients.shape != (problems, dimension) or not np.isfinite(coefficients).all():
        raise InvalidParameter(
            f"regularize_towards must hold {problems} x {dimension} finite coefficients over the encoded features, as "
            "coefficients_ has them"
        )
    return coefficients


def divide_by_weights(rows: TrainingRows, weights: Sequence[float] | None) -> TrainingRows:
    """Return rows divided by sqrt(g_j), on which the plain regularizer is the weighted one of the rows as they are.

    With v_j = sqrt(g_j) w_j, (Lambda/2) |v|^2 is (Lambda/2) sum_j g_j w_j^2, and the score is that of x_j / sqrt(g_j).
    As g_j is at least 1, no row gets longer, rounding included. Noise is drawn for v; w = v / sqrt(g) is
    post-processing.
    """
    if weights is None:
        return rows
    encoder, features = rows.encoder, rows.features
    if not isinstance(encoder, ArrayEncoder) or rows.landmarks is not None:
        raise InvalidParameter(
            "regularization_weights are for columns of an array under norm_bound and a linear kernel. Leave them out"
        )
    given = _read_array(weights, "regularization_weights")[0]
    if given.shape != (encoder.n_features,) or not np.all((given >= 1.0) & np.isfinite(given)):
        raise InvalidParameter(
            f"regularization_weights must be {encoder.n_features} finite numbers of at least 1, one per column. Divide "
            "them by the smallest, and multiply regularization by it"
        )
    scales = np.minimum(1.0 / np.sqrt(np.append(given, np.ones(encoder.dimension - len(given)))), 1.0)
    prior = None if rows.prior is None else rows.prior / scales
    scaled = sparse.csr_array(features.multiply(scales)) if is_sparse(features) else features * scales
    return dataclasses.replace(rows, features=scaled, prior=prior, scales=scales)


def _read_release(release: Release, rows: TrainingRows) -> Array:
    model = release.model
    predicts = (
        {"classes": model.classes.tolist()}
        if isinstance(model, LinearModel)
        else {"target_bounds": np.array(model.target_bounds).tolist()}
    )
    same_features = encoder_to_dict(model.encoder) == encoder_to_dict(rows.encoder)
    if not same_features or predicts != rows.targets.describe():
        raise InvalidParameter(
            "the release in regularize_towards has other features, bounds or classes than this fit: its coefficients "
            "mean something else. Use the same schema or norm_bound, and about as many records and the same epsilon, "
            "on which the resolution of a schema's columns depends"
        )
    return np.asarray(model.coefficients, dtype=np.float64)


def _read_array(given: Any, name: str = "regularize_towards") -> Array:
    try:
        return np.atleast_2d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be an array of numbers") from None
