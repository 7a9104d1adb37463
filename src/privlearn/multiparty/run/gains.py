"""Is it worth it for me? What each party of a plan gains over training alone, from public numbers only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import InvalidParameter
from privlearn.estimators.by_name import make_estimator
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.mechanisms.summed.local_aggregation import LocalAggregation
from privlearn.mechanisms.summed.noisy_descent import NoisyDescent
from privlearn.multiparty.run.plan import MultipartyPlan
from privlearn.planning.estimate import ReferenceProblem, Spectrum, reference_problem
from privlearn.planning.expected_error import ExpectedError, expected_error
from privlearn.planning.planner import plan as plan_alone
from privlearn.planning.stand_in import stand_in_table

Verdict = Literal["gains", "gains little", "gains nothing"]

LEAST_GAIN = 0.05
"""Of what the best model gains over guessing: less is called little; measured in docs/theory/planning.md."""
NO_GAIN = 0.01


@dataclass(frozen=True)
class PartyGain:
    """What one party may expect, alone with its own records and together with the others.

    Attributes
    ----------
    party : str
    records : int
        As the plan declares them.
    alone, together : float
        Excess error: share of wrong answers beyond the best model's; for a number the root mean square error beyond
        it, in its units.
    gain : float
        ``alone - together``, as a share of what the best model gains over guessing.
    verdict : {"gains", "gains little", "gains nothing"}
    """

    party: str
    records: int
    alone: float
    together: float
    gain: float

    @property
    def verdict(self) -> Verdict:
        if self.gain < NO_GAIN:
            return "gains nothing"
        return "gains little" if self.gain < LEAST_GAIN else "gains"


@dataclass(frozen=True)
class Gains:
    """Each party's gain under a plan. Made by `expected_gains`; iterates over the parties in the plan's order."""

    parties: tuple[PartyGain, ...]
    is_number: bool

    def __iter__(self) -> Iterator[PartyGain]:
        return iter(self.parties)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        measure = "root mean square error" if self.is_number else "share of wrong answers"
        parties = [asdict(each) | {"verdict": each.verdict} for each in self.parties]
        return {"excess_error": measure, "parties": parties}

    def __str__(self) -> str:
        total = sum(each.records for each in self.parties)
        width = max(len("party"), *(len(each.party) for each in self.parties))
        lines = [f"{'party':<{width}}  {'records':>10}  share  alone  together    gain  verdict"]
        lines += [
            f"{each.party:<{width}}  {each.records:>10,}  {each.records / total:5.0%}  {self._shown(each.alone)}  "
            f"{self._shown(each.together):>8}  {each.gain:>6.1%}  {each.verdict}"
            for each in self.parties
        ]
        return "\n".join([*lines, "", *self._advice()])

    def _shown(self, excess: float) -> str:
        return f"{excess:5.3g}" if self.is_number else f"{excess:5.1%}"

    def _advice(self) -> list[str]:
        of = "root mean square error, in the target's units," if self.is_number else "share of wrong answers"
        said = [
            f"alone, together: {of} beyond that of the best model, expected for a table of ordinary people. "
            "gain: the difference, as a share of what the best model gains over guessing. Nothing was read and "
            "nothing was spent."
        ]
        idle = [each.party for each in self.parties if each.verdict == "gains nothing"]
        if idle:
            said.append(
                f"{', '.join(idle)}: alone is as good or better. Taking part helps the others, and costs the same "
                "epsilon."
            )
        return said


def expected_gains(plan: MultipartyPlan) -> Gains:
    """What each party gains over training alone at the same epsilon, delta and loss. Reads no data, costs nothing.

    Parameters
    ----------
    plan : MultipartyPlan
        Without keys is enough.

    Examples
    --------
    >>> from privlearn.data.datasets import census_schema
    >>> plan = MultipartyPlan(
    ...     schema=census_schema(), parties={"east": 1000, "north": 5000, "west": 14000}, epsilon=1.0, delta=1e-5
    ... )
    >>> [party.verdict for party in expected_gains(plan)]
    ['gains', 'gains little', 'gains nothing']
    """
    together = _together(plan)
    scale = together.guessing - together.best
    gains = []
    for name, records in plan.parties.items():
        alone = _alone(plan, records)
        gain = (alone.excess - together.excess) / scale
        gains.append(PartyGain(name, records, alone.excess, together.excess, gain))
    return Gains(tuple(gains), plan.smooth_loss.sees == "residual")


def _alone(plan: MultipartyPlan, records: int) -> ExpectedError:
    """Of what the product's own estimator would do with a party's records."""
    loss = plan.smooth_loss
    model = "regression" if loss.sees == "residual" else "svm" if loss.link == "none" else "logistic"
    settings: dict[str, Any] = {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "neighbours": plan.neighbours,
        "schema": plan.table_schema,
        "loss": loss,
    }
    if plan.kernel is not None:
        settings |= plan.kernel.of_estimator()
    return plan_alone(make_estimator(model, settings), records).expected_error


def _together(plan: MultipartyPlan) -> ExpectedError:
    loss, mechanism = plan.smooth_loss, plan.mechanism
    base = SchemaEncoder(plan.table_schema)
    rows = plan.features.transform(in_memory(base.encode(stand_in_table(plan.table_schema))))
    spectrum, problem = Spectrum.of(rows), reference_problem(loss)
    bounds = None if plan.table_schema.target is None else plan.table_schema.target.bounds
    return expected_error(
        loss,
        plan.total,
        _noise(mechanism, spectrum, problem),
        mechanism.task.regularization,
        spectrum,
        problem,
        1.0 if bounds is None else float(np.diff(bounds).max()) / 2.0,
    )


def _noise(mechanism: Any, spectrum: Spectrum, problem: ReferenceProblem) -> float:
    """In a typical row's score if all parties are there, each with its share.

    Descent averages the last half of its points; near the minimum each is off by the inverse Hessian times noise.
    """
    task = mechanism.task
    if isinstance(mechanism, LocalAggregation):
        scale = mechanism.noise_scale * (mechanism.surplus if mechanism.noise == "gaussian" else 1.0)
        return coordinate_deviation(mechanism.noise, scale, task.dimension) * math.sqrt(
            spectrum.moments.sum()
        )
    if not isinstance(mechanism, NoisyDescent):
        raise InvalidParameter("no forecast for algorithm psgd: take descent or aggregation")
    averaged = mechanism.rounds - mechanism.rounds // 2
    gradient = mechanism.surplus * mechanism.noise_scale / (task.total * math.sqrt(averaged))
    held = problem.curvature * spectrum.moments + task.regularization
    return float(gradient * math.sqrt(np.sum(spectrum.moments / held**2)))
