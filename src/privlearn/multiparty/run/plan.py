"""The plan that all holders sign: data, features, mechanism, cohort; everything in it is public."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import (
    AfterValidator,
    Field,
    StrictInt,
    StrictStr,
    ValidationInfo,
    model_validator,
)

from privlearn.data.encode.encoder import Bounds, SchemaEncoder
from privlearn.data.schema.columns import Target
from privlearn.erm.losses import LossFacts, loss_from_name, losses_of
from privlearn.errors import InvalidParameter
from privlearn.estimators.goal import ClassGoal, Goal, NumberGoal
from privlearn.estimators.plan import default_regularization
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed.local_aggregation import LocalAggregation
from privlearn.mechanisms.summed.noisy_descent import NoisyDescent
from privlearn.mechanisms.summed.psgd import PrivateSGD
from privlearn.mechanisms.summed.summed import NoisySums, SummedMechanism, surplus
from privlearn.mechanisms.task import Task
from privlearn.multiparty.run.features import EncodedFeatures, KernelSettings
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.randomness import Randomness
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import describe_encoding

Algorithm = Literal["descent", "aggregation", "uniform_aggregation", "psgd"]
TOLERANCE = 1e-10
_KINDS: dict[str, Any] = {
    "descent": NoisyDescent,
    "aggregation": LocalAggregation,
    "uniform_aggregation": LocalAggregation,
    "psgd": PrivateSGD,
}


def _goal(target: Target) -> Goal:
    """What is learnt, with no row of it."""
    if target.classes:
        return ClassGoal(np.empty(0, dtype=np.int64), np.array(target.classes))
    return NumberGoal(np.empty(0), cast(Bounds, target.bounds))


def _fitting_loss(name: str | None, info: ValidationInfo) -> str:
    """One that can be summed over parties; by default softmax for three classes and more, where descent has it."""
    if "table_schema" not in info.data or "algorithm" not in info.data:
        raise ValueError("depends on schema and algorithm: correct those first")
    target = info.data["table_schema"].target
    if target is None:
        return name or ""  # the whole plan is refused
    known, default = _losses_for(_goal(target), info.data["algorithm"])
    smooth = [each for each in known if math.isfinite(loss_from_name(each).smoothness)]
    if name is not None and name not in smooth:
        raise ValueError(f"must be one of {', '.join(smooth)}")
    return default if name is None else name


def _losses_for(goal: Goal, algorithm: str) -> tuple[list[str], str]:
    """Those that fit what is learnt, and the default."""
    if not isinstance(goal, ClassGoal):
        return list(losses_of("residual")), "huber"
    margins = list(losses_of("margin"))
    if len(goal.classes) == 2 or algorithm != "descent":
        return margins, "logistic"
    return [*margins, *losses_of("classes")], "multinomial"


class MultipartyPlan(JointPlan):
    """Schema, model, guarantee, algorithm and parties of one joint training; nothing in it depends on a record.

    Parameters
    ----------
    schema : Schema
        Of everybody's table, with its target's classes or bounds; in Python the attribute is ``table_schema``.
    parties : dict of str to int
        Each party's name and its number of records (of persons, if the schema has a person column), declared
        beforehand: public, like N in every guarantee here. With ``neighbours="add_remove"`` the number is private, and
        this is how many are expected of each.
    epsilon, delta, neighbours
        The promise, for everything the coordinator sees. With ``algorithm="psgd"`` it is RA12's claim for the limit
        only; `guarantee` is what the run really costs, often more than epsilon 20.
    parties_per_person : int, default=1
        The most parties that have records of one person; see `JointPlan`.
    algorithm : {"descent", "aggregation", "uniform_aggregation", "psgd"}, default="descent"
        `NoisyDescent`; `LocalAggregation`, weighted or as Pathak et al. have it; RA12's `PrivateSGD`.
    loss : str, optional
        For classes ``"logistic"`` (default), ``"huber_hinge"``, ``"smoothed_hinge"``; for three and more with
        ``"descent"`` also ``"multinomial"`` (then the default). For a number ``"huber"`` (default),
        ``"clipped_square"``. Or a smooth loss that an extension registers.
    width : float, optional
        Of the two hinges and the two losses of numbers.
    kernel : KernelSettings, optional
        Linear in the encoded columns if left out.
    rounds : int, optional
        Gradients asked; by default chosen from public numbers.
    regularization : float, optional
        Lambda; by default chosen from public numbers, as for a single holder.
    dropouts : int, default=0
        How many parties may be missing from a round. ``dropouts * (dropouts + 1)`` must be less than the number of
        parties that do not collude, else a coordinator that lies could open too much (`Cohort`).
    colluding : int, default=1
        How many parties may pool what they know with the coordinator's; see `Cohort`.
    accept_weak_privacy : bool, default=False
        The word that a cost of more than epsilon 20 or a delta of at least 1/n needs; every party signs it.
    keys : dict of str to str, optional
        The public identities of every party and of ``coordinator``, as `privlearn identity` prints them. A real run
        needs them; a simulation makes its own.
    """

    algorithm: Algorithm = "descent"
    loss: Annotated[StrictStr | None, AfterValidator(_fitting_loss), Field(validate_default=True)] = None
    width: Annotated[float, Field(gt=0)] | None = None
    kernel: KernelSettings | None = None
    rounds: Annotated[StrictInt, Field(ge=1)] | None = None
    regularization: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> MultipartyPlan:
        """Calibrating now means that nobody signs a plan that would be refused later."""
        if self.table_schema.target is None:
            raise ValueError("schema.target: say what is to be learnt: list its classes, or give its bounds")
        if self.table_schema.target.weights:
            raise ValueError("schema.target.weights: several parties count all classes alike: remove it")
        if self.rounds is not None and "aggregation" in self.algorithm:
            raise ValueError("rounds: aggregation has one round: remove it")
        self.check_promise()
        return self

    @cached_property
    def features(self) -> EncodedFeatures:
        """How each party maps its rows, with the encoder that a release holds."""
        base = SchemaEncoder(self.table_schema)
        return EncodedFeatures(base) if self.kernel is None else self.kernel.features(base)

    @cached_property
    def goal(self) -> Goal:
        """What is learnt, with no row of it."""
        return _goal(cast(Target, self.table_schema.target))

    @cached_property
    def smooth_loss(self) -> LossFacts:
        found: LossFacts = loss_from_name(cast(str, self.loss), self.width)
        return found

    @cached_property
    def mechanism(self) -> SummedMechanism:
        """The calibrated algorithm; it has not seen a row."""
        kind = _KINDS[self.algorithm]
        promise = Guarantee(self.epsilon, self.delta, self.neighbours)
        task = self._task()
        noise = (
            "norm_gamma"
            if kind is PrivateSGD or (kind is LocalAggregation and not self.delta)
            else "gaussian"
        )
        if reason := kind.explain_refusal(task, noise):
            raise InvalidParameter(f"algorithm: {reason}")
        if kind is LocalAggregation:
            asked = {"smallest_party": min(self.parties.values())}
        else:
            asked = {"rounds": cast(int, self.rounds)}
        calibrated = kind.calibrate(
            task, promise, noise, self._calibration(task, promise), **self.members, **asked
        )
        return cast(SummedMechanism, calibrated)

    def outcome(self, sums: NoisySums, randomness: Randomness) -> Release:
        mechanism, features = self.mechanism, self.features
        coefficients = features.released(mechanism.run(sums))
        model = self.goal.model(features.encoder, coefficients, mechanism.task.loss)
        certificate = Certificate.issue(mechanism, randomness, describe_encoding(features.encoder))
        return Release(model, certificate)

    def weight(self, party: str) -> float:
        """What a party's own minimiser counts in an aggregation."""
        if self.algorithm == "uniform_aggregation":
            return 1.0 / len(self.parties)
        return self.parties[party] / self.total

    def _calibration(self, task: Task, promise: Guarantee) -> str:
        if self.algorithm == "descent":
            return NoisyDescent.better_calibration(task, promise, **self.members)
        return {"aggregation": "weighted", "uniform_aggregation": "uniform", "psgd": "ra12"}[self.algorithm]

    def _task(self) -> Task:
        problems, dimension = self.goal.shape(self.features.dimension, self.smooth_loss)
        draft = Task(
            loss=self.smooth_loss,
            total=self.total,
            dimension=dimension,
            problems=problems,
            regularization=1.0,
            tolerance=TOLERANCE,
            neighbours=self.neighbours,
            rows_per_person=self.table_schema.rows_per_person,
            averaged=self.table_schema.person is not None,
            parties_per_person=self.parties_per_person,
            classes=dimension // self.features.dimension if self.smooth_loss.sees == "classes" else 0,
        )
        if self.regularization is not None:
            return replace(draft, regularization=self.regularization)
        place = "output" if "aggregation" in self.algorithm else "objective"
        noise = "gaussian" if self.delta else "norm_gamma"
        # nearly the promise that the noise in the sum would keep if all of it counted
        kept = Guarantee(self.epsilon / surplus(**self.members), self.delta, self.neighbours)
        return replace(draft, regularization=default_regularization(draft, kept, place, noise))
