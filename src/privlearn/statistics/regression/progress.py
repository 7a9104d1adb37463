"""From the sums released so far to the values that the next one is computed at. Post-processing; no row is read."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from privlearn.arrays import Array
from privlearn.imports import special
from privlearn.mechanisms.statistics.scoring import unpack_symmetric
from privlearn.statistics.regression.design import NORM, Levels, Numbers, Standardised, design_from_dict
from privlearn.statistics.regression.families import OutcomeScale, family_of
from privlearn.statistics.regression.histograms import NoisyHistogram
from privlearn.statistics.regression.layout import RESIDUAL_EDGES, grid_of_outcome, grid_of_variable

_PRIOR = 3.0
"""Prior variance of a row's coefficients: a linear predictor of deviation 1 has 1.7 on average."""
_OF_TABLES = ("tables", "standardised", "_centre_rows", "_first_scale")
"""Cached properties that follow from the histograms of variables and outcome alone."""


class Round(NamedTuple):
    """Released score and information, in the units of the model, and the deviations of their noise."""

    score: Array
    information: Array
    score_noise: float
    information_noise: float


class Progress:
    """Released sums in their order, and what follows from them.

    Parameters
    ----------
    about : mapping
        Public description of the model, as the file holds it.
    scales : sequence of float
        Standard deviation of the noise in each number of each sum.
    released : sequence of arrays
        The sums so far, flat.
    """

    def __init__(self, about: Mapping[str, Any], scales: Sequence[float], released: Sequence[Array]) -> None:
        self._about = about
        self._scales = scales
        self._released = list(released)
        self.design = design_from_dict(about["design"])
        self.family = family_of(about["family"])
        self.exposure = None if about["exposure"] is None else Numbers(**about["exposure"])

    def with_released(self, released: Sequence[Array]) -> Progress:
        """Return the progress after other sums; what follows from histograms that both have is not computed again."""
        later = Progress(self._about, self._scales, released)
        if len(self._released) >= self.tables and all(
            map(operator.is_, self._released[: self.tables], released)
        ):
            later.__dict__ |= {name: self.__dict__[name] for name in _OF_TABLES if name in self.__dict__}
        return later

    @property
    def next_sum(self) -> str:
        """Return the name of the sum that is computed next."""
        return str(self._about["sums"][len(self._released)])

    @property
    def is_last_round(self) -> bool:
        """Return whether the last score comes next."""
        return len(self._released) == len(self._about["sums"]) - 3

    @cached_property
    def tables(self) -> int:
        """Return the number of histograms that come first."""
        return list(self._about["sums"]).index("score")

    @property
    def complete(self) -> float:
        """Return about how many records, or persons, have all values: the mean over the histograms; at least 1."""
        return max(float(np.mean([np.sum(table) for table in self._released[: self.tables]])), 1.0)

    @cached_property
    def standardised(self) -> Standardised:
        """Return centres and spreads of all atoms, from the histograms of the variables."""
        centres, spreads = [], []
        histograms = iter(self._released)
        shortest = 1.0 / math.sqrt(NORM * self.design.dimension)
        for variable in self.design.variables:
            if isinstance(variable, Levels):
                counts = next(histograms) if variable.column else np.ones(len(variable.values))
                shares = np.clip(counts[1:] / max(float(np.sum(counts)), 1.0), 0.0, 1.0)
                centres += shares.tolist()
                # A rare category would make its rows long, which takes their weight.
                spreads += np.maximum(np.sqrt(shares * (1.0 - shares)), shortest).tolist()
            else:
                histogram = NoisyHistogram(
                    next(histograms), grid_of_variable(variable).edges, self._scales[0]
                )
                centre, spread = histogram.location
                centres.append(centre)
                spreads.append(spread)
        return Standardised(self.design, np.array(centres), np.array(spreads))

    @cached_property
    def _first_scale(self) -> OutcomeScale:
        index, offset = len(self.design.column_variables), 0.0
        if self.exposure is not None:
            offset, _ = self._histogram(index + 1, grid_of_variable(self.exposure).edges).location
        outcome = self._histogram(index, grid_of_outcome(self._about["outcome"]).edges)
        return self.family.start(outcome, offset, self._about["cut"] or 1.0)

    def _histogram(self, index: int, edges: Array) -> NoisyHistogram:
        return NoisyHistogram(self._released[index], edges, self._scales[index])

    @property
    def scale(self) -> OutcomeScale:
        """Return the scale of the outcome; once residuals are counted, they are cut at a multiple of their own."""
        scale = self._first_scale
        if not self.family.is_cut or len(self._released) <= self._residuals:
            return scale
        # the outermost cell ends at twice its beginning
        edges = np.array([0.0, *RESIDUAL_EDGES, 2.0 * RESIDUAL_EDGES[-1]])
        sizes = self._histogram(self._residuals, edges).trimmed
        size = max(math.sqrt(float(np.mean(sizes**2))), RESIDUAL_EDGES[0])
        deviation = size * self.residual_unit
        return dataclasses.replace(scale, residual_bound=self._about["cut"] * deviation)

    @property
    def residual_unit(self) -> float:
        """Return the unit in which residuals are counted: the deviation of the outcome."""
        return self._first_scale.residual_bound / float(self._about["cut"] or 1.0)

    @property
    def _residuals(self) -> int:
        return list(self._about["sums"]).index("residuals")

    @property
    def coefficients(self) -> Array:
        """Return the coefficients of rows after all rounds but the last."""
        return self._posterior[0]

    @property
    def step_covariance(self) -> Array:
        """Return the covariance of the last step, from these coefficients to the estimate without noise."""
        return self._posterior[1]

    @cached_property
    def _posterior(self) -> tuple[Array, Array]:
        """Return the coefficients after all rounds but the last, and the covariance of their error.

        Round j, at w_j, observes s_j = I_j (w - w_j) + noise. The estimate is the posterior mean given all rounds, each
        with the variance of its noise, of the noise in I_j times w - w_j, and of the error of its linearisation.
        """
        scale = self._first_scale
        start = np.zeros(self.design.dimension)
        count = self.design.rows_per_record
        start[:count] = np.linalg.solve(self._centre_rows[:, :count], scale.intercepts)
        value, rounds = start, []
        covariance = _PRIOR * np.eye(len(start))
        last = min(self.tables + 2 * self.family.rounds, len(self._released) - 1)
        for index in range(self.tables, last, 2):
            rounds.append((value, self._round(index, scale)))
            for _ in range(3):
                value, covariance = self._combine(rounds, start, value, covariance)
        return value, covariance

    def _combine(
        self, rounds: Sequence[tuple[Array, Round]], start: Array, value: Array, covariance: Array
    ) -> tuple[Array, Array]:
        """Return the posterior mean and its covariance, given about where both are."""
        size = len(start)
        precision = np.eye(size) / _PRIOR
        weighted = start / _PRIOR
        for point, (score, information, noise, information_noise) in rounds:
            outer = np.outer(value - point, value - point) + covariance
            change = float(np.sum((information @ outer) * information)) / size
            by_information = information_noise**2 / 2.0 * float(np.trace(outer)) * (1.0 + 1.0 / size)
            variance = noise**2 + by_information + self.curvature(information, outer) * change
            variance = max(variance, math.ulp(0.0) ** 0.5)
            precision = precision + information @ information / variance
            weighted = weighted + information @ (score + information @ point) / variance
        covariance = positive_inverse(precision, 1.0 / _PRIOR)
        return covariance @ weighted, covariance

    def curvature(self, information: Array, outer: Array) -> float:
        """Return the mean square of what a step's quadratic part adds to its change of the score, relative to it.

        Per unit of the linear predictor x'w the information of a record changes by at most itself, so the quadratic
        part is at most x'u / 2 times the linear one for the step u, whose expected outer product is ``outer``. The
        fourth moment of a normal x'u is 3 times its squared variance. A linear model has no quadratic part.
        """
        if self.family.name == "linear":
            return 0.0
        weight = max(float(information[0, 0]) * NORM * self.design.dimension, math.ulp(1.0))
        return 0.75 * max(float(np.sum(outer * information)), 0.0) / weight

    @cached_property
    def _centre_rows(self) -> Array:
        """Return the rows of a record at the centre of all variables: one for each comparison with a level."""
        count = self.design.rows_per_record
        atoms = np.tile(self.standardised.centres, (count, 1))
        atoms[:, : count - 1] = np.eye(count)[:, 1:]
        return self.standardised.rows(atoms)

    def change_of_moments(self, step: Array) -> Array:
        """Return the matrix T for which T I T' is proportional to the scores' second moments under the model.

        It is the identity where a record has one row. The K - 1 rows of a record in an ordinal model have dependent
        residuals: with the chance S_k of a level above k, those of j < k have the covariance S_k (1 - S_j). It is
        computed after the step, and the information I before it, at the centre (docs/theory/inference.md).
        """
        change, count = np.eye(self.design.dimension), self.design.rows_per_record
        if count == 1:
            return change
        before = special.expit(self._centre_rows @ self.coefficients)
        above = np.sort(special.expit(self._centre_rows @ (self.coefficients + step)))[::-1]
        index = np.arange(count)
        covariance = above[np.maximum.outer(index, index)] * (1.0 - above[np.minimum.outer(index, index)])
        variance, own = before * (1.0 - before), self._centre_rows[:, :count]
        by_model = own.T @ covariance @ own / count
        by_rows = own.T @ (own * variance[:, np.newaxis])
        change *= math.sqrt(covariance.mean() / variance.mean())
        change[:count, :count] = np.linalg.cholesky(by_model) @ np.linalg.inv(np.linalg.cholesky(by_rows))
        return change

    def _round(self, index: int, scale: OutcomeScale) -> Round:
        bounds = scale.residual_bound, scale.information_bound
        score, information = self._released[index], unpack_symmetric(self._released[index + 1])
        noises = (noise * bound for noise, bound in zip(self._scales[index:], bounds, strict=False))
        return Round(score * bounds[0], information * bounds[1], *noises)

    @property
    def last_round(self) -> Round:
        return self._round(len(self._about["sums"]) - 3, self.scale)

    @property
    def moments(self) -> tuple[Array, float]:
        """Return the second moments of scores of the last round, and the deviation of their noise."""
        unit = self.scale.residual_bound**2
        return unpack_symmetric(self._released[-1]) * unit, self._scales[-1] * unit


def positive_inverse(matrix: Array, floor: float) -> Array:
    """Return the inverse of a symmetric matrix whose eigenvalues are raised to at least ``floor``."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.maximum(values, max(floor, 1e-100))) @ vectors.T)
