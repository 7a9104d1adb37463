"""Files of noisy second moments, from which ridge regressions of all declared targets follow at no further cost.

A regression's own file has a `MomentsCertificate`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, ReleaseError, VerificationError, check_positive
from privlearn.mechanisms.summed.summed import unpack
from privlearn.mechanisms.summed.summed_moments import MomentsRegression, SummedMoments
from privlearn.release.base_certificate import theorem_of
from privlearn.release.certificate import Certificate
from privlearn.release.counts_file import CountsCertificate, CountsFile
from privlearn.release.encoders import describe_encoding
from privlearn.release.model import RegressionModel


@dataclass(frozen=True)
class MomentsCertificate(Certificate):
    """Certificate of a regression that follows from a noisy sum of second moments.

    The claim is the sum's. All regressions from one sum share its cost, and each states that.
    """

    mechanism: MomentsRegression  # type: ignore[assignment]

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> MomentsRegression:  # type: ignore[override]
        stated, moments = record["from_moments"], CountsCertificate._read_mechanism(record)
        if not isinstance(moments, SummedMoments):
            raise VerificationError("no theorem covers a regression from such a sum")
        names = ("sum_sha256", "target", "regularization", "persons")
        parameters = {name: stated[name] for name in names}
        return MomentsRegression(moments, targets=tuple(stated["targets"]), **parameters)

    def _heading(self) -> dict[str, Any]:
        regression = self.mechanism
        stated = {
            "sum_sha256": regression.sum_sha256,
            "targets": list(regression.targets),
            "target": regression.target,
            "regularization": regression.regularization,
            "persons": regression.persons,
        }
        return {"from_moments": stated}

    def _task_record(self) -> dict[str, Any]:
        return {}

    def _theorem(self) -> dict[str, Any]:
        return theorem_of(self.mechanism.sum)

    def _title(self) -> str:
        moments = self.mechanism.sum
        return f"ridge regression from {moments.title}, {moments.noise} noise"

    def _describe_subject(self) -> dict[str, str]:
        regression = self.mechanism
        shared = f"all regressions from the noisy sum {regression.sum_sha256}, once"
        return {
            "regression of": regression.target,
            "paid together with": shared,
        } | super()._describe_subject()


_GRID_BITS = 30
"""Coefficients are multiples of a power of two, this many bits below the largest: finer ones could hide other data."""
_STEPS = 2
"""Number of steps by which recomputed coefficients may differ: libraries round differently."""
_MAX_CONDITION = 1e6
"""Ratio of the equations' eigenvalues up to which rounding leaves coefficients right to a step."""


