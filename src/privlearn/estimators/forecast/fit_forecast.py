"""`plan`: the forecast of a fit, from public numbers alone, before any budget is spent."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import CentredEncoder, distances
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.feature_groups import knots_of
from privlearn.data.encoding.resolution import FEW_KNOTS, Resolution
from privlearn.data.schema.columns import OrderedColumn
from privlearn.data.schema.schema import Schema, as_schema
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.fit import Fit
from privlearn.estimators.forecast.expected_error import ExpectedError, expected_error
from privlearn.estimators.forecast.expected_gain import UNIT_SPREADS, Setting, settings
from privlearn.estimators.forecast.forecast import MAX_ROWS, USUAL_RATE, Forecast, unit_of, usable
from privlearn.estimators.forecast.reference import (
    Spectrum,
    noise_in_prediction,
    reference_problem,
    worst_case,
)
from privlearn.estimators.forecast.stand_ins import STAND_INS, check_count, stand_ins
from privlearn.estimators.training_rows import NumberTargets, TrainingRows
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.release.encoders import RawEncoder
from privlearn.release.score_map import UNITS_OF_SPREAD


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
    lost : float
        Share of what a model without privacy gains over a constant prediction that privacy costs, for a typical signal.
    gains : tuple of Gain
        The same, and the expected AUC or R^2, for a strong, a typical and a weak signal.
    verdict : {"clear", "noisy", "drowned"}
    """

    work: Fit = dataclasses.field(repr=False)
    typical: Callable[[int], tuple[TrainingRows, Spectrum]] = dataclasses.field(repr=False)
    """Returns synthetic rows with a number of knots, and their spectrum."""
    unit_settings: tuple[Setting, ...] = dataclasses.field(repr=False)

    @cached_property
    def _fit(self) -> Fit:
        return self.work.at_size(self.rows, self.guarantee)

    @property
    def _resolution(self) -> Resolution:
        return _resolution_of(self._fit)

    @property
    def fine_knots(self) -> int | None:
        resolution, smallest = self._resolution, self.work.at_size(1, self.guarantee)
        return None if resolution == _resolution_of(smallest) else resolution.knots

    @cached_property
    def mechanism(self) -> ReleaseMechanism:
        return calibrate_fit(self.work, self.rows, self.guarantee)

    @property
    def in_spreads(self) -> bool:
        return self.mechanism.task.target_locations is not None

    @property
    def signals(self) -> tuple[Setting, ...]:
        """Return the reference problems in units of the bounds, or of a spread that is public or estimated."""
        targets = self.work.rows.targets
        has_unit = self.in_spreads or (isinstance(targets, NumberTargets) and targets.score_map is not None)
        return self.unit_settings if has_unit else self.settings

    @property
    def target_unit(self) -> float:
        return UNITS_OF_SPREAD if self.in_spreads else self.unit

    @cached_property
    def training_spectrum(self) -> Spectrum:
        """Return the spectrum of the rows, centred around their mean if `fit` would centre them."""
        rows, spectrum = self.typical(self._resolution.knots)
        if self.mechanism.task.centring is None:
            return spectrum
        encoder, features = cast(RawEncoder, rows.encoder), cast(Array, in_memory(rows.features))
        mean = features[:, : encoder.dimension - encoder.fit_intercept].mean(axis=0)
        radius = float(np.median(distances(features, mean))) or 1.0
        return Spectrum.of(CentredEncoder(encoder, mean, radius).lift(features))

    @cached_property
    def noise(self) -> float:
        """Return the noise; bins and pairs count as typical cells, since simulating them would take long."""
        resolution, spectrum = self._resolution, self.training_spectrum
        if not resolution.is_centred:
            rows, _ = self.typical(resolution.knots)
            cells = max(self._fit.rows.dimension - rows.dimension, 1)
            spectrum = spectrum.add_cells(resolution.bin_share + resolution.pair_share, cells)
        return self.target_unit * noise_in_prediction(self.mechanism, spectrum, self.problem)

    @cached_property
    def score_noise(self) -> float:
        """Return the noise without that of bins and pairs, since what they gain is not counted either."""
        return noise_in_prediction(self.mechanism, self.training_spectrum, self.problem)

    @cached_property
    def worst_case(self) -> float:
        return self.target_unit * worst_case(self.mechanism)

    @cached_property
    def expected_error(self) -> ExpectedError:
        """Return the error on the reference problem, which has no signal, and no noise, in bins and pairs."""
        problem = reference_problem(self.mechanism.task.loss)
        return expected_error(
            self.mechanism.task.loss,
            self._information,
            noise_in_prediction(self.mechanism, self.training_spectrum, problem),
            self.regularization,
            self.training_spectrum,
            problem,
            unit_of(self.work.rows, is_scaled=False),
        )

    def levers(self) -> list[tuple[str, Self]]:
        """Return changes that may help: those of every forecast, other neighbours, and fewer knots."""
        found, estimator = super().levers(), self.work.estimator
        if self.guarantee.neighbours == "replace_one":
            changed = copy.copy(estimator)
            changed.neighbours = "zero_out"
            guarantee = dataclasses.replace(self.guarantee, neighbours="zero_out")
            other = dataclasses.replace(self, guarantee=guarantee, work=Fit(changed, self.work.rows))
            found.append((f"zero_out, whose neighbours lack a {self.count_noun[:-1]}", other))
        if estimator.schema is not None and (schema := _with_few_knots(self._fit.rows.encoder)) is not None:
            changed = copy.copy(estimator)
            changed.schema = schema
            fewer = plan(changed, self.rows, rate=self.rate)
            guarantee = self.guarantee
            fewer = fewer.at(epsilon=guarantee.epsilon, delta=guarantee.delta)
            found.append((f"{FEW_KNOTS} knots in each column", cast(Self, fewer)))
        return [(name, other) for name, other in found if usable(other) is not None]

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
    >>> few.at(rows=100_000, epsilon=1.0).verdict
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
    rate = _check_rate(estimator, rate)
    work = fit_on_stand_ins(estimator, columns)
    own = work.rows, Spectrum.of(work.rows.features)

    @cache
    def typical(knots: int) -> tuple[TrainingRows, Spectrum]:
        if knots == getattr(own[0].encoder, "resolution", Resolution(knots=knots)).knots:
            return own
        changed = copy.copy(estimator)
        changed.resolution = lambda *_: Resolution(knots=knots)  # type: ignore[method-assign]
        rows = fit_on_stand_ins(changed, columns).rows
        return rows, Spectrum.of(rows.features)

    forecast = Plan(
        rows,
        guarantee,
        unit_of(work.rows),
        own[1],
        settings(work.task.loss, USUAL_RATE if rate is None else rate),
        rate,
        work,
        typical,
        settings(work.task.loss, USUAL_RATE, UNIT_SPREADS),
        persons=estimator.schema is not None and estimator.schema.person is not None,
    )
    forecast.mechanism  # noqa: B018 - refuses now what no theorem covers
    return forecast


