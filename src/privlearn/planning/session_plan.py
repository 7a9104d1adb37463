"""What an interactive session would be worth, from public facts alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from privlearn.errors import InvalidParameter
from privlearn.estimators.kernel_learner import LARGEST, KernelLearner
from privlearn.estimators.session_goal import Goal, loss_of, read_goal
from privlearn.estimators.session_task import session_facts, session_task
from privlearn.features import Kernel, kernel_from_name
from privlearn.features.points import as_matrix
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.function_release import FunctionRelease
from privlearn.mechanisms.pinp import TightPINP
from privlearn.planning.estimate import Spectrum, typical_margin
from privlearn.planning.foretold import Foretold, unit_of
from privlearn.planning.stand_in import check_count
from privlearn.planning.synthetic import synthetic_table
from privlearn.planning.typical import TypicalProblem, typical_problem

SessionName = Literal["function_release", "pinp"]
_MECHANISMS: dict[str, Any] = {"function_release": FunctionRelease, "pinp": TightPINP}
_STAND_INS = 500


@dataclass(frozen=True, eq=False)
class SessionPlan(Foretold):
    """What `InteractivePredictor` would run, and how its noise compares with what it would find.

    The noise of function release is exact: every answer has it. PINP's answers are off by the threshold, below which
    its guess is not corrected, or by the noise of the correction, whichever is larger. Margins are estimates, as those
    of a `Plan`.
    """

    learner: KernelLearner = dataclasses.field(repr=False)
    goal: Goal = dataclasses.field(repr=False)
    spectrum: Spectrum = dataclasses.field(repr=False)
    problem: TypicalProblem = dataclasses.field(repr=False)
    name: SessionName

    @cached_property
    def mechanism(self) -> FunctionRelease | TightPINP:
        goal: Any = self.goal
        goal = dataclasses.replace(goal, rows=dataclasses.replace(goal.rows, total=self.rows))
        task = session_task(goal, loss_of(self.learner), self.learner.regularization, self.guarantee)
        facts = session_facts(task, _kernel_of(self.learner), self.features)
        found: FunctionRelease | TightPINP = _MECHANISMS[self.name].calibrate(facts, self.guarantee)
        return found

    @cached_property
    def noise(self) -> float:
        if isinstance(self.mechanism, TightPINP):
            return self.worst_case
        return self.worst_case * float(self.spectrum.moments.sum() ** 0.5)

    @cached_property
    def worst_case(self) -> float:
        mechanism = self.mechanism
        if isinstance(mechanism, TightPINP):
            return self.unit * max(mechanism.threshold, mechanism.answer_scale)
        return self.unit * mechanism.noise_scale

    @cached_property
    def margin(self) -> float:
        return self.unit * typical_margin(self.regularization, self.spectrum, self.problem)

    @property
    def features(self) -> int:
        return int(self.goal.rows.features.shape[1])

    @property
    def problems(self) -> int:
        return self.mechanism.facts.task.problems

    @property
    def noise_scale(self) -> float:
        mechanism = self.mechanism
        return mechanism.answer_scale if isinstance(mechanism, TightPINP) else mechanism.noise_scale

    @property
    def regularization(self) -> float:
        return self.mechanism.facts.task.regularization


def plan_session(learner: KernelLearner, rows: int, guarantee: Guarantee, mechanism: str) -> SessionPlan:
    """Tell what a session on so many records would be worth. Reads no data and costs nothing.

    Parameters
    ----------
    learner : KernelLearner
        With all its parameters, a schema among them; it is not fitted.
    rows : int
        Number of records, or of persons if the schema has a person column.
    guarantee : Guarantee
    mechanism : {"function_release", "pinp"}
    """
    if mechanism not in _MECHANISMS:
        raise InvalidParameter(f"a session's mechanism is one of {', '.join(_MECHANISMS)}, not {mechanism!r}")
    if learner.schema is None:
        raise InvalidParameter("a session is planned from a schema: KernelLearner(schema=...)")
    if rows > LARGEST:
        raise InvalidParameter(
            f"an exact kernel machine takes at most {LARGEST:,} records: let the session answer from a model instead"
        )
    kernel = _kernel_of(learner)
    goal = read_goal(learner, synthetic_table(learner.schema, _STAND_INS, seed=0), None)
    points = as_matrix(goal.rows.features)
    spectrum = Spectrum.of_products(kernel(points, points) / kernel.bound)
    made = SessionPlan(
        check_count("rows", rows, LARGEST),
        guarantee,
        unit_of(goal.rows),
        learner,
        goal,
        spectrum,
        typical_problem(loss_of(learner)),
        mechanism,  # type: ignore[arg-type]
    )
    made.mechanism  # noqa: B018 - refuses now what no theorem covers
    return made


def _kernel_of(learner: KernelLearner) -> Kernel:
    return kernel_from_name(
        learner.kernel,
        gamma=learner.gamma,
        degree=learner.degree,
        coef0=learner.coef0,
        bound=learner.kernel_bound,
    )
