"""From the sums released so far to the values that the next one is computed at. Post-processing; no row is read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.statistics.scoring import unpack_symmetric
from privlearn.statistics.regression.design import NORM, Levels, Numbers, Standardised, design_from_dict
from privlearn.statistics.regression.families import OutcomeScale, family_of
from privlearn.statistics.regression.grids import location_of, quantiles_of
from privlearn.statistics.regression.layout import RESIDUAL_EDGES, grid_of_outcome, grid_of_variable

_SHARES = (np.arange(40) + 0.5) / 40.0


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
        self._released = released
        self.design = design_from_dict(about["design"])
        self.family = family_of(about["family"])
        self.exposure = None if about["exposure"] is None else Numbers(**about["exposure"])

    @property
    def next_sum(self) -> str:
        """Return the name of the sum that is computed next."""
        return str(self._about["sums"][len(self._released)])

    @cached_property
    def tables(self) -> int:
        """Return the number of histograms that come first."""
        return list(self._about["sums"]).index("score")

    @cached_property
    def standardised(self) -> Standardised:
        """Return centres and spreads of all atoms, from the histograms of the variables."""
        centres, spreads = [], []
        shortest = 1.0 / math.sqrt(NORM * self.design.dimension)
        for variable, counts in zip(self.design.variables, self._released, strict=False):
            total = max(float(np.sum(counts)), 1.0)
            if isinstance(variable, Levels):
                shares = np.clip(counts[1:] / total, 0.0, 1.0)
                centres += shares.tolist()
                # A rare category would make its rows long, which takes their weight.
                spreads += np.maximum(np.sqrt(shares * (1.0 - shares)), shortest).tolist()
            else:
                location = location_of(counts, grid_of_variable(variable), total)
                centres.append(location.centre)
                spreads.append(location.spread)
        return Standardised(self.design, np.array(centres), np.array(spreads))

    @cached_property
    def _first_scale(self) -> OutcomeScale:
        index, offset = len(self.design.variables), 0.0
        if self.exposure is not None:
            counts = self._released[index + 1]
            total = max(float(np.sum(counts)), 1.0)
            offset = location_of(counts, grid_of_variable(self.exposure), total).centre
        grid = grid_of_outcome(self._about["outcome"])
        return self.family.start(self._released[index], grid, offset, self._about["cut"] or 1.0)

    @property
    def scale(self) -> OutcomeScale:
        """Return the scale of the outcome; once residuals are counted, they are cut at a multiple of their own."""
        scale = self._first_scale
        if not self.family.is_cut or len(self._released) <= self._residuals:
            return scale
        counts = self._released[self._residuals]
        total = max(float(np.sum(counts)), 1.0)
        grid = _ResidualGrid()
        sizes = quantiles_of(counts, grid, total, _SHARES) * self.residual_unit
        deviation = math.sqrt(float(np.mean(sizes**2)))
        return dataclasses.replace(scale, residual_bound=self._about["cut"] * deviation)

    @property
    def residual_unit(self) -> float:
        """Return the unit in which residuals are counted: the deviation of the outcome."""
        return self._first_scale.residual_bound / float(self._about["cut"] or 1.0)

    @property
    def _residuals(self) -> int:
        return list(self._about["sums"]).index("residuals")

    @cached_property
    def coefficients(self) -> Array:
        """Return the coefficients of rows after all rounds but the last."""
        value = np.zeros(self.design.dimension)
        value[0] = self._first_scale.intercept / self.standardised.length
        scale = self._first_scale
        for place in range(self.tables, self.tables + 2 * self.family.rounds, 2):
            if len(self._released) < place + 2:
                break
            score, information = self._round(place, scale)
            floor = scale.information_bound * self._scales[place + 1] * math.sqrt(self.design.dimension)
            value = value + positive_inverse(information, floor) @ score
        return value

    def _round(self, place: int, scale: OutcomeScale) -> tuple[Array, Array]:
        score, information = self._released[place], unpack_symmetric(self._released[place + 1])
        return score * scale.residual_bound, information * scale.information_bound

    @property
    def last_round(self) -> tuple[Array, Array, Array]:
        """Return score, information and second moments of scores of the last round, in the units of the model."""
        place = len(self._about["sums"]) - 3
        score, information = self._round(place, self.scale)
        return score, information, unpack_symmetric(self._released[-1]) * self.scale.residual_bound**2


class _ResidualGrid:
    """Cells of residuals by size, in their unit; the outermost one ends at twice its beginning."""

    edges = np.array([0.0, *RESIDUAL_EDGES, 2.0 * RESIDUAL_EDGES[-1]])


def positive_inverse(matrix: Array, floor: float) -> Array:
    """Return the inverse of a symmetric matrix whose eigenvalues are raised to at least ``floor``."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.maximum(values, max(floor, 1e-300))) @ vectors.T)
