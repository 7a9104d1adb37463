"""Files of noisy counts with their certificate: an evaluation, a description, or second moments.

    manifest.json       format, SHA-256 of every other member
    certificate.json    what is guaranteed, with every constant
    about.json          public: what was counted, table by table
    counts.npy          this alone depends on the records: all tables, one after the other
    run.json            of counts of several holders: plan, sum and every party's signature (`RunRecord`)
    signature.json      optional: Ed25519 signature of the manifest by the data's holder

Rates, curves and intervals are computed from this content when it is shown.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import VerificationError, whole_number
from privlearn.mechanisms.noise import grid_step
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.mechanisms.statistics.scoring import KIND_OF_SUM, NoisyScoring
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.mechanisms.summed.summed_moments import SummedMoments
from privlearn.mechanisms.task import Task
from privlearn.release import archive
from privlearn.release.base_certificate import BaseCertificate, format_value, read_calibration, read_guarantee
from privlearn.release.run_record import RunRecord
from privlearn.release.score_map import check_grid

_KINDS: dict[str, type[NoisyCounts]] = {
    kind.name: kind for kind in (NoisyCounts, SummedCounts, SummedMoments, NoisyScoring)
}
_RUN = "run.json"


@dataclass(frozen=True)
class CountsCertificate(BaseCertificate):
    """Certificate of noisy counts, with what was counted."""

    mechanism: NoisyCounts

    _subject: ClassVar[str] = "counted"

    @property
    def _covers(self) -> str:
        return self.mechanism.covers + str(self.subject.get("not_covered", ""))

    @property
    def task(self) -> Task:
        raise AttributeError("counts have no learning task")

    @property
    def records(self) -> int:
        return self.mechanism.records

    @property
    def _rows_and_parties(self) -> tuple[int, int]:
        return self.mechanism.rows_per_person, getattr(self.mechanism, "parties_per_person", 1)

    @property
    def _counts_persons(self) -> bool:
        return bool(self.subject["persons"])

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> NoisyCounts:
        constants, theorem = record["constants"], record["theorem"]
        kind = _KINDS.get(theorem["mechanism"])
        if kind is None:
            raise VerificationError("the certificate's mechanism is not one that counts")
        guarantee = read_guarantee(record["claim"])
        names = NoisyCounts.calibrated_constants
        chosen = read_calibration(constants, names, guarantee) if guarantee.is_private else {names[0]: 0.0}
        kinds: dict[str, Any] = {"kinds": tuple(constants["kinds"])} if kind is NoisyScoring else {}
        summed = [name for name in ("parties", "noise_shares", "parties_per_person") if name in constants]
        return kind(
            guarantee,
            records=whole_number(constants["records"], "records"),
            rows_per_person=whole_number(constants["rows_per_person"], "rows_per_person"),
            cells=tuple(whole_number(cells, "cells") for cells in constants["cells"]),
            shares=tuple(float(share) for share in constants["shares"]),
            noise=theorem["noise"],
            **{name: whole_number(constants[name], name) for name in summed},
            **kinds,
            **chosen,
        )

    def _task_record(self) -> dict[str, Any]:
        return {}

    def _describe_task(self) -> tuple[dict[str, str], dict[str, str]]:
        return {}, {}

    def _title(self) -> str:
        return f"{self.mechanism.title}, {self.mechanism.noise} noise"

    def _describe_subject(self) -> dict[str, str]:
        return {
            name.replace("_", " "): format_value(value)
            for name, value in self.subject.items()
            if name not in ("persons", "not_covered")
        }


@dataclass(frozen=True, eq=False)
class CountsFile(archive.SignedArchive):
    """Noisy tables with a description of what they count.

    Parameters
    ----------
    tables : sequence of arrays
        In the shapes of ``about["shapes"]``.
    about : mapping
        Public: plain JSON values.
    certificate : CountsCertificate
    run : RunRecord, optional
        For counts of several holders: what they agreed to, whose records are in the sum, and their signatures.
    """

    tables: Sequence[Array]
    about: Mapping[str, Any]
    certificate: CountsCertificate
    signature: dict[str, str] | None = None
    run: RunRecord | None = None

    format: ClassVar[str] = "privlearn counts 1"
    what: ClassVar[str] = "file of counts"

    @property
    def whom(self) -> str:
        """Return the unit of the counts."""
        return self.certificate.count_noun

    @property
    def unit(self) -> float:
        """Return the weight of a row that counts 1: the cap of row weights, 1 without weights."""
        return float(self.about.get("weight", {}).get("upper", 1.0))

    @property
    def weighted_by(self) -> str:
        """Return the weights as an addition to the unit of the counts, empty without weights."""
        weight = self.about.get("weight")
        if weight is None:
            return ""
        cap = f", at most {weight['upper']:g}" if "upper" in weight else " within each person"
        return f", weighted by {weight['column']}{cap}"

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of counts, refusing any whose bytes, constants or signature contradict each other."""
        return cls.from_bytes(archive.read_whole(path))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        return cls._read(raw)

    @classmethod
    def _parse(cls, members: dict[str, bytes], signature: dict[str, str] | None, **settings: Any) -> Self:
        about = json.loads(members["about.json"])
        counts = archive.read_array(members["counts.npy"])
        certificate = CountsCertificate.from_dict(json.loads(members["certificate.json"]))
        shapes = [tuple(whole_number(side, "shapes") for side in shape) for shape in about["shapes"]]
        cells = tuple(math.prod(shape) for shape in shapes)
        whole = counts.dtype == np.dtype("<f8") and counts.shape == (sum(cells),)
        if cells != certificate.mechanism.cells or not whole or not np.isfinite(counts).all():
            raise VerificationError("the certificate belongs to other counts")
        if certificate.subject.get("about_sha256") != archive.digest_of(members["about.json"]):
            raise VerificationError("the certificate belongs to other tables")
        parts = np.split(counts, list(itertools.accumulate(cells))[:-1])
        tables = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        run = RunRecord.from_bytes(members[_RUN]) if _RUN in members else None
        _check_kinds(about, certificate.mechanism)
        _check_subject(about, certificate.subject)
        _check_noise(tables, certificate.mechanism)
        result = cls(tables, about, certificate, signature, run)
        if run is not None:
            run.check(certificate.mechanism, certificate.subject["schema_sha256"], result.model_digest)
            in_sum = certificate.mechanism.in_sum(len(run.sums[0]), run.records[0])  # type: ignore[attr-defined]
            if about["in_sum"] != in_sum:
                raise VerificationError("the file and the record of its run state different sums")
        return result

    def members(self) -> dict[str, bytes]:
        counts = np.concatenate([np.ravel(table) for table in self.tables]).astype("<f8")
        content = {
            "certificate.json": archive.json_bytes(self.certificate.to_dict()),
            "about.json": archive.json_bytes(self.about),
            "counts.npy": archive.array_bytes(counts),
        }
        return content if self.run is None else content | {_RUN: self.run.to_bytes()}

    @property
    def model_digest(self) -> str:
        """Return the SHA-256 of counts and certificate alone, as the parties of a run sign it."""
        return dataclasses.replace(self, run=None).digest


