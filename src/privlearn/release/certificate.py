"""What a release promises, with every constant needed to recompute it."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from privlearn.erm.hinge import GAP_TOLERANCE
from privlearn.erm.losses import loss_from_dict
from privlearn.errors import VerificationError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import KERNEL_MECHANISMS, MECHANISMS, AnyMechanism, Task
from privlearn.randomness import Randomness, SecureRandomness

_COVERS = (
    "Everything in this file that depends on the records: the coefficients. Number of records, schema, class labels, "
    "parameters and the solver's tolerance are public and enter as such."
)
_FLOATING_POINT = {
    "gaussian": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "laplace": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "norm_gamma": "no exact sampler is known: combined from exact draws in floating point, result rounded to a public "
    "grid of 2^-40 of the noise scale; the guarantee holds for the ideal law",
}
_TITLES = {
    "objective": "objective perturbation",
    "output": "output perturbation",
    "tddl": "test data dependent learner (TDDL)",
    "tdil": "test data independent learner (TDIL)",
}
_VERSIONED = ("privlearn", "numpy", "scipy", "opendp", "dp-accounting")
_TASK_FIELDS = (
    "total", "dimension", "problems", "regularization", "tolerance", "weight_bound", "rows_per_person", "averaged",
)  # fmt: skip


@dataclass(frozen=True)
class Certificate:
    """A mechanism's plan with its constants, where its random bits came from, and what it was run on.

    Nothing here depends on a record: it could have been written before the data was read. In particular the
    solver's certified gradient norm is stated as the public bound it had to reach, not as the value it reached.
    """

    mechanism: AnyMechanism
    randomness: str
    secure: bool
    encoding: Mapping[str, Any]
    versions: Mapping[str, str]

    @classmethod
    def issue(
        cls, mechanism: AnyMechanism, randomness: Randomness, encoding: Mapping[str, Any]
    ) -> Certificate:
        versions = {name: version(name) for name in _VERSIONED} | {"python": platform.python_version()}
        return cls(mechanism, randomness.description, randomness.secure, encoding, versions)

    @property
    def guarantee(self) -> Guarantee:
        return self.mechanism.guarantee

    @property
    def is_private(self) -> bool:
        """True if there is a promise and the random bits behind it were secret."""
        return self.guarantee.is_private and self.secure

    def to_dict(self) -> dict[str, Any]:
        mechanism, task = self.mechanism, self.mechanism.task
        return {
            "claim": self.guarantee.to_dict() | {"epsilon": _write_number(self.guarantee.epsilon)},
            "covers": _COVERS,
            "theorem": {
                "mechanism": mechanism.name,
                "noise": mechanism.noise,
                "calibration": mechanism.calibration,
                "page": f"docs/theory/{mechanism.name}.md",
            },
            "task": {"loss": task.loss.to_dict()} | {name: getattr(task, name) for name in _TASK_FIELDS},
            "constants": mechanism.constants(),
            "solver": _solver_stop(task),
            "floating_point": _floating_point(mechanism),
            "randomness": {"source": self.randomness, "secure": self.secure},
            "encoding": dict(self.encoding),
            "versions": dict(self.versions),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Certificate:
        """Read a certificate and refuse one whose constants do not support its claim."""
        try:
            certificate = cls(
                _read_mechanism(record),
                record["randomness"]["source"],
                record["randomness"]["secure"],
                record["encoding"],
                record["versions"],
            )
            certificate._check(record)
        except (KeyError, TypeError, AttributeError) as error:
            raise VerificationError(f"the certificate is incomplete or malformed ({error!r})") from None
        except (ArithmeticError, ValueError) as error:
            raise VerificationError(f"the certificate's constants cannot be used: {error}") from None
        return certificate

    def _check(self, record: Mapping[str, Any]) -> None:
        mechanism = self.mechanism
        if not _same(mechanism.constants(), record["constants"]):
            raise VerificationError("the certificate's constants do not follow from its task and noise")
        if not _same(self.to_dict(), record):
            raise VerificationError("the certificate says something that its constants do not")
        if self.secure is not (self.randomness == SecureRandomness.description):
            raise VerificationError("the certificate's source of randomness is not what it says of it")
        if mechanism.guarantee.is_private and not mechanism.spends() <= mechanism.guarantee:
            raise VerificationError(
                f"the noise supports {mechanism.spends()}, less than the claim {mechanism.guarantee}"
            )

    def __str__(self) -> str:
        mechanism, task = self.mechanism, self.mechanism.task
        facts = {
            "mechanism": f"{_TITLES[mechanism.name]}, {mechanism.noise} noise, {mechanism.calibration} calibration",
            "loss": ", ".join(str(value) for value in task.loss.to_dict().values() if value is not None),
            "records": f"{task.total} (public)",
            "coefficients": f"{task.problems} x {task.dimension}",
            **{f"encoding: {name.replace('_', ' ')}": str(fact) for name, fact in self.encoding.items()},
            "regularization": f"{task.regularization:.6g}",
            **{name.replace("_", " "): f"{value:.6g}" for name, value in mechanism.constants().items()},
            "solver": ", ".join(
                f"{name.replace('_', ' ')} {value}" for name, value in _solver_stop(task).items()
            ),
            "randomness": self.randomness,
            "floating point": _floating_point(mechanism),
            "covers": _COVERS,
        }
        title = str(self.guarantee)
        if self.guarantee.is_private and not self.secure:
            title = f"NOT PRIVATE (seeded generator); with secret noise it would be {title}"
        return "\n".join([title, *(f"  {name:<26}{fact}" for name, fact in facts.items())])


def _read_mechanism(record: Mapping[str, Any]) -> AnyMechanism:
    theorem, constants, claim = record["theorem"], record["constants"], record["claim"]
    guarantee = Guarantee(float(claim["epsilon"]), claim["delta"], claim["neighbours"])
    task_record = dict(record["task"])
    loss = loss_from_dict(task_record.pop("loss"))
    task = Task(loss=loss, neighbours=guarantee.neighbours, **task_record)
    kind: Any = (MECHANISMS | KERNEL_MECHANISMS)[theorem["mechanism"]]
    reason = kind.explain_refusal(task, theorem["noise"])
    if reason or theorem["noise"] not in kind.combinations[theorem["calibration"]]:
        raise VerificationError(f"no theorem covers this combination{': ' + reason if reason else ''}")
    chosen = {name: float(constants[name]) for name in kind.chosen_constants}
    if guarantee.is_private and not all(0 < value < math.inf for value in chosen.values()):
        raise VerificationError("every noise scale of a private release must be finite and above 0")
    return kind(task, guarantee, theorem["noise"], theorem["calibration"], **chosen)  # type: ignore[no-any-return]


def _solver_stop(task: Task) -> dict[str, Any]:
    """What the solver had to certify before it returned; the hinge has no gradient."""
    smooth = math.isfinite(task.loss.smoothness)
    bound = {"gradient_norm_at_most": task.tolerance} if smooth else {"duality_gap_at_most": GAP_TOLERANCE}
    return bound | {"reached": True}


def _floating_point(mechanism: AnyMechanism) -> str:
    """What is exact in the mechanism's own sampler, where it has one, or in its noise's."""
    return getattr(mechanism, "floating_point", _FLOATING_POINT[mechanism.noise])


def _same(stated: Any, recomputed: Any) -> bool:
    """Equal, floats to nine digits: another machine's libraries may round the last ones differently."""
    if isinstance(stated, Mapping) and isinstance(recomputed, Mapping):
        return stated.keys() == recomputed.keys() and all(_same(stated[k], recomputed[k]) for k in stated)
    if isinstance(stated, float) and isinstance(recomputed, float | int):
        return math.isclose(stated, recomputed, rel_tol=1e-9)
    return bool(stated == recomputed)


def _write_number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else "inf"
