"""What a session promises, with every constant needed to recompute it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from privlearn.guarantee import Guarantee
from privlearn.mechanisms.function_release import FunctionRelease
from privlearn.mechanisms.pinp import PaperPINP, TightPINP

SessionMechanism = FunctionRelease | TightPINP | PaperPINP

_COVERS = (
    "All answers of this session together, however the points were chosen. Number of records, encoding, kernel, "
    "class labels and parameters are public and enter as such; so are the points asked. Not covered: the state "
    "file (it holds the noise and may not leave), a copy of it run as a second session, and the time an answer takes"
)
_PAGES = {"function_release": "docs/theory/function-release.md", "pinp": "docs/theory/pinp.md"}
_VERSIONED = ("privlearn", "numpy", "scipy", "opendp", "dp-accounting")


@dataclass(frozen=True)
class SessionCertificate:
    """A mechanism's plan with its constants, where its random bits come from, and what it is run on.

    Nothing here depends on a record or on an answer: it could have been written before the data was read.
    """

    mechanism: SessionMechanism
    randomness: str
    secure: bool
    learner: Mapping[str, Any]

    @property
    def guarantee(self) -> Guarantee:
        return self.mechanism.guarantee

    @property
    def is_private(self) -> bool:
        """True if there is a promise and the random bits behind it are secret."""
        return self.guarantee.is_private and self.secure

    def to_dict(self) -> dict[str, Any]:
        mechanism, task = self.mechanism, self.mechanism.facts.task
        epsilon = self.guarantee.epsilon if self.guarantee.is_private else "inf"
        return {
            "claim": self.guarantee.to_dict() | {"epsilon": epsilon},
            "covers": _COVERS,
            "theorem": {
                "mechanism": mechanism.name,
                "mode": mechanism.mode,
                "noise": mechanism.noise,
                "page": _PAGES[mechanism.name],
            },
            "task": {
                "loss": task.loss.to_dict(),
                "total": task.total,
                "regularization": task.regularization,
                "weight_bound": task.weight_bound,
                "rows_per_person": task.rows_per_person,
                "averaged": task.averaged,
            },
            "constants": mechanism.constants(),
            "floating_point": mechanism.floating_point,
            "randomness": {"source": self.randomness, "secure": self.secure},
            "learner": dict(self.learner),
            "versions": {name: version(name) for name in _VERSIONED} | {"python": platform.python_version()},
        }

    def __str__(self) -> str:
        mechanism, task = self.mechanism, self.mechanism.facts.task
        facts = {
            "mechanism": f"{mechanism.name}, {mechanism.mode} mode, {mechanism.noise} noise",
            "loss": ", ".join(str(value) for value in task.loss.to_dict().values() if value is not None),
            "records": f"{task.total} (public)",
            "regularization": f"{task.regularization:.6g}",
            **{name.replace("_", " "): f"{value:.6g}" for name, value in mechanism.constants().items()},
            "randomness": self.randomness,
            "floating point": mechanism.floating_point,
            "covers": _COVERS,
        }
        title = str(self.guarantee)
        if self.guarantee.is_private and not self.secure:
            title = f"NOT PRIVATE (seeded generator); with secret noise it would be {title}"
        return "\n".join([title, *(f"  {name:<26}{fact}" for name, fact in facts.items())])