def _check_kinds(about: Mapping[str, Any], mechanism: NoisyCounts) -> None:
    """Raise VerificationError where the noise was priced for other kinds of sums than the file names."""
    priced = mechanism.kinds if isinstance(mechanism, NoisyScoring) else ()
    if priced != tuple(KIND_OF_SUM.get(str(name)) for name in about.get("sums", ())):
        raise VerificationError("the certificate is about other kinds of sums than the file")


def _check_subject(about: Mapping[str, Any], subject: Mapping[str, Any]) -> None:
    """Raise VerificationError where the certificate names another model, data set or weight than the file."""
    stated = dict(subject)
    if "of" in about:
        stated["of"] = stated.pop("evaluated", None)
    shared = (about.keys() & stated.keys()) | {"weight"}
    if any(about.get(name) != stated.get(name) for name in shared):
        raise VerificationError("the certificate states another subject than the file")


def _check_noise(tables: Sequence[Array], mechanism: NoisyCounts) -> None:
    """Raise VerificationError for counts off the grid of their noise; sums of several holders have a finer grid."""
    if type(mechanism) not in (NoisyCounts, NoisyScoring) or not mechanism.guarantee.is_private:
        return
    for table, scale in zip(tables, mechanism.scales, strict=True):
        check_grid(table, grid_step(scale), "counts")
