"""What an interactive session would be worth, from public facts alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import InvalidParameter
from privlearn.estimators.goal import TrainingRows
from privlearn.estimators.kernel_learner import LARGEST, KernelLearner
from privlearn.estimators.session_task import session_facts, session_task, span_facts
from privlearn.features.kernel import Kernel, as_matrix
from privlearn.features.kernels import LinearKernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.task import SessionMechanism, session_mechanism
from privlearn.planning.estimate import Spectrum, reference_problem
from privlearn.planning.forecast import MOST_ROWS, Forecast, unit_of
from privlearn.planning.stand_in import check_count, synthetic_table

_STAND_INS = 500


@dataclass(frozen=True, eq=False)
class SessionPlan(Forecast):
    """What `InteractivePredictor` would run, and how its noise compares with what it would find.

    The noise of function release is exact: every answer has it. PINP's answers are off by the threshold, below which
    its guess is not corrected, or by the noise of the correction, whichever is larger. Margins are estimates, as those
    of a `Plan`.
    """

    learner: KernelLearner = dataclasses.field(repr=False)
    stand_ins: TrainingRows = dataclasses.field(repr=False)
    kernel: Kernel
    name: str

    @cached_property
    def mechanism(self) -> SessionMechanism:
        stand_ins = dataclasses.replace(self.stand_ins, total=self.rows)
        task = session_task(self.learner, stand_ins, self.guarantee, self.kernel)
        if self.learner.public_points is None:
            facts = session_facts(task, self.kernel, self.features)
        else:
            facts = span_facts(task, self.features)
        found: SessionMechanism = session_mechanism(self.name).calibrate(facts, self.guarantee)
        return found

    @cached_property
    def noise(self) -> float:
        along = float(self.spectrum.moments.sum() ** 0.5)  # noise is in proportion to a point's length
        mechanism = self.mechanism
        return self.worst_case * (along if mechanism.answer_error == mechanism.answer_deviation else 1.0)

    @cached_property
    def worst_case(self) -> float:
        return self.unit * self.mechanism.answer_error

    @property
    def features(self) -> int:
        return self.stand_ins.dimension

    @property
    def noise_scale(self) -> float:
        return self.mechanism.answer_deviation

    @property
    def regularization(self) -> float:
        return self.mechanism.task.regularization


def plan_session(learner: KernelLearner, rows: int, guarantee: Guarantee, mechanism: str) -> SessionPlan:
    """Tell what a session on so many records would be worth. Reads no data and costs nothing.

    Parameters
    ----------
    learner : KernelLearner
        With all its parameters, a schema among them; it is not fitted. With public points it is planned on these.
    rows : int
        Number of records, or of persons if the schema has a person column.
    guarantee : Guarantee
    mechanism : {"function_release", "pinp"}
    """
    session_mechanism(mechanism)
    if learner.schema is None:
        raise InvalidParameter("a session is planned from a schema: KernelLearner(schema=...)")
    most = LARGEST if learner.public_points is None else MOST_ROWS
    if rows > most:
        raise InvalidParameter(
            f"an exact kernel machine takes at most {most:,} records: let the session answer from a model instead"
        )
    stand_ins = learner.read_rows(synthetic_table(learner.schema, _STAND_INS, seed=0), None, private=True)
    kernel = learner.chosen_kernel(cast(SchemaEncoder, stand_ins.encoder))
    points = as_matrix(in_memory(stand_ins.features))
    if learner.public_points is not None:
        points, kernel = learner.landmarks(stand_ins.encoder).of_records(points), LinearKernel()
        stand_ins = dataclasses.replace(stand_ins, features=points)
    spectrum = Spectrum.of_products(kernel(points, points) / kernel.bound)
    made = SessionPlan(
        check_count("rows", rows, most),
        guarantee,
        unit_of(stand_ins),
        spectrum,
        reference_problem(learner.chosen_loss()),
        learner,
        stand_ins,
        kernel,
        mechanism,
        persons=learner.schema is not None and learner.schema.person is not None,
    )
    made.mechanism  # noqa: B018 - refuses now what no theorem covers
    return made
