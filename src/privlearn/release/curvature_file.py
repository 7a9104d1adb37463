"""A release's curvature in a JSON file: two noisy matrices, the certificate of their cost, the release's digest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import VerificationError
from privlearn.mechanisms.noise import grid_step
from privlearn.mechanisms.statistics.curvature import NoisyCurvature, task_refusal
from privlearn.release.archive import read_whole, write_new
from privlearn.release.base_certificate import BaseCertificate, read_calibration, read_guarantee, read_task
from privlearn.release.score_map import check_grid

FORMAT = "privlearn curvature 1"


@dataclass(frozen=True)
class CurvatureCertificate(BaseCertificate):
    """Certificate of noisy curvature: its constants, the source of its random bits, and the release it belongs to."""

    mechanism: NoisyCurvature

    _subject: ClassVar[str] = "about"

    @property
    def _task_fields(self) -> tuple[str, ...]:  # type: ignore[override]
        fields = ("total", "dimension", "problems", "regularization", "weight_bound", "averaged")
        rows = ("row_weight_bound",) if self.task.row_weight_bound != 1.0 else ()
        return (*fields, "classes", *rows) if self.task.classes else (*fields, *rows)

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> NoisyCurvature:
        guarantee = read_guarantee(record["claim"])
        task = read_task(record, guarantee, tolerance=1.0)
        if reason := task_refusal(task):
            raise VerificationError(f"no theorem covers this curvature: {reason}")
        chosen = read_calibration(record["constants"], NoisyCurvature.calibrated_constants, guarantee)
        return NoisyCurvature(task, guarantee, **chosen)

    def _heading(self) -> dict[str, Any]:
        return {"format": FORMAT}

    def _title(self) -> str:
        return f"{self.mechanism.title}, {self.mechanism.noise} noise"

    def _describe_subject(self) -> dict[str, str]:
        return {name.replace("_", " "): str(value) for name, value in self.subject.items()}


@dataclass(frozen=True, eq=False)
class Curvature:
    """Two matrices that were estimated privately at a release's coefficients; `privlearn.intervals` reads them.

    Attributes
    ----------
    certificate : CurvatureCertificate
    hessian, gradients : array of shape (d, d)
        Noise included, in units of the certificate's ``hessian_bound`` and ``gradient_bound``.
    """

    certificate: CurvatureCertificate
    hessian: Array
    gradients: Array

    @property
    def release_sha256(self) -> str:
        """Return the digest of the release that it belongs to."""
        return str(self.certificate.subject["release_sha256"])

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the file, whole or not at all."""
        write_new(path, self.to_bytes(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Curvature:
        """Read a saved curvature, refusing one whose bytes or constants contradict each other."""
        return cls.from_bytes(read_whole(path))

    def to_bytes(self) -> bytes:
        matrices = {"hessian": _upper(self.hessian), "gradients": _upper(self.gradients)}
        record = self.certificate.to_dict() | {"matrices": matrices}
        record["sha256"] = hashlib.sha256(_json_bytes(record)).hexdigest()
        return _json_bytes(record)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Curvature:
        try:
            record = json.loads(raw)
            stated = {name: value for name, value in record.items() if name not in ("matrices", "sha256")}
            certificate = CurvatureCertificate.from_dict(stated)
            dimension = certificate.task.dimension
            matrices = [_symmetric(record["matrices"][name], dimension) for name in ("hessian", "gradients")]
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise VerificationError(f"not a curvature, or damaged ({type(error).__name__})") from None
        curvature = cls(certificate, *matrices)
        _check_noise(curvature)
        if curvature.to_bytes() != raw:
            raise VerificationError("the curvature's bytes were changed after it was written")
        return curvature


def _check_noise(curvature: Curvature) -> None:
    """Raise VerificationError for matrices off the grid of their noise, which is smaller off the diagonal."""
    mechanism = curvature.certificate.mechanism
    if not mechanism.guarantee.is_private:
        return
    scales = (mechanism.hessian_noise_scale, mechanism.gradient_noise_scale)
    for matrix, scale in zip((curvature.hessian, curvature.gradients), scales, strict=True):
        check_grid(np.diag(matrix), grid_step(scale), "matrices")
        check_grid(matrix[np.triu_indices(len(matrix), 1)], grid_step(scale * math.sqrt(0.5)), "matrices")


def _upper(matrix: Array) -> list[float]:
    """Return the entries on and above the diagonal, row by row."""
    return [float(value) for value in matrix[np.triu_indices(len(matrix))]]


def _symmetric(entries: Any, dimension: int) -> Array:
    values = np.array(entries, dtype=np.float64)
    if values.shape != (dimension * (dimension + 1) // 2,) or not np.isfinite(values).all():
        raise VerificationError("the curvature's matrices do not fit its certificate")
    matrix = np.zeros((dimension, dimension))
    matrix[np.triu_indices(dimension)] = values
    return matrix + np.triu(matrix, 1).T


def _json_bytes(value: Any) -> bytes:
    return (json.dumps(value, allow_nan=False) + "\n").encode()