@dataclass(frozen=True, eq=False)
class Moments(CountsFile):
    """Noisy second moments of several holders' records; every model that follows from them is post-processing."""

    what: ClassVar[str] = "file of second moments"
    kind: ClassVar[str] = "moments"

    def __post_init__(self) -> None:
        if self.about.get("kind") != self.kind or not isinstance(self.certificate.mechanism, SummedMoments):
            raise ReleaseError("this file does not hold second moments")
        if self.run is not None:
            agreed = json.loads(self.run.plan)
            planned = Schema.from_dict(agreed["schema"]).to_dict()
            if (planned, agreed["targets"]) != (self.about["schema"], self.about["targets"]):
                raise VerificationError("the file names another schema or targets than the plan of its run")

    @classmethod
    def _parse(cls, members: dict[str, bytes], signature: dict[str, str] | None, **settings: Any) -> Self:
        result = super()._parse(members, signature, **settings)
        schema, subject = Schema.from_dict(result.about["schema"]), result.certificate.subject
        if (schema.digest, schema.person is not None) != (subject["schema_sha256"], subject["persons"]):
            raise VerificationError("the certificate belongs to another schema")
        return result

    @property
    def targets(self) -> tuple[str, ...]:
        """Return what can be predicted, from all columns that are not targets."""
        return tuple(self.about["targets"])

    @cached_property
    def regularization(self) -> float:
        """Return the default: as large as the noise, whose spectral norm is about its deviation times sqrt(2 d)."""
        mechanism, in_sum = self._mechanism, self.about["in_sum"]
        deviation = in_sum["noise"] * mechanism.deviations[0]
        return float(deviation * math.sqrt(2.0 * mechanism.features) / in_sum["records"])

    def model(self, target: str, regularization: float | None = None) -> RegressionModel:
        """Return the ridge regression of a target: the minimiser of the mean of (<w, x> - y)^2 / 2 + regularization
        |w|^2 / 2.

        Parameters
        ----------
        target : str
            One of `targets`.
        regularization : float, optional
            Lambda, by default `regularization`; refused where the equations would hardly determine the coefficients.
            Negative eigenvalues of the noisy moments count as 0.
        """
        target_moments, eigenvalues = self._equations(target, regularization)
        vectors = self._spectrum[1]
        schema = schema_for(Schema.from_dict(self.about["schema"]), self.targets, target)
        assert schema.target is not None
        assert schema.target.bounds is not None
        solved = vectors @ (vectors.T @ target_moments / eigenvalues)
        step = _grid_step(solved)
        coefficients = (np.rint(solved / step) * step)[np.newaxis]
        return RegressionModel(SchemaEncoder(schema), coefficients, schema.target.bounds)

    def certify(self, model: RegressionModel, target: str, regularization: float) -> MomentsCertificate:
        """Return the certificate of such a model: the sum's, with what was computed from it."""
        of_sum, subject = self.certificate, describe_encoding(model.encoder)
        regression = MomentsRegression(
            self._mechanism,
            self.model_digest,
            self.targets,
            target,
            regularization,
            of_sum.subject["persons"],
        )
        return MomentsCertificate(regression, of_sum.randomness, of_sum.secure, subject, of_sum.versions)

    def leads_to(self, model: RegressionModel, certificate: MomentsCertificate) -> bool:
        """Return whether this sum gives such a certificate and these coefficients, up to two steps of their grid.

        The author of a forged file could hide about three bits in each coefficient this way.
        """
        target, regularization = certificate.mechanism.target, certificate.mechanism.regularization
        if certificate.to_dict() != self.certify(model, target, regularization).to_dict():
            return False
        again = self.model(target, regularization)
        if model.to_dict() != again.to_dict():
            return False
        step = _grid_step(again.coefficients)
        # The step there may be half of it: the largest coefficient may lie on the other side of a power of two.
        halves = 2.0 * model.coefficients / step
        near = np.abs(model.coefficients - again.coefficients) <= _STEPS * step
        return bool(np.all(near) and np.all(halves == np.rint(halves)))

    def _equations(self, target: str, regularization: float | None) -> tuple[Array, Array]:
        """Return the moments of the columns with a target, and the eigenvalues of the matrix of its equations."""
        if target not in self.targets:
            raise InvalidParameter(f"the sum has no target {target!r}: it has {', '.join(self.targets)}")
        chosen = self.regularization if regularization is None else regularization
        check_positive(regularization=chosen)
        target_moments = np.reshape(self.tables[1], (len(self.targets), -1))[self.targets.index(target)]
        eigenvalues = np.maximum(self._spectrum[0], 0.0) + self.about["in_sum"]["records"] * chosen
        if eigenvalues.max() > _MAX_CONDITION * eigenvalues.min():
            minimum = eigenvalues.max() / (_MAX_CONDITION * self.about["in_sum"]["records"])
            raise InvalidParameter(
                f"regularization is too small for this sum. Give at least {1.01 * minimum:.3g}"
            )
        return target_moments, eigenvalues

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(unpack(np.ravel(self.tables[0]), self._mechanism.features))
        return values, vectors

    @property
    def _mechanism(self) -> SummedMoments:
        mechanism = self.certificate.mechanism
        assert isinstance(mechanism, SummedMoments)
        return mechanism


def _grid_step(coefficients: Array) -> float:
    max_size = float(np.max(np.abs(coefficients), initial=0.0))
    return math.ldexp(1.0, math.frexp(max_size or 1.0)[1] - _GRID_BITS)


def schema_for(schema: Schema, targets: tuple[str, ...], target: str) -> Schema:
    """Return the schema of one target: columns that are not targets predict it."""
    content = schema.to_dict()
    column = content["columns"][target]
    content["columns"] = {name: part for name, part in content["columns"].items() if name not in targets}
    content["target"] = {"name": target, "lower": column["lower"], "upper": column["upper"]}
    return Schema.from_dict(content)
