"""Forecast what each party gains over training alone, from public numbers only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import InvalidParameter
from privlearn.estimators.by_name import make_estimator
from privlearn.estimators.forecast.expected_error import ExpectedError, expected_error
from privlearn.estimators.forecast.fit_forecast import plan as plan_alone
from privlearn.estimators.forecast.reference import ReferenceProblem, Spectrum, reference_problem
from privlearn.estimators.forecast.stand_ins import stand_in_table
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.mechanisms.summed.local_aggregation import LocalAggregation
from privlearn.mechanisms.summed.noisy_descent import NoisyDescent
from privlearn.parties.run.joint_training import JointTraining

Verdict = Literal["gains", "gains little", "gains nothing"]

MIN_GAIN = 0.05
"""Share of what the best model gains over guessing; less is called little. Measured in docs/theory/planning.md."""
NO_GAIN = 0.01


@dataclass(frozen=True)
class PartyGain:
    """Expected errors of one party, alone with its own records and together with the others.

    ``records``: declared records. ``alone`` and ``together``: excess over the best model: of the share of wrong
    answers or, for a number, of the root mean square error, in its units. ``gain``: ``alone - together``, as a share
    of what the best model gains over guessing.
    """

    party: str
    records: int
    alone: float
    together: float
    gain: float

    @property
    def verdict(self) -> Verdict:
        """The gain in words."""
        if self.gain < NO_GAIN:
            return "gains nothing"
        return "gains little" if self.gain < MIN_GAIN else "gains"


@dataclass(frozen=True)
class Gains:
    """Each party's gain, from `expected_gains`; iterates over the parties in the agreement's order."""

    parties: tuple[PartyGain, ...]
    is_number: bool

    def __iter__(self) -> Iterator[PartyGain]:
        return iter(self.parties)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        measure = "root mean square error" if self.is_number else "share of wrong answers"
        parties = [asdict(each) | {"verdict": each.verdict} for each in self.parties]
        return {"excess_error": measure, "parties": parties}

    def __str__(self) -> str:
        total = sum(each.records for each in self.parties)
        width = max(len("party"), *(len(each.party) for each in self.parties))
        lines = [f"{'party':<{width}}  {'records':>10}  share  alone  together    gain  verdict"]
        lines += [
            f"{each.party:<{width}}  {each.records:>10,}  {each.records / total:5.0%}  {self._format(each.alone)}  "
            f"{self._format(each.together):>8}  {each.gain:>6.1%}  {each.verdict}"
            for each in self.parties
        ]
        return "\n".join([*lines, "", *self._advice()])

    def _format(self, excess: float) -> str:
        return f"{excess:5.3g}" if self.is_number else f"{excess:5.1%}"

    def _advice(self) -> list[str]:
        measure = (
            "root mean square error, in the target's units," if self.is_number else "share of wrong answers"
        )
        lines = [
            f"alone, together: {measure} beyond that of the best model, expected for a table of ordinary people. "
            "gain: the difference, as a share of what the best model gains over guessing. No data were read and "
            "no budget was spent."
        ]
        idle = [each.party for each in self.parties if each.verdict == "gains nothing"]
        if idle:
            lines.append(
                f"{', '.join(idle)}: alone is as good or better. Taking part helps the others, and costs the same "
                "epsilon."
            )
        return lines


def expected_gains(agreement: JointTraining) -> Gains:
    """Return each party's expected gain over training alone at the same epsilon, delta and loss; reads no data.

    Parameters
    ----------
    agreement : JointTraining
        It needs no keys.

    Examples
    --------
    >>> from privlearn.data.datasets import census_schema
    >>> agreement = JointTraining(
    ...     schema=census_schema(), parties={"east": 1000, "north": 6500, "west": 14000}, epsilon=1.0, delta=1e-5
    ... )
    >>> [party.verdict for party in expected_gains(agreement)]
    ['gains', 'gains little', 'gains nothing']
    """
    together = _together(agreement)
    scale = together.guessing - together.best
    gains = []
    for name, records in agreement.parties.items():
        alone = _alone(agreement, records)
        gain = (alone.excess - together.excess) / scale
        gains.append(PartyGain(name, records, alone.excess, together.excess, gain))
    return Gains(tuple(gains), agreement.smooth_loss.argument == "residual")


def _alone(agreement: JointTraining, records: int) -> ExpectedError:
    """Return the expected error of a single holder's estimator on a party's records, with as many knots as together.

    The forecast knows what knots cost in noise, not what they gain, so it compares equal ones.
    """
    loss, schema = agreement.smooth_loss, agreement.table_schema
    model = "regression" if loss.argument == "residual" else "svm" if loss.link == "none" else "logistic"
    settings: dict[str, Any] = {
        "epsilon": agreement.epsilon,
        "delta": agreement.delta,
        "neighbours": agreement.neighbours,
        "schema": schema.model_copy(update={"columns": agreement.resolution.columns_of(schema)}),
        "loss": loss,
    }
    if agreement.kernel is not None:
        settings |= agreement.kernel.estimator_settings()
    return plan_alone(make_estimator(model, settings), records).expected_error


def _together(agreement: JointTraining) -> ExpectedError:
    loss, mechanism = agreement.smooth_loss, agreement.mechanism
    base = SchemaEncoder(agreement.table_schema, resolution=agreement.resolution)
    rows = agreement.features.transform(in_memory(base.encode(stand_in_table(agreement.table_schema))))
    spectrum, problem = Spectrum.of(rows), reference_problem(loss)
    bounds = None if agreement.table_schema.target is None else agreement.table_schema.target.bounds
    return expected_error(
        loss,
        agreement.total,
        _noise(mechanism, spectrum, problem),
        mechanism.task.regularization,
        spectrum,
        problem,
        1.0 if bounds is None else float(np.diff(bounds).max()) / 2.0,
    )


def _noise(mechanism: Any, spectrum: Spectrum, problem: ReferenceProblem) -> float:
    """Return the noise in a typical row's score if no party is missing.

    Descent averages the last half of its points; near the minimum each is off by the inverse Hessian times noise.
    """
    task = mechanism.task
    if isinstance(mechanism, LocalAggregation):
        draws = math.sqrt(mechanism.parties) if mechanism.noise == "norm_gamma" else mechanism.surplus
        deviation = coordinate_deviation(
            mechanism.noise, draws * mechanism.noise_scale, task.problems * task.dimension
        )
        return deviation * math.sqrt(spectrum.moments.sum())
    if not isinstance(mechanism, NoisyDescent):
        raise InvalidParameter("algorithm psgd has no forecast. Use descent or aggregation")
    averaged = mechanism.rounds - mechanism.rounds // 2
    gradient = mechanism.surplus * mechanism.noise_scale / (task.total * math.sqrt(averaged))
    hessian = problem.curvature * spectrum.moments + task.regularization
    return float(gradient * math.sqrt(np.sum(spectrum.moments / hessian**2)))
