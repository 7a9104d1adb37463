"""From parameters to a calibrated mechanism, before the data is touched."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

from privlearn.errors import InvalidParameter
from privlearn.estimators.default_regularization import default_regularization
from privlearn.estimators.lifting import PUBLIC_POINTS
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import KERNEL_MECHANISMS, MECHANISMS, AnyMechanism, KernelMechanism, Task


def plan_mechanism(
    task: Task,
    guarantee: Guarantee,
    *,
    mechanism: str,
    noise: str,
    calibration: str,
    regularization: Any,
    probes_count: int | None = None,
) -> AnyMechanism:
    """Choose what was left to ``"auto"``, refuse what no theorem covers, and calibrate.

    ``mechanism="auto"`` is objective perturbation where its theorem holds, output perturbation elsewhere;
    ``noise="auto"`` is Gaussian when delta is above 0, else the calibration's pure noise.
    The task's regularization is a placeholder until it is chosen here. JT13's mechanisms, which ask a model questions,
    need the number of public points they may ask about.
    """
    if mechanism in KERNEL_MECHANISMS:
        _check_questions(mechanism, noise, calibration)
        return _plan_questions(task, guarantee, mechanism, regularization, probes_count)
    kind: Any = _choose_mechanism(task, guarantee, mechanism, noise, calibration)
    noise = _choose_noise(kind, guarantee, noise, calibration)
    if reason := kind.explain_refusal(task, noise):
        raise InvalidParameter(f"{kind.name} perturbation does not fit: {reason}. Take mechanism='output'")
    if noise != "gaussian":
        guarantee = Guarantee(guarantee.epsilon, 0.0, guarantee.neighbours)
    chosen = _choose_regularization(task, guarantee, kind.name, noise, regularization)
    return kind.calibrate(dataclasses.replace(task, regularization=chosen), guarantee, noise, calibration)  # type: ignore[no-any-return]


def _check_questions(mechanism: str, noise: str, calibration: str) -> None:
    ((own_calibration, (own_noise,)),) = KERNEL_MECHANISMS[mechanism].combinations.items()
    if noise not in ("auto", own_noise) or calibration not in ("tight", own_calibration):
        raise InvalidParameter(
            f"mechanism={mechanism!r} has a noise and a calibration of its own: leave noise and calibration out"
        )


def _plan_questions(
    task: Task, guarantee: Guarantee, mechanism: str, regularization: Any, probes_count: int | None
) -> KernelMechanism:
    """TDDL and TDIL have one calibration and one noise each; noise enters as in output perturbation."""
    kind: Any = KERNEL_MECHANISMS[mechanism]
    (calibration, (noise,)) = next(iter(kind.combinations.items()))
    if reason := kind.explain_refusal(task, noise):
        raise InvalidParameter(f"mechanism={mechanism!r} does not fit: {reason}")
    if mechanism == "tddl" and probes_count is None:
        raise InvalidParameter(f"mechanism='tddl' answers at public points: pass {PUBLIC_POINTS}")
    chosen = _choose_regularization(task, guarantee, "output", "gaussian", regularization)
    settings = {"probes_count": probes_count} if mechanism == "tddl" else {}
    task = dataclasses.replace(task, regularization=chosen)
    return kind.calibrate(task, guarantee, noise, calibration, **settings)  # type: ignore[no-any-return]


def _choose_mechanism(task: Task, guarantee: Guarantee, mechanism: str, noise: str, calibration: str) -> Any:
    if mechanism in MECHANISMS:
        return MECHANISMS[mechanism]
    if mechanism != "auto":
        raise InvalidParameter(
            f"mechanism must be 'auto', {', '.join(map(repr, MECHANISMS | KERNEL_MECHANISMS))}, not {mechanism!r}"
        )
    for kind in MECHANISMS.values():
        if calibration in kind.combinations:
            likely = _choose_noise(kind, guarantee, noise, calibration)
            if likely in kind.combinations[calibration] and kind.explain_refusal(task, likely) is None:
                return kind
    return MECHANISMS["output"]


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


def _choose_regularization(task: Task, guarantee: Guarantee, mechanism: str, noise: str, asked: Any) -> float:
    if isinstance(asked, str) and asked == "auto":
        return default_regularization(task, guarantee, mechanism, noise)
    return check_regularization(asked)


def check_regularization(asked: Any) -> float:
    """What was asked for instead of ``"auto"``."""
    if not isinstance(asked, numbers.Real) or isinstance(asked, bool) or not 0 < float(asked) < float("inf"):
        raise InvalidParameter(f"regularization must be 'auto' or a number above 0, not {asked!r}")
    return float(asked)
