"""`plan`: the forecast of a fit, from public numbers alone, before any budget is spent."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from privlearn.data.encoding.arrays import CentredEncoder, distances
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.resolution import Resolution
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.fit import Fit
from privlearn.estimators.forecast.expected_error import ExpectedError, expected_error
from privlearn.estimators.forecast.forecast import MAX_ROWS, Forecast, unit_of
from privlearn.estimators.forecast.spectrum import Spectrum, noise_in_prediction, worst_case
from privlearn.estimators.forecast.stand_ins import STAND_INS, check_count, stand_in_table, stand_ins
from privlearn.estimators.reference import ReferenceProblem
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism


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
    lost : float
        Share of what a model without privacy gains over a constant prediction that privacy costs, for a typical signal.
    gains : tuple of Gain
        The same, and the expected AUC or R^2, for a strong, a typical and a weak signal.
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
    spectra: dict[tuple[int, bool], Spectrum] = dataclasses.field(default_factory=dict, repr=False)

    @cached_property
    def _fit(self) -> Fit:
        return self.work.at_size(self.rows, self.guarantee)

    @cached_property
    def mechanism(self) -> ReleaseMechanism:
        return calibrate_fit(self.work, self.rows, self.guarantee)

    @property
    def _resolution(self) -> Resolution:
        return getattr(self._fit.rows.encoder, "resolution", Resolution())

    @cached_property
    def training_spectrum(self) -> Spectrum:
        """Return the spectrum of synthetic rows at the fit's knots, centred if `fit` would centre them.

        Forecasts for other numbers of records share it.
        """
        key = self._resolution.knots, self.mechanism.task.centring is not None
        if key not in self.spectra:
            self.spectra[key] = self._make_spectrum(*key)
        return self.spectra[key]

    def _make_spectrum(self, knots: int, is_centred: bool) -> Spectrum:
        encoder, features = cast(Any, self.work.rows.encoder), self.work.rows.features
        if isinstance(encoder, SchemaEncoder):
            coarse = Resolution(knots)
            encoder = SchemaEncoder(encoder.schema, fit_intercept=encoder.fit_intercept, resolution=coarse)
            features = encoder.encode(stand_in_table(encoder.schema))
        if not is_centred:
            return Spectrum.of(features)
        mean = features[:, : encoder.dimension - encoder.fit_intercept].mean(axis=0)
        radius = float(np.median(distances(features, mean))) or 1.0
        return Spectrum.of(CentredEncoder(encoder, mean, radius).lift(features))

    @cached_property
    def _noise_spectrum(self) -> Spectrum:
        """Return the spectrum; bins and pairs count as typical cells, since simulating them would take long."""
        resolution, spectrum = self._resolution, self.training_spectrum
        if resolution.is_centred:
            return spectrum
        cells = max(self._fit.rows.dimension - len(spectrum.moments), 1)
        return spectrum.add_cells(resolution.bin_share + resolution.pair_share, cells)

    @property
    def noise(self) -> float:
        return self.unit * noise_in_prediction(self.mechanism, self._noise_spectrum, self.problem)

    def noise_for(self, problem: ReferenceProblem) -> float:
        """Return the noise without that of bins and pairs, since what they gain is not counted either."""
        return noise_in_prediction(self.mechanism, self.training_spectrum, problem)

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


def plan(
    estimator: PrivateEstimator, rows: int, columns: int | None = None, rate: float | None = None
) -> Plan:
    """Forecast ``estimator.fit`` on this many records. Reads no data and costs nothing.

    Parameters
    ----------
    estimator : PrivateLogisticRegression, PrivateSVC or PrivateRegressor
        With all its parameters; it stays unfitted.
    rows : int
        Number of records, or of persons if the schema has a person column; the expected one where it is private.
    columns : int, optional
        Number of columns of a plain array, for an estimator without schema and public points.
    rate : float, optional
        Share of one of two classes, between 0 and 1, as far as it is public; by default the schema's. A rare class
        needs more records than a frequent one.

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
        work.task.loss,
        work,
        persons=estimator.schema is not None and estimator.schema.person is not None,
        rate=_check_rate(estimator, rate),
    )
    forecast.mechanism  # noqa: B018 - refuses now what no theorem covers
    return forecast


def _check_rate(estimator: PrivateEstimator, rate: float | None) -> float | None:
    target = None if estimator.schema is None else estimator.schema.target
    rate = getattr(target, "rate", None) if rate is None else rate
    if rate is not None and not 0.0 < rate < 1.0:
        raise InvalidParameter(f"rate must lie between 0 and 1, not {preview(rate)}")
    return rate


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
