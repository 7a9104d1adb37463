"""What an interactive session promises, with every constant needed to recompute it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from privlearn.errors import VerificationError
from privlearn.extensions import listed
from privlearn.mechanisms.mechanism import mechanisms_of
from privlearn.mechanisms.session.task import KernelTask, SessionMechanism, session_mechanism
from privlearn.mechanisms.task import Task
from privlearn.release.certified import Certified, in_words, read_chosen, read_guarantee, read_task
from privlearn.release.files import read_whole, write_new

FORMAT = "privlearn session 1"
# A kernel's space has no dimension to state, and the solver's tolerance is stated as a distance instead.
_NOT_STATED = {"dimension": 1, "tolerance": 1.0}


@dataclass(frozen=True)
class SessionCertificate(Certified):
    """A session's plan: its mechanism and constants, where its random bits come from, and what it answers from.

    It does not depend on an answer either, and may be given to the analyst. `privlearn.verify` recomputes the guarantee
    from the file alone.
    """

    mechanism: SessionMechanism

    _covers: ClassVar[str] = (
        "All answers of this session together, however the points were chosen. Number of records, encoding, kernel, "
        "what is predicted and parameters are public and enter as such; so are the points asked. Not covered: the "
        "state file (it holds the noise and may not leave), a copy of it run as a second session, and the time an "
        "answer takes"
    )
    _subject: ClassVar[str] = "learner"
    _task_fields: ClassVar[tuple[str, ...]] = (
        "total", "problems", "regularization", "weight_bound", "rows_per_person", "averaged",
    )  # fmt: skip

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
    def task(self) -> Task:
        return self.mechanism.task

    @property
    def learner(self) -> Mapping[str, Any]:
        """Encoding, kernel, and the labels or bounds of what is predicted."""
        return self.subject

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> SessionMechanism:
        theorem, constants = record["theorem"], record["constants"]
        guarantee = read_guarantee(record["claim"])
        task = read_task(record, guarantee, **_NOT_STATED)
        known = {kind.name: kind for kind in mechanisms_of(SessionMechanism).values()}
        name = listed(known, theorem["mechanism"], "mechanism").name
        kind = session_mechanism(name, theorem["mode"])
        chosen = read_chosen(constants, kind.chosen_constants, guarantee)
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

    def _floating_point(self) -> str:
        return self.mechanism.floating_point

    def _title(self) -> str:
        mechanism = self.mechanism
        return f"{mechanism.name}, {mechanism.mode} mode, {mechanism.noise} noise"

    def _described(self) -> dict[str, str]:
        return {name.replace("_", " "): in_words(fact) for name, fact in self.learner.items()}
