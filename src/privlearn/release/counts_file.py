"""Noisy counts that may leave, with their certificate: the file of an evaluation.

    manifest.json       format, SHA-256 of every other member
    certificate.json    what is promised, with every constant
    about.json          public: what was counted, table by table
    counts.npy          this alone depends on the records: all tables, one after the other
    run.json            of counts of several holders: plan, sum and every party's signature (`RunRecord`)
    signature.json      optional: Ed25519 signature of the manifest by the data's holder

Whatever is shown of it, rates, curves and intervals, is computed from this content by whoever reads it.
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
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.mechanisms.summed.summed_moments import SummedMoments
from privlearn.mechanisms.task import Task
from privlearn.release.archive import SignedArchive, array_bytes, digest_of, json_bytes, read_array
from privlearn.release.certified import Certified, in_words, read_chosen, read_guarantee
from privlearn.release.files import read_whole
from privlearn.release.run_record import RunRecord

_KINDS: dict[str, type[NoisyCounts]] = {
    kind.name: kind for kind in (NoisyCounts, SummedCounts, SummedMoments)
}
_RUN = "run.json"


@dataclass(frozen=True)
class CountsCertificate(Certified):
    """The plan of noisy counts, and what was counted."""

    mechanism: NoisyCounts

    _subject: ClassVar[str] = "counted"

    @property
    def _covers(self) -> str:  # type: ignore[override]
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
        names = NoisyCounts.chosen_constants
        chosen = read_chosen(constants, names, guarantee) if guarantee.is_private else {names[0]: 0.0}
        summed = [name for name in ("parties", "noise_shares", "parties_per_person") if name in constants]
        return kind(
            guarantee,
            records=whole_number(constants["records"], "records"),
            rows_per_person=whole_number(constants["rows_per_person"], "rows_per_person"),
            cells=tuple(whole_number(cells, "cells") for cells in constants["cells"]),
            shares=tuple(float(share) for share in constants["shares"]),
            noise=theorem["noise"],
            **{name: whole_number(constants[name], name) for name in summed},
            **chosen,
        )

    def _stated_task(self) -> dict[str, Any]:
        return {}

    def _task_in_words(self) -> tuple[dict[str, str], dict[str, str]]:
        return {}, {}

    def _theorem(self) -> dict[str, Any]:
        mechanism = self.mechanism
        return {
            "mechanism": mechanism.name,
            "noise": mechanism.noise,
            "page": f"docs/theory/{mechanism.page}.md",
        }

    def _floating_point(self) -> str:
        return self.mechanism.floating_point

    def _title(self) -> str:
        return f"{self.mechanism.title}, {self.mechanism.noise} noise"

    def _described(self) -> dict[str, str]:
        shown = {name: fact for name, fact in self.subject.items() if name not in ("persons", "not_covered")}
        return {name.replace("_", " "): in_words(fact) for name, fact in shown.items()}


@dataclass(frozen=True, eq=False)
class CountsFile(SignedArchive):
    """Noisy tables with what they count.

    Parameters
    ----------
    tables : sequence of arrays
        In the shapes that ``about["shapes"]`` says.
    about : mapping
        Public: plain JSON values.
    certificate : CountsCertificate
    run : RunRecord, optional
        Of counts of several holders: what they agreed to, whose records are in the sum, and their signatures.
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
        """What is counted."""
        return "persons" if self.certificate.subject["persons"] else "records"

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of counts, refusing any whose bytes, constants or signature contradict each other."""
        return cls.from_bytes(read_whole(path))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        return cls._read(raw)

    @classmethod
    def _parse(cls, members: dict[str, bytes], signature: dict[str, str] | None, **settings: Any) -> Self:
        about = json.loads(members["about.json"])
        counts = read_array(members["counts.npy"])
        certificate = CountsCertificate.from_dict(json.loads(members["certificate.json"]))
        shapes = [tuple(whole_number(side, "shapes") for side in shape) for shape in about["shapes"]]
        cells = tuple(math.prod(shape) for shape in shapes)
        whole = counts.dtype == np.dtype("<f8") and counts.shape == (sum(cells),)
        if cells != certificate.mechanism.cells or not whole or not np.isfinite(counts).all():
            raise VerificationError("the certificate belongs to other counts")
        if certificate.subject.get("about_sha256") != digest_of(members["about.json"]):
            raise VerificationError("the certificate speaks of other tables")
        parts = np.split(counts, list(itertools.accumulate(cells))[:-1])
        tables = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        run = RunRecord.from_bytes(members[_RUN]) if _RUN in members else None
        found = cls(tables, about, certificate, signature, run)
        if run is not None:
            run.check(certificate.mechanism, certificate.subject["schema_sha256"], found.model_digest)
            told = certificate.mechanism.in_sum(len(run.sums[0]), run.records[0])  # type: ignore[attr-defined]
            if about["in_sum"] != told:
                raise VerificationError("the file speaks of another sum than the record of its run")
        return found

    def members(self) -> dict[str, bytes]:
        counts = np.concatenate([np.ravel(table) for table in self.tables]).astype("<f8")
        content = {
            "certificate.json": json_bytes(self.certificate.to_dict()),
            "about.json": json_bytes(self.about),
            "counts.npy": array_bytes(counts),
        }
        return content if self.run is None else content | {_RUN: self.run.to_bytes()}

    @property
    def model_digest(self) -> str:
        """SHA-256 of counts and certificate alone, as the parties of a run sign it."""
        return dataclasses.replace(self, run=None).digest
