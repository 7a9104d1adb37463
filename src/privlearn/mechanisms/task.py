"""The public parameters of a learning task: everything that a calibration may depend on."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from privlearn.errors import InvalidParameter, check_positive, preview
from privlearn.guarantee import Relation, get_relation
from privlearn.mechanisms.statistics.centring import Centring
from privlearn.mechanisms.statistics.locations import Locations
from privlearn.mechanisms.statistics.score_counts import ScoreCounts
from privlearn.mechanisms.statistics.statistic import ClassCounts, Statistic
from privlearn.solvers.certifiable import (
    GAP_TOLERANCE,
    certified_distance,
    check_dimension,
    min_gap,
    min_tolerance,
    minimiser_norm_bound,
)
from privlearn.solvers.losses import LossProperties

NEGLIGIBLE = 0.01
"""Share of the sensitivity: a solver's distance below it is negligible where it adds to a sensitivity."""

MAX_TOLERANCE = 1e-8
"""Upper limit of a tolerance that the mechanism chooses; a larger one would save only a step or two of the solver."""

PLAIN_TOLERANCE = 1e-10
"""Tolerance without noise."""

MIN_REGULARIZATION, MAX_REGULARIZATION = 1e-100, 1e100
"""Far beyond these limits, squares of sensitivities overflow or underflow in floating point."""

UNREACHABLE = 1e300
"""A tolerance that every point satisfies."""

STATISTICS: dict[str, type[Statistic]] = {
    "class_counts": ClassCounts,
    "target_locations": Locations,
    "centring": Centring,
    "score_counts": ScoreCounts,
}
"""Fields of a task that hold a statistic, in the order in which a fit releases them; certificates use the names."""


