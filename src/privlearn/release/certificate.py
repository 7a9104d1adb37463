"""What a release promises, with every constant needed to recompute it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.errors import VerificationError
from privlearn.mechanisms import (
    KERNEL_MECHANISMS,
    MECHANISMS,
    MULTIPARTY_MECHANISMS,
    AnyMechanism,
    MultipartyMechanism,
    Task,
)
from privlearn.release.certified import Certified, in_words, read_chosen, read_guarantee, read_task

_COVERS = (
    "Everything in this file that depends on the records: the coefficients. Number of records, schema, class "
    "labels, parameters and the solver's tolerance are public and enter as such."
)
_FLOATING_POINT = {
    "gaussian": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "laplace": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "norm_gamma": "noise drawn exactly from its continuous law; the sum is rounded last, to a grid of 2^-40 of the "
    "noise scale, which costs nothing",
}
_SAID_BEFORE_FLINT = {
    "norm_gamma": "no exact sampler is known: combined from exact draws in floating point, result rounded to a public "
    "grid of 2^-40 of the noise scale; the guarantee holds for the ideal law",
    "psgd": "no exact sampler is known for the noise drawn anew: combined from exact draws in floating point, rounded "
    "to a public grid of 2^-40 of its scale; the guarantee holds for the ideal law",
    "tdil": "answers and draws from a net: exact discrete samplers; rounding is inside the guarantee. Draws from the "
    "unit ball: no exact sampler is known: combined from exact draws in floating point, rounded to a public grid of "
    "2^-40; there the guarantee holds for the ideal law",
}
"""Of a mechanism or a noise whose reals version 0.1 drew in floating point. Its files keep saying so."""
_TITLES = {
    "objective": "objective perturbation",
    "output": "output perturbation",
    "tddl": "test data dependent learner (TDDL)",
    "tdil": "test data independent learner (TDIL)",
    "noisy_descent": "noisy gradient descent over a secure sum",
    "local_aggregation": "local aggregation over a secure sum",
    "psgd": "private stochastic gradient descent (PSGD) over a secure sum",
}


@dataclass(frozen=True)
class Certificate(Certified):
    """A release's plan: its mechanism and constants, where its random bits came from, and how rows were encoded.

    The solver's certified gradient norm is stated as the public bound it had to reach, not as the value it reached:
    that depends on the records.
    """

    mechanism: AnyMechanism | MultipartyMechanism

    _subject: ClassVar[str] = "encoding"
    _task_fields: ClassVar[tuple[str, ...]] = (
        "total", "dimension", "problems", "regularization", "tolerance", "weight_bound", "rows_per_person", "averaged",
    )  # fmt: skip

    @property
    def _covers(self) -> str:  # type: ignore[override]
        """What the mechanism itself says, where the file is not all that leaves."""
        return getattr(self.mechanism, "covers", _COVERS)

    @property
    def task(self) -> Task:
        return self.mechanism.task

    @property
    def encoding(self) -> Mapping[str, Any]:
        """How rows become features: schema by name and digest or the norm bound, and the kernel's map."""
        return self.subject

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> AnyMechanism | MultipartyMechanism:
        theorem = record["theorem"]
        guarantee = read_guarantee(record["claim"])
        task = read_task(record, guarantee, **_stated_gap(record))
        kind: Any = (MECHANISMS | KERNEL_MECHANISMS | MULTIPARTY_MECHANISMS)[theorem["mechanism"]]
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
            "page": f"docs/theory/{getattr(mechanism, 'page', mechanism.name)}.md",
        }

    def _solver(self) -> dict[str, Any]:
        """What the solver had to certify before it returned; the hinge has no gradient, and descent no solver."""
        if not getattr(self.mechanism, "uses_solver", True):
            return {}
        smooth = math.isfinite(self.task.loss.smoothness)
        bound = (
            {"gradient_norm_at_most": self.task.tolerance}
            if smooth
            else {"duality_gap_at_most": self.task.gap}
        )
        return {"solver": bound | {"certified": True}}

    def _floating_point(self) -> str:
        """What is exact in the mechanism's own sampler, where it has one, or in its noise's."""
        mechanism: Any = self.mechanism
        own = hasattr(mechanism, "floating_point")
        sampler = mechanism.name if own else mechanism.noise
        if "python-flint" not in self.versions and sampler in _SAID_BEFORE_FLINT:
            return _SAID_BEFORE_FLINT[sampler]
        return str(mechanism.floating_point) if own else _FLOATING_POINT[sampler]

    def _title(self) -> str:
        mechanism = self.mechanism
        return f"{_TITLES[mechanism.name]}, {mechanism.noise} noise, {mechanism.calibration} calibration"

    def _described(self) -> dict[str, str]:
        encoding = {
            f"encoding: {name.replace('_', ' ')}": in_words(fact) for name, fact in self.encoding.items()
        }
        return {"coefficients": f"{self.task.problems} x {self.task.dimension}"} | encoding


def _stated_gap(record: Mapping[str, Any]) -> dict[str, float]:
    """The hinge's duality gap, which a record states with the solver."""
    solver = record.get("solver", {})
    return {"gap": float(solver["duality_gap_at_most"])} if "duality_gap_at_most" in solver else {}
