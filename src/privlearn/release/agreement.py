"""Contradictions between a model and its certificate: everything that the rest of a file determines is recomputed.

docs/how-to/verify.md lists the numbers that nothing in a file determines.
"""

from __future__ import annotations

import math

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import ArrayEncoder, CentredEncoder
from privlearn.errors import VerificationError
from privlearn.mechanisms.mechanism import CoefficientMechanism
from privlearn.mechanisms.noise import grid_step
from privlearn.mechanisms.search.search import SearchResult
from privlearn.mechanisms.statistics.centring import Centring
from privlearn.mechanisms.statistics.locations import Grid, Locations
from privlearn.mechanisms.task import Task
from privlearn.release import score_map
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import Encoder, KernelEncoder, base_of, describe_encoding
from privlearn.release.model import Model, RegressionModel

_ROUNDING = 1e-9  # relative; other libraries may round differently


def check_agreement(model: Model, certificate: Certificate) -> None:
    """Refuse a certificate that describes another model than this one."""
    task = certificate.task
    agree = (
        _has_shape_of(model, certificate)
        and model.is_learnt_by(task.loss)
        and model.is_weighted_by(task.weight_bound)
        and certificate.encoding == describe_encoding(model.encoder)
        and _is_centred_by(model.encoder, task)
        and (getattr(model, "log_odds", None) is None) == (task.score_counts is None)
        and _has_offsets_of(model, task)
        and _counts_persons_like(model.encoder, task)
        and _weighs_rows_like(model.encoder, task)
        and np.isfinite(model.coefficients).all()
    )
    if not agree:
        raise VerificationError("the certificate belongs to another model")


def check_noise(model: Model, certificate: Certificate) -> None:
    """Refuse coefficients, as they left the mechanism, that do not lie on the grid of the stated noise.

    Noise of scale s is drawn on multiples of a step, the power of two just below 2^-44 s (2^-40 s for norm-Gamma
    noise), so each coefficient is such a multiple. If the stated scale is too large by a factor of 2^k or more, the
    stated step is at least 2^(k-1) times the true one, and d coefficients below 2^53 true steps all lie on it with
    probability 2^(-(k-1) d). A landmark model stores coefficients of the public points, which are linear combinations
    of the released ones and lie on no grid. A public model that is added to the coefficients must lie on the grid too,
    so that it cannot hold what the mechanism's coefficients lack.
    """
    step = _step_of(model, certificate)
    if step is not None:
        output = model.output or score_map.MechanismOutput(model.coefficients)
        score_map.check_grid(output.coefficients, step, "coefficients")
        if output.prior is not None:
            score_map.check_grid(output.prior, step, "public model's coefficients")


def check_output(model: Model, certificate: Certificate) -> None:
    """Refuse coefficients that do not follow from the mechanism's, or follow by another regularizer than stated.

    The certificate states the norm of the public model as it was given; the file holds it rounded to the grid.
    """
    output, task = model.output, certificate.task
    if output is None:
        agree = task.prior_norm == 0.0 and task.largest_ridge == 1.0
    else:
        rounding = (_step_of(model, certificate) or 0.0) * math.sqrt(task.dimension)
        # A forged file may hold any numbers; overflow then fails the comparison, as it should.
        with np.errstate(over="ignore", divide="ignore"):
            agree = (
                _is_regularizer_of(output, model, task)
                and abs(score_map.prior_norm(output.prior) - task.prior_norm)
                <= 1e-9 * task.prior_norm + rounding
                and score_map.largest_ridge(output.scales) == task.largest_ridge
                and np.array_equal(output.model_coefficients, model.coefficients)
            )
    if not agree:
        raise VerificationError(
            "the coefficients do not follow from the mechanism's and the stated regularizer"
        )


def _step_of(model: Model, certificate: Certificate) -> float | None:
    """Return the step of the grid that the mechanism's coefficients lie on; ``None`` if there is no such grid."""
    mechanism = (
        certificate.mechanism.fit
        if isinstance(certificate.mechanism, SearchResult)
        else certificate.mechanism
    )
    if isinstance(model.encoder, KernelEncoder) or not isinstance(mechanism, CoefficientMechanism):
        return None
    return mechanism.coefficient_step


def _is_regularizer_of(output: score_map.MechanismOutput, model: Model, task: Task) -> bool:
    """Return whether a fit could have this public model and these weights; an intercept has weight 1."""
    shape, encoder = model.coefficients.shape, model.encoder
    prior, scales = output.prior, output.scales
    if output.coefficients.shape != shape or (prior is None and scales is None):
        return False
    # Softmax and landmarks have no public model: their coefficients are not those that the mechanism regularized.
    takes_prior = task.loss.argument != "classes" and not isinstance(encoder, KernelEncoder)
    if prior is not None and not (takes_prior and prior.shape == shape):
        return False
    return scales is None or (
        isinstance(encoder, ArrayEncoder)
        and scales.shape == shape[1:]
        and bool(np.all((scales > 0.0) & (scales <= 1.0)))
        and bool(np.all(scales[encoder.n_features :] == 1.0))
    )


