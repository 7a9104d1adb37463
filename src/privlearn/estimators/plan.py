"""From parameters to a calibrated mechanism, before the data is touched."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

from privlearn.errors import InvalidParameter, shown
from privlearn.estimators.default_regularization import default_regularization
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import OutputPerturbation, ReleaseMechanism, Task, mechanisms_of


def plan_mechanism(
    task: Task,
    guarantee: Guarantee,
    *,
    mechanism: str,
    noise: str,
    calibration: str,
    regularization: Any,
    points: int | None = None,
) -> ReleaseMechanism:
    """Choose what was left to ``"auto"``, refuse what no theorem covers, and calibrate.

    ``mechanism="auto"`` is objective perturbation where its theorem holds, output perturbation elsewhere;
    ``noise="auto"`` is Gaussian when delta is above 0, else the calibration's pure noise.
    The task's regularization is a placeholder until it is chosen here. JT13's mechanisms, which ask a model questions,
    need the number of public points they may ask about.
    """
    kind = _choose_mechanism(task, guarantee, mechanism, noise, calibration)
    if kind.answers_questions:
        noise, calibration = _own_noise(kind, noise, calibration)
    else:
        noise = _choose_noise(kind, guarantee, noise, calibration)
    if reason := kind.explain_refusal(task, noise):
        raise InvalidParameter(f"{kind.title} does not fit: {reason}. Take mechanism='output'")
    if noise != "gaussian" and not kind.answers_questions:
        guarantee = Guarantee(guarantee.epsilon, 0.0, guarantee.neighbours)
    chosen = _choose_regularization(task, guarantee, kind, noise, regularization)
    task = dataclasses.replace(task, regularization=chosen)
    return kind.calibrate(task, guarantee, noise, calibration, points=points)  # type: ignore[no-any-return]


def _own_noise(kind: Any, noise: str, calibration: str) -> tuple[str, str]:
    """Those that answer questions have one calibration and one noise each."""
    ((own_calibration, (own_noise,)),) = kind.combinations.items()
    if noise not in ("auto", own_noise) or calibration not in ("tight", own_calibration):
        raise InvalidParameter(
            f"mechanism={kind.name!r} has a noise and a calibration of its own: leave noise and calibration out"
        )
    return own_noise, own_calibration


def _choose_mechanism(task: Task, guarantee: Guarantee, mechanism: str, noise: str, calibration: str) -> Any:
    known = mechanisms_of(ReleaseMechanism)
    if mechanism in known:
        return known[mechanism]
    if mechanism != "auto":
        raise InvalidParameter(
            f"mechanism must be 'auto', {', '.join(map(repr, known))}, not {shown(mechanism)}"
        )
    for kind in known.values():
        if kind.is_default and calibration in kind.combinations:
            likely = _choose_noise(kind, guarantee, noise, calibration)
            if likely in kind.combinations[calibration] and kind.explain_refusal(task, likely) is None:
                return kind
    return OutputPerturbation


def _choose_noise(kind: Any, guarantee: Guarantee, noise: str, calibration: str) -> str:
    known = kind.combinations.get(calibration, ("gaussian",))
    if noise == "auto":
        pure = [name for name in known if name != "gaussian"]
        noise = pure[0] if pure and (guarantee.delta == 0 or "gaussian" not in known) else known[0]
    if noise == "gaussian" and guarantee.delta == 0 and guarantee.is_private:
        raise InvalidParameter(
            "Gaussian noise needs delta > 0: pass delta=1e-6 (well below 1/n), or noise='norm_gamma' for delta=0"
        )
    return noise


def _choose_regularization(task: Task, guarantee: Guarantee, kind: Any, noise: str, asked: Any) -> float:
    if isinstance(asked, str) and asked == "auto":
        law = "gaussian" if kind.answers_questions else noise
        return default_regularization(
            task, guarantee, "objective" if kind.perturbs == "objective" else "output", law
        )
    return check_regularization(asked)


def check_regularization(asked: Any) -> float:
    """What was asked for instead of ``"auto"``."""
    if not isinstance(asked, numbers.Real) or isinstance(asked, bool) or not 0 < float(asked) < float("inf"):
        raise InvalidParameter(f"regularization must be 'auto' or a number above 0, not {shown(asked)}")
    return float(asked)
