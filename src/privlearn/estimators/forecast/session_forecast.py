"""`forecast_session`: the forecast of an interactive session, from public numbers alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import InvalidParameter
from privlearn.estimators.forecast.expected_gain import settings
from privlearn.estimators.forecast.forecast import MAX_ROWS, USUAL_RATE, Forecast, unit_of
from privlearn.estimators.forecast.reference import Spectrum
from privlearn.estimators.forecast.stand_ins import check_count, stand_ins, synthetic_table
from privlearn.estimators.kernel_fit import exact_kernel_task, landmark_kernel_task, session_task
from privlearn.estimators.kernel_learner import MAX_EXACT_ROWS, KernelLearner
from privlearn.estimators.training_rows import TrainingRows
from privlearn.features.kernel import Kernel, as_matrix
from privlearn.features.kernels import LinearKernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.task import SessionMechanism, session_mechanism

_STAND_INS = 500


@dataclass(frozen=True, eq=False)
class SessionForecast(Forecast):
    """Forecast of a session: what `InteractivePredictor` would run, and how its noise compares with its answers.

    The noise of function release is exact: every answer has it. PINP's answers are off by the threshold, below which
    its guess is not corrected, or by the noise of the correction, whichever is larger. Margins are estimates, as in
    every `Forecast`.
    """

    learner: KernelLearner = dataclasses.field(repr=False)
    stand_ins: TrainingRows = dataclasses.field(repr=False)
    kernel: Kernel
    name: str

    @cached_property
    def mechanism(self) -> SessionMechanism:
        return _calibrate(self.learner, self.stand_ins, self.kernel, self.rows, self.guarantee, self.name)

    @cached_property
    def noise(self) -> float:
        length = float(self.spectrum.moments.sum() ** 0.5)  # noise is proportional to a point's length
        mechanism = self.mechanism
        return self.worst_case * (length if mechanism.answer_error == mechanism.answer_deviation else 1.0)

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


def forecast_session(
    learner: KernelLearner, rows: int, guarantee: Guarantee, mechanism: str
) -> SessionForecast:
    """Forecast a session on this many records. Reads no data and costs nothing.

    Parameters
    ----------
    learner : KernelLearner
        With all its parameters, including a schema; it stays unfitted. Public points replace synthetic ones.
    rows : int
        Number of records, or of persons if the schema has a person column.
    guarantee : Guarantee
    mechanism : {"function_release", "pinp"}
    """
    rows = _check_session(learner, rows, mechanism)
    table = synthetic_table(cast(Schema, learner.schema), _STAND_INS, seed=0)
    stand_in_rows, kernel = _read(learner, table, None)
    points = as_matrix(in_memory(stand_in_rows.features))
    spectrum = Spectrum.of_products(kernel(points, points) / kernel.bound)
    forecast = SessionForecast(
        rows,
        guarantee,
        unit_of(stand_in_rows),
        spectrum,
        settings(learner.select_loss(), USUAL_RATE),
        None,
        learner,
        stand_in_rows,
        kernel,
        mechanism,
        persons=learner.schema is not None and learner.schema.person is not None,
    )
    forecast.mechanism  # noqa: B018 - refuses now what no theorem covers
    return forecast


def calibrate_session(
    learner: KernelLearner, rows: int, guarantee: Guarantee, mechanism: str
) -> SessionMechanism:
    """Return the mechanism that a session on ``rows`` records would run. The parameters: see `forecast_session`.

    Reads two synthetic rows, to know their dimension: it takes a millisecond, where a forecast takes tens.
    """
    rows = _check_session(learner, rows, mechanism)
    stand_in_rows, kernel = _read(learner, *stand_ins(learner, None, count=2))
    return _calibrate(learner, stand_in_rows, kernel, rows, guarantee, mechanism)


def _check_session(learner: KernelLearner, rows: int, mechanism: str) -> int:
    """Return the number of rows; refuse what no session can be calibrated for."""
    session_mechanism(mechanism)
    if learner.schema is None:
        raise InvalidParameter("a session's forecast needs a schema: KernelLearner(schema=...)")
    max_rows = MAX_EXACT_ROWS if learner.public_points is None else MAX_ROWS
    if rows > max_rows:
        raise InvalidParameter(
            f"an exact kernel machine takes at most {max_rows:,} records. Let the session answer from a model"
        )
    return check_count("rows", rows, max_rows)


def _read(learner: KernelLearner, table: Any, answers: Any) -> tuple[TrainingRows, Kernel]:
    """Return synthetic rows as the machine would read them, and the kernel in which it is linear."""
    rows = learner.read_rows(table, answers, private=True)
    if learner.public_points is None:
        return rows, learner.select_kernel(cast(SchemaEncoder, rows.encoder))
    points = learner.landmarks(rows.encoder).of_records(as_matrix(in_memory(rows.features)))
    return dataclasses.replace(rows, features=points), LinearKernel()


def _calibrate(
    learner: KernelLearner,
    stand_in_rows: TrainingRows,
    kernel: Kernel,
    rows: int,
    guarantee: Guarantee,
    name: str,
) -> SessionMechanism:
    task = session_task(learner, dataclasses.replace(stand_in_rows, total=rows), guarantee, kernel)
    if learner.public_points is None:
        kernel_task = exact_kernel_task(task, kernel, stand_in_rows.dimension)
    else:
        kernel_task = landmark_kernel_task(task, stand_in_rows.dimension)
    mechanism: SessionMechanism = session_mechanism(name).calibrate(kernel_task, guarantee)
    return mechanism