@dataclass(frozen=True)
class Task:
    """Regularised risk minimisation over features of norm at most 1, described without any private value.

    The objective is J(w) = (1/N) sum_i weight_i loss_i(w) + (regularization/2) |w|^2, solved ``problems`` times with
    independent noise (one-vs-rest), each over ``dimension`` coefficients.

    Parameters
    ----------
    loss : LossProperties
        Its ``lipschitz`` (L) bounds a record's gradient norm, its ``smoothness`` (c) a record's second derivative.
    total : int
        N, the public number of records, or of persons when a person's rows are averaged; where it is private, the
        public expectation.
    dimension : int
        Coefficients of one problem.
    problems : int
        Number of problems solved; 1 for two classes and for the multinomial loss.
    regularization : float
        As requested; objective perturbation may raise it.
    tolerance : float
        Gradient norm at which the solver stops; it refuses to return above it. `certifiable` raises it where needed; 0
        leaves it to the mechanism, which chooses one that is negligible next to its noise.
    neighbours : {"replace_one", "zero_out", "add_remove"}
    weight_bound : float
        Maximal class weight.
    row_weight_bound : float
        Public cap of row weights, in units of their public mean; 1 without row weights.
    rows_per_person : int
        Maximal number of records of one person.
    averaged : bool
        True if each person's rows are averaged into one record of weight 1.
    parties_per_person : int
        Number of holders that may have records of one person, up to ``rows_per_person`` each.
    gap : float
        Duality gap at which the solver stops for the hinge, which has no gradient.
    classes : int
        Number of classes of the softmax loss; 0 for losses of one score.
    class_counts : ClassCounts, optional
        Private counts of the classes, from which the offsets of scores follow.
    target_locations : Locations, optional
        Private centre and spread of the numbers to predict.
    centring : Centring, optional
        Private centring of the same records, which moves and scales the rows first.
    score_counts : ScoreCounts, optional
        Private counts of the same records afterwards, from which probabilities are learnt.
    prior_norm : float
        |w0| of the public model in the regularizer (regularization/2) |w - w0|^2; 0 without one. It
        changes no bound on a gradient (docs/theory/regularization.md), only those on rounding.
    offset_bound : float
        Bound on the norm of the offsets that a row's scores have, beyond targets in [-1, 1]; it changes no bound on a
        gradient (docs/theory/offsets.md), only those on rounding.
    largest_ridge : float
        Maximal weight g_j of the regularizer (regularization/2) sum_j g_j w_j^2, whose smallest is at least 1;
        the task is about sqrt(g_j) w_j and rows divided by sqrt(g_j), so no theorem depends on it.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> task.minimiser_sensitivity, round(task.ball_radius, 3)
    (0.02, 8.326)
    >>> task.jacobian_slack(task.regularization) < 0.25 / (10_000 * 0.01)
    True
    """

    loss: LossProperties
    total: int
    dimension: int
    problems: int
    regularization: float
    tolerance: float
    neighbours: str
    weight_bound: float = 1.0
    rows_per_person: int = 1
    averaged: bool = False
    parties_per_person: int = 1
    gap: float = GAP_TOLERANCE
    classes: int = 0
    class_counts: ClassCounts | None = None
    target_locations: Locations | None = None
    centring: Centring | None = None
    score_counts: ScoreCounts | None = None
    prior_norm: float = 0.0
    offset_bound: float = 0.0
    largest_ridge: float = 1.0
    row_weight_bound: float = 1.0

    def __post_init__(self) -> None:
        get_relation(self.neighbours)
        for name in ("total", "dimension", "problems", "rows_per_person", "parties_per_person"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InvalidParameter(
                    f"{name} must be a whole number of at least 1, not {preview(getattr(self, name))}"
                )
        if self.classes and (
            self.classes < 2 or self.loss.argument != "classes" or self.dimension % self.classes
        ):
            raise InvalidParameter(
                "classes must be at least 2 and divide dimension, and the loss must be one of classes"
            )
        for name, minimum in (("prior_norm", 0), ("offset_bound", 0), ("largest_ridge", 1)):
            if not minimum <= getattr(self, name) < math.inf:
                raise InvalidParameter(
                    f"{name} must be finite and at least {minimum}, not {preview(getattr(self, name))}"
                )
        check_positive(
            regularization=self.regularization,
            tolerance=self.tolerance or MAX_TOLERANCE,
            weight_bound=self.weight_bound,
            row_weight_bound=self.row_weight_bound,
            gap=self.gap,
        )
        if not MIN_REGULARIZATION <= self.regularization <= MAX_REGULARIZATION:
            size, other = ("small", "smaller") if self.regularization < 1.0 else ("large", "larger")
            raise InvalidParameter(
                f"regularization = {self.regularization:g} is too {size}. Use regularization='auto', a number from "
                f"{MIN_REGULARIZATION:g} to {MAX_REGULARIZATION:g}, or a {other} C"
            )

    def certifiable(
        self,
        *,
        regularization: float | None = None,
        linear_norm: float = 0.0,
        negligible: float | None = None,
    ) -> Task:
        """Return the task with a tolerance that the solver reaches on every table: at least the requested one.

        It follows from public parameters alone, before a row is read, so that no failure of the solver can depend on
        the rows (docs/theory/solver.md, "Every table").

        Parameters
        ----------
        regularization : float, optional
            The value to which the mechanism has raised the task's own.
        linear_norm : float, default=0.0
            Bound on the linear term that the mechanism adds to J.
        negligible : float, optional
            Tolerance if the task leaves it to the mechanism; by default one that adds a hundredth to the sensitivity.

        Raises
        ------
        InvalidParameter
            If there is no such tolerance.
        """
        strength = self.regularization if regularization is None else regularization
        # The hinge solves d x d systems; a limit on d alone is public.
        if math.isinf(self.loss.smoothness):
            check_dimension(self.dimension)
        negligible = (
            NEGLIGIBLE * self.gradient_sensitivity / (2.0 * self.total) if negligible is None else negligible
        )
        request = dataclasses.replace(
            self, tolerance=self.tolerance or min(max(negligible, 0.0), MAX_TOLERANCE)
        )
        result = request._with_reachable_tolerance(strength, linear_norm, self.mass_bound)
        if max(result.tolerance, result.gap) >= UNREACHABLE:
            raise InvalidParameter(
                f"regularization = {strength:g} is too small: rounding errors would keep the solver from proving its "
                "result on some tables. Use regularization='auto', a larger number, or a smaller C"
            )
        return result

    def within_reach(self, regularization: float, linear_norm: float, mass: float) -> Task:
        """PRIVATE: return the task for rows whose weights add up to ``mass`` times N.

        Where the number of records is private, there may be more than the task assumes. A refusal would reveal that, so
        the solver is asked for the tolerance that rounding allows, or for any point.
        """
        return (
            self
            if mass <= self.mass_bound
            else self._with_reachable_tolerance(regularization, linear_norm, mass)
        )

    def _with_reachable_tolerance(self, regularization: float, linear_norm: float, mass: float) -> Task:
        bounds: dict[str, Any] = {"dimension": self.dimension, "weight_bound": mass}
        if math.isinf(self.loss.smoothness):
            smallest = min_gap(regularization, **bounds)
            return dataclasses.replace(self, gap=min(max(self.gap, smallest), UNREACHABLE))
        bounds["prior_norm"] = self.prior_norm + self.offset_bound
        smallest = min_tolerance(self.loss, regularization, linear_norm=linear_norm, **bounds)
        return dataclasses.replace(self, tolerance=min(max(self.tolerance, smallest), UNREACHABLE))

    @property
    def solver_distance(self) -> float:
        """t: maximal distance of the returned point from the exact minimiser."""
        return certified_distance(self.loss, self.regularization, self.tolerance, self.gap)

    @property
    def relation(self) -> Relation:
        """The neighbouring relation, with the properties that theorems need."""
        return get_relation(self.neighbours)

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The statistics that are released with the model, by name."""
        values = {name: getattr(self, name) for name in STATISTICS}
        return {name: value for name, value in values.items() if value is not None}

    def without_statistics(self) -> Task:
        """Return the task of the model alone."""
        none: dict[str, Any] = dict.fromkeys(STATISTICS)
        return dataclasses.replace(self, **none)

    @property
    def other_ratio(self) -> float:
        """Ratio of the Gaussian mechanism that dominates the statistics; 0 without them, or if their noise is pure."""
        # A person with m rows moves every sum and count m times as far.
        rows = self.records_of_a_person
        return rows * math.hypot(*(part.ratio(self.relation) for part in self.statistics.values()))

    @property
    def other_epsilon(self) -> float:
        """Cost of the statistics with pure noise; 0 without them."""
        rows = self.records_of_a_person
        return rows * math.fsum(part.epsilon(self.relation) for part in self.statistics.values())

    @property
    def max_weight(self) -> float:
        """Maximal weight of a record in the objective: by its class, times its own."""
        return self.weight_bound * self.row_weight_bound

    @property
    def mass_bound(self) -> float:
        """Bound on the sum of the rows' weights, divided by N."""
        return self.max_weight * self.relation.max_table_ratio

    @property
    def features(self) -> int:
        """Coefficients of one score: all of a problem's, or those of one class."""
        return self.dimension // max(self.classes, 1)

    @property
    def records_of_a_person(self) -> int:
        """Maximal number of records of one person at all holders together; averaged rows are one per holder."""
        return self.rows_per_person * self.parties_per_person

    @property
    def gradient_sensitivity(self) -> float:
        """Maximal change of one problem's sum of gradients by one person, at any w: 2 L, or L if none is replaced."""
        return self.relation.gradients * self.loss.lipschitz * self.max_weight * self.records_of_a_person

    @property
    def minimiser_sensitivity(self) -> float:
        """Maximal change of one problem's exact minimiser by one person (CMS11 Corollary 1): gradient / (N Lambda)."""
        return self.gradient_sensitivity / (self.total * self.regularization)

    @property
    def ball_radius(self) -> float:
        """C: bound on the norm of the exact minimiser w on any data."""
        return minimiser_norm_bound(
            self.loss,
            self.regularization,
            dimension=self.dimension,
            weight_bound=self.mass_bound,
            prior_norm=self.prior_norm + self.offset_bound,
        )

    @property
    def curvature_rank(self) -> int:
        """Rank of one record's Hessian: 1, and one less than the number of classes for the softmax loss."""
        return max(self.classes - 1, 1)

    def curvature_ratio(self, regularization: float) -> float:
        """Return q: the trace of one record's part of a Jacobian, over its smallest eigenvalue N Lambda.

        That trace is at most c; for the softmax loss sum_k p_k (1 - p_k) <= 1 - 1/K.
        """
        trace = 1.0 - 1.0 / self.classes if self.classes else self.loss.smoothness
        return trace * self.max_weight / (self.total * regularization)

    def jacobian_slack(self, regularization: float) -> float:
        """Return the bound on the log-ratio of one problem's Jacobian determinants on neighbouring data sets.

        One record is an update of rank r and trace q: at most r log(1 + q / r). A person with m rows: m such updates. A
        person whose rows are averaged: any rank, but trace at most q for each holder, so log det(I + E) <= q.
        """
        ratio, rank = self.curvature_ratio(regularization), self.curvature_rank
        # An averaged person has a Jacobian of any rank, for which only the trace is bounded.
        each = ratio if self.averaged else rank * math.log1p(ratio / rank)
        return self.records_of_a_person * each

    def curvature_ratio_of(self, slack: float) -> float:
        """Return the q of a given slack: the inverse of `jacobian_slack`."""
        rank, max_exponent = self.curvature_rank, 700.0  # expm1 overflows beyond
        each = slack / self.records_of_a_person
        return each if self.averaged else rank * math.expm1(min(each / rank, max_exponent))

    @property
    def has_open_sign(self) -> bool:
        """Return whether a person may move the gradients along a line either way, as residuals do.

        Without it they move between known `corners` (a monotone margin loss, the softmax loss). By the averaging
        theorem neither a replacement nor any number of rows per person changes this (docs/theory/objective.md).
        """
        return not (self.loss.monotone or self.classes)

    @property
    def corners(self) -> int:
        """Number of corners, 0 left out, of the set that bounds a person's change of the gradients.

        A gradient of the softmax loss of K classes lies in a simplex with corners at 0 and, K - 1 times, at distance
        sqrt(2); the averaging theorem leads every relation back to one such simplex (docs/theory/softmax.md). Two
        classes have one direction, like a margin.
        """
        return max(self.classes - 1, 1)
