"""What a release promises, with every constant needed to recompute it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.errors import VerificationError
from privlearn.mechanisms import ReleaseMechanism, SummedMechanism, Task, mechanisms_of
from privlearn.release.certified import Certified, in_words, read_chosen, read_guarantee, read_task
from privlearn.release.first_words import first_covers, first_floating_point


@dataclass(frozen=True)
class Certificate(Certified):
    """A release's plan: its mechanism and constants, where its random bits came from, and how rows were encoded.

    The solver's certified gradient norm is stated as the public bound it had to reach, not as the value it reached:
    that depends on the records.
    """

    mechanism: ReleaseMechanism | SummedMechanism

    _subject: ClassVar[str] = "encoding"
    _task_fields: ClassVar[tuple[str, ...]] = (
        "total", "dimension", "problems", "regularization", "tolerance", "weight_bound", "rows_per_person", "averaged",
    )  # fmt: skip

    @property
    def _covers(self) -> str:  # type: ignore[override]
        return (self._is_first and first_covers(self.mechanism)) or self.mechanism.covers

    @property
    def task(self) -> Task:
        return self.mechanism.task

    @property
    def encoding(self) -> Mapping[str, Any]:
        """How rows become features: schema by name and digest or the norm bound, and the kernel's map."""
        return self.subject

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> ReleaseMechanism | SummedMechanism:
        theorem = record["theorem"]
        guarantee = read_guarantee(record["claim"])
        task = read_task(record, guarantee, **_stated_gap(record))
        known: dict[str, Any] = {**mechanisms_of(ReleaseMechanism), **mechanisms_of(SummedMechanism)}
        kind = known[theorem["mechanism"]]
        reason = kind.explain_refusal(task, theorem["noise"])
        if reason or theorem["noise"] not in kind.combinations[theorem["calibration"]]:
            raise VerificationError(f"no theorem covers this combination{': ' + reason if reason else ''}")
        chosen = read_chosen(record["constants"], kind.chosen_constants, guarantee)
        return kind(task, guarantee, theorem["noise"], theorem["calibration"], **chosen)  # type: ignore[no-any-return]

    def _theorem(self) -> dict[str, Any]:
        mechanism = self.mechanism
        return {
            "mechanism": mechanism.name,
            "noise": mechanism.noise,
            "calibration": mechanism.calibration,
            "page": f"docs/theory/{mechanism.page}.md",
        }

    def _solver(self) -> dict[str, Any]:
        """What the solver had to certify before it returned; the hinge has no gradient, and descent no solver."""
        if not self.mechanism.uses_solver:
            return {}
        smooth = math.isfinite(self.task.loss.smoothness)
        bound = (
            {"gradient_norm_at_most": self.task.tolerance}
            if smooth
            else {"duality_gap_at_most": self.task.gap}
        )
        return {"solver": bound | {"certified": True}}

    def _floating_point(self) -> str:
        return (self._is_first and first_floating_point(self.mechanism)) or self.mechanism.floating_point

    def _title(self) -> str:
        mechanism = self.mechanism
        return f"{mechanism.title}, {mechanism.noise} noise, {mechanism.calibration} calibration"

    def _described(self) -> dict[str, str]:
        encoding = {
            f"encoding: {name.replace('_', ' ')}": in_words(fact) for name, fact in self.encoding.items()
        }
        return {"coefficients": f"{self.task.problems} x {self.task.dimension}"} | encoding


def _stated_gap(record: Mapping[str, Any]) -> dict[str, float]:
    """The hinge's duality gap, which a record states with the solver."""
    solver = record.get("solver", {})
    return {"gap": float(solver["duality_gap_at_most"])} if "duality_gap_at_most" in solver else {}
