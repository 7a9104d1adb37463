"""JointTraining: the agreement under which several holders train one model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import AfterValidator, Field, StrictInt, StrictStr, ValidationInfo, model_validator

from privlearn.accounting import gaussian_ratio
from privlearn.data.encoding.encoder import Bounds, SchemaEncoder
from privlearn.data.encoding.resolution import Resolution, choose_resolution
from privlearn.data.schema.target import Target
from privlearn.data.sources.row_source import EncodedRows
from privlearn.errors import InvalidParameter
from privlearn.estimators.calibration import default_regularization
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.reading import read_number_table, read_table
from privlearn.estimators.training_rows import ClassTargets, NumberTargets, Targets
from privlearn.guarantee import Guarantee, get_relation
from privlearn.mechanisms.summed.local_aggregation import LocalAggregation
from privlearn.mechanisms.summed.noisy_descent import NoisyDescent
from privlearn.mechanisms.summed.psgd import PrivateSGD
from privlearn.mechanisms.summed.summed import NoisySums, SummedMechanism, surplus
from privlearn.mechanisms.task import Task
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.answers import Party
from privlearn.parties.run.features import EncodedFeatures, KernelSettings
from privlearn.randomness import Randomness
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import describe_encoding
from privlearn.solvers.losses import LossProperties, loss_from_name, losses_of

Algorithm = Literal["descent", "aggregation", "uniform_aggregation", "psgd"]
TOLERANCE = 1e-10


@dataclass(frozen=True)
class _Kind:
    """An algorithm's mechanism, with its (noise, calibration) for delta > 0 and for delta = 0.

    ``perturbed`` is what the noise is added to, "objective" or "output", for the default regularization.
    """

    mechanism: type[NoisyDescent | LocalAggregation | PrivateSGD]
    perturbed: str
    approximate: tuple[str, str]
    pure: tuple[str, str]


_KINDS = {
    "descent": _Kind(NoisyDescent, "objective", ("gaussian", ""), ("gaussian", "")),
    "aggregation": _Kind(LocalAggregation, "output", ("gaussian", "weighted"), ("norm_gamma", "weighted")),
    "uniform_aggregation": _Kind(
        LocalAggregation, "output", ("gaussian", "uniform"), ("norm_gamma", "uniform")
    ),
    "psgd": _Kind(PrivateSGD, "objective", ("norm_gamma", "ra12"), ("norm_gamma", "split")),
}


def _targets_without_rows(target: Target) -> Targets:
    if target.classes:
        return ClassTargets(np.empty(0, dtype=np.int64), np.array(target.classes))
    return NumberTargets(np.empty(0), cast(Bounds, target.bounds))


def _check_loss(name: str | None, info: ValidationInfo) -> str:
    """Return the loss, or the default one; refuse a loss that does not fit the target and the algorithm."""
    if "table_schema" not in info.data or "algorithm" not in info.data:
        raise ValueError("depends on schema and algorithm. Correct those first")
    target = info.data["table_schema"].target
    if target is None:
        return name or ""  # the validator of the whole agreement refuses it
    names, default = _losses_for(_targets_without_rows(target), info.data["algorithm"])
    smooth = [each for each in names if math.isfinite(loss_from_name(each).smoothness)]
    if name is not None and name not in smooth:
        raise ValueError(f"must be one of {', '.join(smooth)}")
    return default if name is None else name


def _losses_for(targets: Targets, algorithm: str) -> tuple[list[str], str]:
    """Return the losses for these targets, and the default."""
    if not isinstance(targets, ClassTargets):
        return list(losses_of("residual")), "huber"
    margins = list(losses_of("margin"))
    if len(targets.classes) == 2 or algorithm != "descent":
        return margins, "logistic"
    return [*margins, *losses_of("classes")], "multinomial"


class JointTraining(Agreement):
    """Schema, model, guarantee, algorithm and parties of one joint training; nothing in it depends on a record.

    Parameters
    ----------
    schema : Schema
        Schema of every party's table, with its target's classes or bounds; in Python the attribute is ``table_schema``.
    parties, neighbours, parties_per_person, dropouts, colluding, accept_curious_parties, accept_weak_privacy, keys
        As in `Agreement`.
    epsilon, delta
        The guarantee for everything the coordinator sees. With ``algorithm="psgd"`` and a delta above 0 it is RA12's
        claim for the limit only; `guarantee` is what the run costs, often more than epsilon 20. With delta 0, which
        ``"descent"`` does not have, every party adds all of the noise to its answers.
    algorithm : {"descent", "aggregation", "uniform_aggregation", "psgd"}, default="descent"
        `NoisyDescent`; `LocalAggregation`, weighted or as Pathak et al. have it; RA12's `PrivateSGD`.
    loss : str, optional
        For classes ``"logistic"`` (default), ``"huber_hinge"``, ``"smoothed_hinge"``; for three and more with
        ``"descent"`` also ``"multinomial"`` (then the default). For a number ``"huber"`` (default),
        ``"clipped_square"``. Or a smooth loss that an extension registers.
    width : float, optional
        Width of the two hinges and the two losses of numbers.
    kernel : KernelSettings, optional
        Default: a model that is linear in the encoded columns.
    rounds : int, optional
        Number of gradients; by default chosen from public numbers.
    regularization : float, optional
        Lambda; by default chosen from public numbers, as for a single holder.
    """

    algorithm: Algorithm = "descent"
    loss: Annotated[StrictStr | None, AfterValidator(_check_loss), Field(validate_default=True)] = None
    width: Annotated[float, Field(gt=0)] | None = None
    kernel: KernelSettings | None = None
    rounds: Annotated[StrictInt, Field(ge=1)] | None = None
    regularization: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> JointTraining:
        """Calibrate now, so that no party signs an agreement that would be refused later."""
        if self.table_schema.target is None:
            raise ValueError("schema.target: missing. List the target's classes, or give its bounds")
        if self.table_schema.target.weights:
            raise ValueError("schema.target.weights: not supported with several parties. Remove it")
        if self.rounds is not None and "aggregation" in self.algorithm:
            raise ValueError("rounds: aggregation has one round. Remove it")
        self.check_feasible()
        return self

    @cached_property
    def features(self) -> EncodedFeatures:
        """The feature map of all parties, with the encoder that the release contains."""
        base = SchemaEncoder(self.table_schema, resolution=self.resolution)
        return EncodedFeatures(base) if self.kernel is None else self.kernel.features(base)

    @cached_property
    def resolution(self) -> Resolution:
        """The number of knots, from public numbers as for a single holder; there are neither bins nor pairs."""
        if self.kernel is not None or self.smooth_loss.argument == "residual" or not self.delta:
            return Resolution()
        relation, schema = get_relation(self.neighbours), self.table_schema
        heaviest = relation.gradients * schema.rows_per_person * schema.row_weight_bound
        noise = heaviest * surplus(**self.members) / gaussian_ratio(self.epsilon, self.delta)
        return Resolution(knots=choose_resolution(schema, self.total, noise).knots)

    @cached_property
    def targets(self) -> Targets:
        """The classes or bounds to learn, without rows."""
        return _targets_without_rows(cast(Target, self.table_schema.target))

    @cached_property
    def smooth_loss(self) -> LossProperties:
        """The loss with its width."""
        loss: LossProperties = loss_from_name(cast(str, self.loss), self.width)
        return loss

    @cached_property
    def mechanism(self) -> SummedMechanism:
        """The calibrated algorithm; no row was read for it."""
        kind, task = _KINDS[self.algorithm].mechanism, self._task()
        guarantee = Guarantee(self.epsilon, self.delta, self.neighbours)
        noise, calibration = self._calibration
        if reason := kind.explain_refusal(task, noise):
            raise InvalidParameter(f"algorithm: {reason}")
        if issubclass(kind, LocalAggregation):
            smallest = min(self.parties.values())
            return kind.calibrate(
                task, guarantee, noise, calibration, min_party_records=smallest, **self.members
            )
        if issubclass(kind, NoisyDescent):
            calibration = kind.better_calibration(task, guarantee, **self.members)
        return kind.calibrate(task, guarantee, noise, calibration, rounds=self.rounds, **self.members)

    def outcome(self, sums: NoisySums, randomness: Randomness) -> Release:
        """Train on noisy sums and return the release."""
        mechanism, features = self.mechanism, self.features
        coefficients = features.release_coefficients(mechanism.run(sums))
        model = self.targets.model(features.encoder, coefficients, mechanism.task.loss)
        certificate = Certificate.issue(mechanism, randomness, describe_encoding(features.encoder))
        return Release(model, certificate)

    def read_party(self, name: str, table: Any) -> Party:
        """PRIVATE: return the party with its table, target column included; refuse a table that does not fit."""
        read = read_table if isinstance(self.targets, ClassTargets) else read_number_table
        rows = read(self.table_schema, table, None, True, lambda schema, persons: self.resolution)
        self.check_declared(name, rows.total)
        task, transform = self.mechanism.task, self.features.transform
        if isinstance(rows.features, EncodedRows):
            features: Any = rows.features.apply(transform, task.dimension)
        else:
            features = transform(rows.features)
        lifted = replace(rows, features=features, total=self.parties[name])
        return Party(task, MemoryOracle(lifted, task), self.weight(name))

    def weight(self, party: str) -> float:
        """Return the weight of a party's own minimiser in an aggregation."""
        if self.algorithm == "uniform_aggregation":
            return 1.0 / len(self.parties)
        return self.parties[party] / self.total

    @property
    def _calibration(self) -> tuple[str, str]:
        """Noise and calibration; descent chooses its calibration itself."""
        kind = _KINDS[self.algorithm]
        return kind.approximate if self.delta else kind.pure

    def _task(self) -> Task:
        problems, dimension = self.targets.shape(self.features.dimension, self.smooth_loss)
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
            row_weight_bound=self.table_schema.row_weight_bound,
            classes=dimension // self.features.dimension if self.smooth_loss.argument == "classes" else 0,
        )
        if self.regularization is not None:
            return replace(draft, regularization=self.regularization)
        noise = "gaussian" if self.delta else "norm_gamma"
        draws = surplus(**self.members) if self.delta else math.sqrt(len(self.parties))
        # approximately the guarantee that the noise in the sum would have if all of it counted
        effective = Guarantee(self.epsilon / draws, self.delta, self.neighbours)
        perturbed = _KINDS[self.algorithm].perturbed
        return replace(draft, regularization=default_regularization(draft, effective, perturbed, noise))
