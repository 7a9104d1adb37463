"""What a fit would be worth, from public facts alone: before any budget is spent, and without any data."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.centred import CentredEncoder, distances
from privlearn.errors import InvalidParameter
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.fitting import Fitting
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.planning.estimate import (
    Spectrum,
    noise_in_prediction,
    reference_problem,
    worst_case,
)
from privlearn.planning.expected_error import ExpectedError, expected_error
from privlearn.planning.forecast import MOST_ROWS, Forecast, unit_of
from privlearn.planning.stand_in import check_count, stand_ins
from privlearn.release.encoders import RawEncoder


@dataclass(frozen=True, eq=False)
class Plan(Forecast):
    """What a fit would do, and how its noise compares with what it would find. Made by `plan`.

    Noise and margins are scores of one problem: log-odds for the logistic loss, about 1 for a sure answer of a support
    vector machine, units of the target for a regression. The mechanism and ``worst_case`` are exact; the rest are
    estimates for a typical table of this schema, and docs/theory/planning.md measures how far off they are.

    Attributes
    ----------
    rows : int
        Records (persons, if the schema has a person column), or how many are expected.
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

    work: Fitting = dataclasses.field(repr=False)

    @cached_property
    def _foreseen(self) -> Fitting:
        return self.work.foreseen(self.rows, self.guarantee)

    @cached_property
    def mechanism(self) -> ReleaseMechanism:
        mechanism = self._foreseen.plan(self.guarantee)
        if mechanism.answers_questions:
            raise InvalidParameter(
                f"no plan for mechanism={mechanism.name!r}: take 'auto', 'objective', 'output' or 'function_release'"
            )
        return mechanism

    @cached_property
    def learnt_from(self) -> Spectrum:
        """Centred where `fit` would centre them, around their own mean and with half of them inside."""
        rows = self.work.rows
        if self.mechanism.task.centring is None:
            return self.spectrum
        encoder, features = cast(RawEncoder, rows.encoder), cast(Array, rows.features)
        mean = features[:, : encoder.dimension - encoder.fit_intercept].mean(axis=0)
        radius = float(np.median(distances(features, mean))) or 1.0
        return Spectrum.of(CentredEncoder(encoder, mean, radius).lift(features))

    @cached_property
    def noise(self) -> float:
        """Bins and pairs count as cells of a typical kind, since their stand-ins would take long to look at."""
        resolution = getattr(self._foreseen.rows.encoder, "resolution", None)
        spectrum = self.learnt_from
        if resolution is not None:
            share = resolution.bin_share + resolution.pair_share
            cells = max(self._foreseen.rows.dimension - self.work.rows.dimension, 1)
            spectrum = spectrum.beside_cells(share, cells)
        return self.unit * noise_in_prediction(self.mechanism, spectrum, self.problem)

    @cached_property
    def worst_case(self) -> float:
        return self.unit * worst_case(self.mechanism)

    @cached_property
    def expected_error(self) -> ExpectedError:
        """Of the model, on the reference problem; it has nothing for bins and pairs to find, and no noise in them."""
        return expected_error(
            self.mechanism.task.loss,
            self.rows,
            noise_in_prediction(self.mechanism, self.learnt_from, self.problem),
            self.regularization,
            self.learnt_from,
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


def plan(estimator: PrivateLinearModel, rows: int, columns: int | None = None) -> Plan:
    """Tell what ``estimator.fit`` on so many records would be worth. Reads no data and costs nothing.

    Parameters
    ----------
    estimator : PrivateLogisticRegression, PrivateSVC or PrivateRegressor
        With all its parameters; it is not fitted.
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
    if not isinstance(estimator, PrivateLinearModel):
        raise InvalidParameter(
            "plan takes an estimator: PrivateLogisticRegression, PrivateSVC or PrivateRegressor"
        )
    guarantee = estimator.promise()
    if not guarantee.is_private:
        raise InvalidParameter(
            "epsilon = inf adds no noise, so there is nothing to plan: give a finite epsilon"
        )
    rows = check_count("rows", rows, MOST_ROWS)
    X, y = stand_ins(estimator, columns)
    copied = copy.copy(estimator)  # reading rows leaves its mark on an estimator
    if not guarantee.relation.count_is_public:
        copied.expected_records = 1  # too few for fine features; `foreseen` knows how many there would be
    work = copied.prepare(X, y, private=True)
    made = Plan(
        rows,
        guarantee,
        unit_of(work.rows),
        Spectrum.of(work.rows.features),
        reference_problem(work.task.loss),
        work,
        persons=estimator.schema is not None and estimator.schema.person is not None,
    )
    made.mechanism  # noqa: B018 - refuses now what no theorem covers
    return made
