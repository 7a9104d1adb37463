"""Certificate of an interactive session, with every constant needed to recompute its guarantee."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from privlearn.errors import VerificationError
from privlearn.imports import look_up
from privlearn.mechanisms.mechanism import mechanisms_of
from privlearn.mechanisms.session.task import (
    KernelTask,
    SessionMechanism,
    refuse_private_count,
    session_mechanism,
)
from privlearn.release.archive import read_whole, write_new
from privlearn.release.base_certificate import (
    BaseCertificate,
    format_value,
    read_calibration,
    read_guarantee,
    read_task,
)

FORMAT = "privlearn session 1"
# A kernel's space has no dimension to state, and the solver's tolerance is stated as a distance instead.
_NOT_STATED = {"dimension": 1, "tolerance": 1.0}


@dataclass(frozen=True)
class SessionCertificate(BaseCertificate):
    """A session's mechanism and constants, the source of its random bits, and the learner that it answers from.

    It does not depend on any answer, and may be given to the analyst. `privlearn.verify` recomputes the guarantee from
    the file alone.
    """

    mechanism: SessionMechanism

    @property
    def _covers(self) -> str:
        relation = self.guarantee.relation
        return (
            "All answers of this session together, however the points were chosen. "
            f"{relation.count_label}, encoding, kernel, what is predicted and parameters are public and enter as such; "
            f"so are the points asked.{relation.count_coverage} Not covered: the state file (it holds the noise and "
            "may not leave), a copy of it run as a second session, and the time an answer takes"
        )

    def _check(self, record: Mapping[str, Any]) -> None:
        super()._check(record)
        if "landmarks" not in self.learner.get("encoding", {}):
            refuse_private_count(self.guarantee.relation)

    _subject: ClassVar[str] = "learner"
    _fields: ClassVar[tuple[str, ...]] = (
        "total", "problems", "regularization", "weight_bound", "rows_per_person", "averaged",
    )  # fmt: skip

    @property
    def _task_fields(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self._fields, "row_weight_bound") if self.task.row_weight_bound != 1.0 else self._fields

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write it as JSON, whole or not at all."""
        content = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        write_new(path, content.encode(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> SessionCertificate:
        """Read a saved certificate and refuse one whose constants do not support its claim."""
        return cls.from_bytes(read_whole(path))

    @classmethod
    def from_bytes(cls, raw: bytes) -> SessionCertificate:
        try:
            record = json.loads(raw)
        except (ValueError, RecursionError):
            raise VerificationError("not a session's certificate, or damaged") from None
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise VerificationError(f"not a session's certificate that this privlearn reads: {FORMAT!r}")
        return cls.from_dict(record)

    @property
    def learner(self) -> Mapping[str, Any]:
        """Return the encoding, the kernel, and the labels or bounds of what is predicted."""
        return self.subject

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> SessionMechanism:
        theorem, constants = record["theorem"], record["constants"]
        guarantee = read_guarantee(record["claim"])
        task = read_task(record, guarantee, **_NOT_STATED)
        known = {kind.name: kind for kind in mechanisms_of(SessionMechanism).values()}
        name = look_up(known, theorem["mechanism"], "mechanism").name
        kind = session_mechanism(name, theorem["mode"])
        chosen = read_calibration(constants, kind.calibrated_constants, guarantee)
        return kind(KernelTask(task, float(constants["solver_distance"])), guarantee, **chosen)  # type: ignore[no-any-return]

    def _heading(self) -> dict[str, Any]:
        return {"format": FORMAT}

    def _theorem(self) -> dict[str, Any]:
        mechanism = self.mechanism
        return {
            "mechanism": mechanism.name,
            "mode": mechanism.mode,
            "noise": mechanism.noise,
            "page": f"docs/theory/{mechanism.page}.md",
        }

    def _title(self) -> str:
        mechanism = self.mechanism
        return f"{mechanism.name}, {mechanism.mode} mode, {mechanism.noise} noise"

    def _describe_subject(self) -> dict[str, str]:
        return {name.replace("_", " "): format_value(value) for name, value in self.learner.items()}