def _resolution_of(fit: Fit) -> Resolution:
    return getattr(fit.rows.encoder, "resolution", Resolution())


def _check_rate(estimator: PrivateEstimator, rate: float | None) -> float | None:
    """Return the stated share of a class, or the schema's; refuse one that is not between 0 and 1."""
    target = None if estimator.schema is None else as_schema(estimator.schema).target
    rate = target.rate if rate is None and target is not None else rate
    if rate is not None and not 0.0 < rate < 1.0:
        raise InvalidParameter(f"rate must lie between 0 and 1, not {preview(rate)}")
    return rate


def _with_few_knots(encoder: Any) -> Schema | None:
    """Return the schema of an encoder with few knots in every spline; ``None`` if it has none that are longer."""
    if not isinstance(encoder, SchemaEncoder):
        return None
    splines = {
        name: column
        for name, column in encoder.columns.items()
        if isinstance(column, OrderedColumn) and column.encoding == "spline"
    }
    if all(knots_of(column) <= FEW_KNOTS for column in splines.values()):
        return None
    few = {name: column.model_copy(update={"knots": FEW_KNOTS}) for name, column in splines.items()}
    return encoder.schema.model_copy(update={"columns": encoder.columns | few})


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
            f"mechanism={mechanism.name!r} has no forecast. Use 'auto', 'objective', 'output', 'function_release'"
        )
    return mechanism