def _has_shape_of(model: Model, certificate: Certificate) -> bool:
    """Return whether task and model have the same problems, classes and features; of landmarks, their rank."""
    task, rows = certificate.task, len(model.coefficients)
    # A softmax is one problem with a row per class; otherwise each row is a problem.
    together = rows if task.loss.argument == "classes" else 1  # rows of one problem
    stated = task.classes == (rows if task.loss.argument == "classes" else 0)
    features, left = divmod(task.dimension, together)
    if not stated or left or task.problems * together != rows:
        return False
    if isinstance(model.encoder, KernelEncoder):
        return features in model.encoder.possible_ranks
    return features == model.encoder.dimension


def _counts_persons_like(encoder: Encoder, task: Task) -> bool:
    """Return whether a person has as many rows by the schema as by the theorem; rows of arrays are one each."""
    schema = getattr(base_of(encoder), "schema", None)
    if schema is None:
        return task.rows_per_person == 1 and not task.averaged
    return task.rows_per_person == schema.rows_per_person and task.averaged == (schema.person is not None)


def _weighs_rows_like(encoder: Encoder, task: Task) -> bool:
    """Return whether the theorem's cap of weights is the schema's; for arrays only the certificate states it."""
    schema = getattr(base_of(encoder), "schema", None)
    return schema is None or task.row_weight_bound == schema.row_weight_bound


def _has_offsets_of(model: Model, task: Task) -> bool:
    """Return whether offsets and units of scores are those of the schema, or released at a cost that is stated.

    Released ones are numbers that nothing else in a file determines, within their bounds.
    """
    given, public = model.score_map, _public_map(model, task)
    is_released = task.class_counts is not None or task.target_locations is not None
    if given is None:
        return not is_released  # with several parties, what the schema states is not used
    if isinstance(model, RegressionModel):
        statistic = task.target_locations
        fits = given.stretch is not None and bool(np.all(np.abs(given.offsets) <= 1.0 + _ROUNDING))
        fits = fits and bool(np.all((given.stretches >= score_map.MIN_STRETCH) & (given.stretches <= 1.0)))
        fits = fits and task.offset_bound >= score_map.MAX_TARGET - 1.0
        paid = task.class_counts is None and statistic is not None and _has_public_grids(model, statistic)
    else:
        counts, size = task.class_counts, float(np.linalg.norm(given.offsets))
        fits = given.stretch is None and size <= task.offset_bound * (1.0 + _ROUNDING)
        paid = task.target_locations is None and counts is not None and counts.cells == (len(model.classes),)
        if counts is not None:
            fits = fits and float(np.max(np.abs(given.offsets))) <= _largest_offset(model, task) + _ROUNDING
    if is_released:
        return fits and paid and public is None
    # A public model of zeros would not show in the certificate.
    comes_with_public_model = (
        model.output is not None and model.output.prior is not None and task.prior_norm > 0.0
    )
    return fits and (comes_with_public_model or (public is not None and given.to_dict() == public.to_dict()))


def _has_public_grids(model: RegressionModel, statistic: Locations) -> bool:
    """Return whether numbers are counted between the model's bounds, in cells around the schema's typical number.

    A grid around another number would state something that nothing paid for, such as the median.
    """
    target = getattr(getattr(base_of(model.encoder), "schema", None), "target", None)
    typical = None if target is None else target.typical
    bounds = np.atleast_2d(model.target_bounds).tolist()
    return len(bounds) == len(statistic.grids) and all(
        grid == Grid.between(lower, upper, grid.cells, typical)
        for grid, (lower, upper) in zip(statistic.grids, bounds, strict=True)
    )


def _largest_offset(model: Model, task: Task) -> float:
    """Return the largest offset that counts of the classes with the stated noise can lead to.

    A count that leaves `ClassCounts.run` lies between ``floor`` and the total, so a stated scale that is far too large
    shows in the offsets.
    """
    counts, weights = task.class_counts, getattr(model, "class_weights", None) or (1.0,)
    floor = 0.5 if counts is None else max(counts.deviation, 0.5)
    classes = len(getattr(model, "classes", (0, 1)))
    return math.log((classes - 1) * max(task.total / floor, 1.0) * max(weights) / min(weights))


def _public_map(model: Model, task: Task) -> score_map.ScoreMap | None:
    """Return the offsets and units that follow from the schema; None if it states no rates or typical numbers."""
    schema = getattr(base_of(model.encoder), "schema", None)
    target = None if schema is None else schema.target
    if target is None:
        return None
    weights = getattr(model, "class_weights", None) or target.class_weights
    return score_map.map_of_target(target, None if weights is None else np.array(weights), task.loss)


def _is_centred_by(encoder: Encoder, task: Task) -> bool:
    """Return whether the model's mean is the one that the certificate pays for."""
    centring = task.centring
    if not isinstance(encoder, CentredEncoder) or centring is None:
        return not isinstance(encoder, CentredEncoder) and centring is None
    stated = centring.features == len(encoder.mean) and centring.bound == encoder.base.row_bound
    return stated and encoder.radius in centring.radii and _is_mean_of_noisy_sum(encoder.mean, task, centring)


def _is_mean_of_noisy_sum(mean: Array, task: Task, centring: Centring) -> bool:
    """Return whether the mean times the number of records lies on the grid of the stated noise, but for rounding.

    A stated scale that is far too large shows, as in `check_noise`, in coordinates below 2^49 of its steps.
    """
    if not centring.mean_noise_scale:
        return True
    steps = mean * task.total / grid_step(centring.mean_noise_scale)
    return bool(np.all(np.abs(steps - np.rint(steps)) <= 2.0**-50 * np.abs(steps)))
