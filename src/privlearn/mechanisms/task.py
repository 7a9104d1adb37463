"""The public facts of a learning task: everything a calibration may look at."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from privlearn.accounting.curves import ONE_CORNER, Corners
from privlearn.erm.certifiable import (
    GAP_TOLERANCE,
    certified_distance,
    check_dimension,
    least_gap,
    least_tolerance,
    longest_minimiser,
)
from privlearn.erm.losses import LossFacts
from privlearn.errors import InvalidParameter, check_positive, shown
from privlearn.mechanisms.statistics.centring import Centring
from privlearn.mechanisms.statistics.score_counts import ScoreCounts
from privlearn.relation import Relation, relation_named

FELT = 0.01
"""Of what one person moves: a solver's distance below it is hardly felt where it adds to a sensitivity."""

LOOSEST = 1e-8
"""A tolerance that is left to the noise is no larger: it would save a step or two of the solver."""

PLAIN_TOLERANCE = 1e-10
"""Where there is no noise."""

ANYTHING = 1e300
"""A tolerance that every point keeps."""


@dataclass(frozen=True)
class Task:
    """Regularised risk minimisation over features of norm at most 1, described without any private value.

    The objective is J(w) = (1/N) sum_i weight_i loss_i(w) + (regularization/2) |w|^2, solved ``problems`` times with
    independent noise (one-vs-rest), each over ``dimension`` coefficients.

    Parameters
    ----------
    loss : LossFacts
        Its ``lipschitz`` (L) bounds a record's gradient norm, its ``smoothness`` (c) a record's curvature.
    total : int
        N, the public number of records, or of persons when a person's rows are averaged; where it is private, the
        public number that is expected.
    dimension : int
        Coefficients of one problem.
    problems : int
        Number of problems solved; 1 for two classes and for the multinomial loss.
    regularization : float
        As asked for; objective perturbation may raise it.
    tolerance : float
        Gradient norm at which the solver stops; it refuses to return above it. `certifiable` raises it where needed; 0
        leaves it to the mechanism, whose noise says what is not felt.
    neighbours : {"replace_one", "zero_out", "add_remove"}
    weight_bound : float
        Largest class weight.
    rows_per_person : int
        How many records one person may own.
    averaged : bool
        True if each person's rows are averaged into one record of weight 1.
    parties_per_person : int
        Of several holders: how many may have records of one person, each as many as ``rows_per_person``.
    gap : float
        The same as ``tolerance`` for the hinge, which has no gradient: its duality gap.
    classes : int
        How many the softmax loss tells apart; 0 for losses of one score.
    centring : Centring, optional
        What was bought of the same records before, to move and scale the rows.
    score_counts : ScoreCounts, optional
        What is bought of the same records afterwards, to learn the scores' probabilities.
    """

    loss: LossFacts
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
    centring: Centring | None = None
    score_counts: ScoreCounts | None = None

    def __post_init__(self) -> None:
        relation_named(self.neighbours)
        for name in ("total", "dimension", "problems", "rows_per_person", "parties_per_person"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InvalidParameter(
                    f"{name} must be a whole number of at least 1, not {shown(getattr(self, name))}"
                )
        if self.classes and (
            self.classes < 2 or self.loss.sees != "classes" or self.dimension % self.classes
        ):
            raise InvalidParameter(
                "classes must be at least two, each with as many coefficients as the others"
            )
        check_positive(
            regularization=self.regularization,
            tolerance=self.tolerance or LOOSEST,
            weight_bound=self.weight_bound,
            gap=self.gap,
        )

    def certifiable(
        self,
        *,
        regularization: float | None = None,
        linear_norm: float = 0.0,
        unfelt: float | None = None,
    ) -> Task:
        """The same task with a tolerance that the solver reaches on every table: the one asked for, or the least such.

        It follows from public facts alone, before any row is looked at, so that no solver's failure can tell two
        tables apart (docs/theory/solver.md, "Every table").

        Parameters
        ----------
        regularization : float, optional
            What the mechanism has raised the task's own to.
        linear_norm : float, default=0.0
            Bound on the linear term that the mechanism adds to J.
        unfelt : float, optional
            The tolerance to ask for if it was left to the mechanism; by default one that adds a hundredth to what one
            person moves.

        Raises
        ------
        InvalidParameter
            If there is none.
        """
        strength = self.regularization if regularization is None else regularization
        if math.isinf(self.loss.smoothness):
            check_dimension(self.dimension)
        unfelt = FELT * self.gradient_sensitivity / (2.0 * self.total) if unfelt is None else unfelt
        asked = dataclasses.replace(self, tolerance=self.tolerance or min(max(unfelt, 0.0), LOOSEST))
        found = asked._reaching(strength, linear_norm, self.mass_bound)
        if max(found.tolerance, found.gap) >= ANYTHING:
            raise InvalidParameter(
                f"regularization = {strength:g} is too small: rounding errors would keep the solver from proving its "
                "result on some tables. Take regularization='auto', or a larger number"
            )
        return found

    def within_reach(self, regularization: float, linear_norm: float, mass: float) -> Task:
        """PRIVATE: what the solver is asked for on rows whose weights add up to ``mass`` times N.

        Where the number of records is private there may be more than the task speaks of. A solver that refused them
        would tell: it is asked for what rounding leaves, and if that is nothing, for any point.
        """
        return self if mass <= self.mass_bound else self._reaching(regularization, linear_norm, mass)

    def _reaching(self, regularization: float, linear_norm: float, mass: float) -> Task:
        facts: dict[str, Any] = {"dimension": self.dimension, "weight_bound": mass}
        if math.isinf(self.loss.smoothness):
            least = least_gap(regularization, **facts)
            return dataclasses.replace(self, gap=min(max(self.gap, least), ANYTHING))
        least = least_tolerance(self.loss, regularization, linear_norm=linear_norm, **facts)
        return dataclasses.replace(self, tolerance=min(max(self.tolerance, least), ANYTHING))

    @property
    def solver_distance(self) -> float:
        """t: how far the returned point may lie from the exact minimiser."""
        return certified_distance(self.loss, self.regularization, self.tolerance, self.gap)

    @property
    def relation(self) -> Relation:
        """What neighbours are, with the facts that theorems take from it."""
        return relation_named(self.neighbours)

    @property
    def beside_ratio(self) -> float:
        """Ratio of the Gaussian mechanism that dominates centring and counts of scores; 0 without them."""
        bought = (self.centring, self.score_counts)
        return math.hypot(*(part.ratio(self.relation) for part in bought if part is not None))

    @property
    def mass_bound(self) -> float:
        """The most that the rows' weights add up to, over N."""
        return self.weight_bound * self.relation.largest_table

    @property
    def features(self) -> int:
        """Coefficients of one score: all of a problem's, or those of one class."""
        return self.dimension // max(self.classes, 1)

    @property
    def records_of_a_person(self) -> int:
        """How many one person may own, with all holders together; averaged rows are one per holder."""
        return self.rows_per_person * self.parties_per_person

    @property
    def gradient_sensitivity(self) -> float:
        """How far one person moves the sum of all gradients of one problem, at any w: 2 L, or L if none is replaced."""
        return self.relation.gradients * self.loss.lipschitz * self.weight_bound * self.records_of_a_person

    @property
    def minimiser_sensitivity(self) -> float:
        """How far one person moves the exact minimiser of one problem (CMS11 Corollary 1): gradient / (N Lambda)."""
        return self.gradient_sensitivity / (self.total * self.regularization)

    @property
    def ball_radius(self) -> float:
        """C: no exact minimiser w, on any data, is longer."""
        return longest_minimiser(
            self.loss, self.regularization, dimension=self.dimension, weight_bound=self.mass_bound
        )

    @property
    def curvature_rank(self) -> int:
        """Rank of one record's Hessian: 1, and one less than the number of classes for the softmax loss."""
        return max(self.classes - 1, 1)

    def curvature_ratio(self, regularization: float) -> float:
        """q: the trace of what one record adds to a Jacobian, over its smallest eigenvalue N Lambda.

        That trace is at most c; for the softmax loss sum_k p_k (1 - p_k) <= 1 - 1/K.
        """
        trace = 1.0 - 1.0 / self.classes if self.classes else self.loss.smoothness
        return trace * self.weight_bound / (self.total * regularization)

    def jacobian_slack(self, regularization: float) -> float:
        """Bound on the log-ratio of the Jacobian determinants of one problem on neighbouring data sets.

        One record is an update of rank r and trace q: at most r log(1 + q / r). A person with m rows: m such updates. A
        person whose rows are averaged: any rank, but trace at most q, so log det(I + E) <= q.
        """
        ratio, rank = self.curvature_ratio(regularization), self.curvature_rank
        return ratio if self.averaged else self.rows_per_person * rank * math.log1p(ratio / rank)

    def curvature_ratio_of(self, slack: float) -> float:
        """The q of that slack: the inverse of `jacobian_slack`."""
        rank, beyond_concern = self.curvature_rank, 700.0  # and beyond what expm1 can hold
        share = min(slack / (self.rows_per_person * rank), beyond_concern)
        return slack if self.averaged else rank * math.expm1(share)

    @property
    def free_directions(self) -> int | None:
        """Along how many lines a person may move the gradients either way, at worst; ``None`` if nobody knows.

        0: they move between known `corners` (a monotone margin loss, the softmax loss). 1: the sign is open, as for a
        residual; of a record and its replacement, those on one line are the worst (docs/theory/objective.md). A person
        with several rows, or the softmax loss of an unknown number of classes, has more.
        """
        known = self.classes if self.loss.sees == "classes" else 1
        if self.records_of_a_person > 1 or self.averaged or not known:
            return None
        return 0 if self.loss.monotone or self.classes else 1

    @property
    def corners(self) -> Corners:
        """Corners, 0 left out, of what holds every change of the gradients by one person (docs/theory/softmax.md).

        A gradient of the softmax loss lies in a simplex with corners at 0 and, K - 1 times, at distance sqrt(2). Two
        of them, of a record and of its replacement, make K^2 - 1 corners; at worst all of two classes but one point the
        same way. Two classes have one direction, like a margin.
        """
        others = self.classes - 1
        if others < 2:
            return ONE_CORNER
        if self.relation.gradients == 1:
            return ((others, 1.0),)
        return (others, 1.0), (others * (others - 1), math.sqrt(0.75)), (2 * others, 0.5)
