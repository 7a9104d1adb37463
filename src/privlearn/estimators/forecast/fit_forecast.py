"""`plan`: the forecast of a fit, from public numbers alone, before any budget is spent."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import CentredEncoder, distances
from privlearn.errors import InvalidParameter
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.fit import Fit
from privlearn.estimators.forecast.expected_error import ExpectedError, expected_error
from privlearn.estimators.forecast.forecast import MAX_ROWS, Forecast, unit_of
from privlearn.estimators.forecast.reference import (
    Spectrum,
    noise_in_prediction,
    reference_problem,
    worst_case,
)
from privlearn.estimators.forecast.stand_ins import STAND_INS, check_count, stand_ins
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.release.encoders import RawEncoder


@dataclass(frozen=True, eq=False)
class Plan(Forecast):
    """Forecast of a fit: what it would run, and how its noise compares with its predictions. Created by `plan`.

    Noise and margins are scores of one problem: log-odds for the logistic loss, about 1 for a sure answer of a support
    vector machine, units of the target for a regression. The mechanism and ``worst_case`` are exact; the rest are
    estimates for a typical table of this schema, and docs/theory/planning.md measures how accurate they are.

    Attributes
    ----------
    rows : int
        Number of records (persons, if the schema has a person column), or the expected number.
    guarantee : Guarantee
    mechanism : OutputPerturbation or ObjectivePerturbation
        Exactly what `fit` would run: its noise, its regularization, its constants.
    noise : float
        Standard deviation of the noise in the prediction for a typical row.
    worst_case : float
        Bound on it for every row and all data, proven.
    margin : float
        Standard deviation of the predictions of the same model without noise.
    ratio : float
        ``noise / margin``.
    verdict : {"clear", "noisy", "drowned"}
    """

    work: Fit = dataclasses.field(repr=False)

    @cached_property
    def _fit(self) -> Fit:
        return self.work.at_size(self.rows, self.guarantee)

    @cached_property
    def mechanism(self) -> ReleaseMechanism:
        return calibrate_fit(self.work, self.rows, self.guarantee)

    @cached_property
    def training_spectrum(self) -> Spectrum:
        """Return the spectrum of the rows, centred around their mean if `fit` would centre them."""
        rows = self.work.rows
        if self.mechanism.task.centring is None:
            return self.spectrum
        encoder, features = cast(RawEncoder, rows.encoder), cast(Array, rows.features)
        mean = features[:, : encoder.dimension - encoder.fit_intercept].mean(axis=0)
        radius = float(np.median(distances(features, mean))) or 1.0
        return Spectrum.of(CentredEncoder(encoder, mean, radius).lift(features))

    @cached_property
    def noise(self) -> float:
        """Return the noise; bins and pairs count as typical cells, since simulating them would take long."""
        resolution = getattr(self._fit.rows.encoder, "resolution", None)
        spectrum = self.training_spectrum
        if resolution is not None:
            share = resolution.bin_share + resolution.pair_share
            cells = max(self._fit.rows.dimension - self.work.rows.dimension, 1)
            spectrum = spectrum.add_cells(share, cells)
        return self.unit * noise_in_prediction(self.mechanism, spectrum, self.problem)

    @cached_property
    def worst_case(self) -> float:
        return self.unit * worst_case(self.mechanism)

    @cached_property
    def expected_error(self) -> ExpectedError:
        """Return the error on the reference problem, which has no signal, and no noise, in bins and pairs."""
        return expected_error(
            self.mechanism.task.loss,
            # weights between 0 and the cap leave at least this many records' worth of information
            self.rows / max(self.mechanism.task.row_weight_bound, 1.0),
            noise_in_prediction(self.mechanism, self.training_spectrum, self.problem),
            self.regularization,
            self.training_spectrum,
            self.problem,
            self.unit,
        )

    @property
    def features(self) -> int:
        return self.mechanism.task.dimension

    @property
    def noise_scale(self) -> float:
        return self.mechanism.noise_scale

    @property
    def regularization(self) -> float:
        return float(self.mechanism.effective_regularization)


def plan(estimator: PrivateEstimator, rows: int, columns: int | None = None) -> Plan:
    """Forecast ``estimator.fit`` on this many records. Reads no data and costs nothing.

    Parameters
    ----------
    estimator : PrivateLogisticRegression, PrivateSVC or PrivateRegressor
        With all its parameters; it stays unfitted.
    rows : int
        Number of records, or of persons if the schema has a person column; the expected one where it is private.
    columns : int, optional
        Number of columns of a plain array, for an estimator without schema and public points.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, plan
    >>> from privlearn.data.datasets import census_schema
    >>> model = PrivateLogisticRegression(epsilon=0.1, delta=1e-6, schema=census_schema())
    >>> few = plan(model, rows=1000)
    >>> few.verdict
    'drowned'
    >>> few.at(rows=100_000).verdict
    'clear'
    """
    if not isinstance(estimator, PrivateEstimator):
        raise InvalidParameter(
            "plan takes an estimator: PrivateLogisticRegression, PrivateSVC or PrivateRegressor"
        )
    guarantee = estimator.make_guarantee()
    if not guarantee.is_private:
        raise InvalidParameter(
            "epsilon = inf adds no noise, so there is nothing to forecast. Give a finite epsilon"
        )
    rows = check_count("rows", rows, MAX_ROWS)
    work = fit_on_stand_ins(estimator, columns)
    forecast = Plan(
        rows,
        guarantee,
        unit_of(work.rows),
        Spectrum.of(work.rows.features),
        reference_problem(work.task.loss),
        work,
        persons=estimator.schema is not None and estimator.schema.person is not None,
    )
    forecast.mechanism  # noqa: B018 - refuses now what no theorem covers
    return forecast


def fit_on_stand_ins(estimator: PrivateEstimator, columns: int | None = None, count: int = STAND_INS) -> Fit:
    """Return the work of a fit on ``count`` synthetic rows. Two are enough to calibrate its mechanism."""
    X, y = stand_ins(estimator, columns, count)
    copied = copy.copy(estimator)  # reading rows sets attributes of an estimator
    if not estimator.make_guarantee().relation.count_is_public:
        copied.expected_records = (
            1  # too few for fine features: `Fit.at_size` chooses those by the real number
        )
    return copied.prepare(X, y, True, None if estimator.max_weight is None else 1.0)


def calibrate_fit(work: Fit, rows: int, guarantee: Guarantee) -> ReleaseMechanism:
    """Return the mechanism that `fit` would run on ``rows`` records; it does not depend on the rows of ``work``."""
    mechanism = work.at_size(rows, guarantee).calibrate(guarantee)
    if mechanism.answers_questions:
        raise InvalidParameter(
            f"mechanism={mechanism.name!r} has no forecast: take 'auto', 'objective', 'output', 'function_release'"
        )
    return mechanism
