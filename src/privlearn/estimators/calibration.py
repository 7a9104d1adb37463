"""Calibrate a fit from public numbers: the mechanism for a guarantee, and what precedes it.

`calibrate_mechanism` chooses what was left to ``"auto"`` and refuses what no theorem covers.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from dataclasses import dataclass
from typing import cast

from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.estimators.default_regularization import default_regularization
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism, mechanisms_of, takes_statistics
from privlearn.mechanisms.release.output import OutputPerturbation
from privlearn.mechanisms.statistics.centring import Centring, row_sum_sensitivity
from privlearn.mechanisms.statistics.score_counts import ScoreCounts
from privlearn.mechanisms.task import Task

_CLOSE = 0.05  # noise in the mean, relative to a row's bound, that hardly takes up any norm
_USELESS = 0.5  # and with which the mean is not worth having
_MIN_FOR_MEAN, _MAX_FOR_MEAN, _FOR_COUNTS = 0.01, 0.1, 0.02  # shares of the squared ratio
_FOR_SCORES = 0.05  # another such share: it makes the fit's noise 2.5 % larger


@dataclass(frozen=True)
class Centrable:
    """Public: the number of features and the norm bound of rows that may be centred; ``always`` if they must be."""

    features: int
    bound: float
    always: bool


def affordable_centring(rows: Centrable, plain: ReleaseMechanism) -> Centring | None:
    """Return the centring that a mechanism can afford; ``None`` if its noise would be worse than no centre.

    Let r be the ratio of the mechanism's own noise. A mean that is given a share f of r^2 has noise of norm
    S sqrt(d) / (N r sqrt(f)), where one person changes the sum of the rows by at most S. The share is the one at
    which that is a twentieth of the rows' bound, between 1 % and 10 %; the fit's noise grows by about half of the
    share. Where 10 % leave more than half of the bound, rows are not centred (docs/theory/centring.md).
    """
    relation, whole = plain.task.relation, plain.ratio / plain.task.records_of_a_person
    moved = row_sum_sensitivity(relation, rows.features, rows.bound)
    noise = moved * math.sqrt(rows.features) / (plain.task.total * whole * rows.bound)  # with the whole ratio
    if noise > _USELESS * math.sqrt(_MAX_FOR_MEAN) and not rows.always:
        return None
    share = min(max((noise / _CLOSE) ** 2, _MIN_FOR_MEAN), _MAX_FOR_MEAN)
    return Centring.with_ratios(
        rows.features,
        rows.bound,
        relation,
        mean=whole * math.sqrt(share),
        counts=whole * math.sqrt(_FOR_COUNTS),
    )


def _score_counts(plain: ReleaseMechanism) -> ScoreCounts:
    """Return counts of scores for a twentieth of the squared ratio of a mechanism's own noise."""
    if not plain.guarantee.is_private:
        return ScoreCounts(0.0)
    ratio = plain.ratio * math.sqrt(_FOR_SCORES) / plain.task.records_of_a_person
    return ScoreCounts.with_ratio(ratio, plain.task.relation)


Kind = type[ReleaseMechanism]


def calibrate_mechanism(
    task: Task,
    guarantee: Guarantee,
    *,
    mechanism: str,
    noise: str,
    calibration: str,
    regularization: str | float,
    points: int | None = None,
    rows: Centrable | None = None,
    scored: bool = False,
) -> ReleaseMechanism:
    """Choose what was left to ``"auto"``, refuse what no theorem covers, and calibrate.

    ``mechanism="auto"`` is objective perturbation where its theorem holds, output perturbation elsewhere;
    ``noise="auto"`` is Gaussian when delta is above 0, else the calibration's pure noise.
    The task's regularization is a placeholder until it is chosen here. JT13's mechanisms, which ask a model questions,
    need the number of public points of these questions. Dense rows are centred where a theorem covers that and it
    reduces the error; ``scored`` adds counts of the scores, from which probabilities are estimated.
    """
    kind = _choose_mechanism(task, guarantee, mechanism, noise, calibration)
    if kind.answers_questions:
        noise, calibration = _own_noise(kind, noise, calibration)
    else:
        noise = _choose_noise(kind, guarantee, noise, calibration)
    if task.prior_norm and kind.answers_questions:
        raise InvalidParameter(
            f"regularize_towards goes with objective and output perturbation, not with {kind.title}: leave it out"
        )
    if reason := kind.explain_refusal(task, noise):
        raise InvalidParameter(f"{kind.title} does not fit: {reason}. Take mechanism='output'")
    if noise != "gaussian" and not kind.answers_questions:
        guarantee = Guarantee(guarantee.epsilon, 0.0, guarantee.neighbours)
    chosen = _choose_regularization(task, guarantee, kind, noise, regularization)
    task = dataclasses.replace(task, regularization=chosen)
    calibrated: ReleaseMechanism = kind.calibrate(task, guarantee, noise, calibration, points=points)
    _refuse_loose_tolerance(task.tolerance, calibrated)
    gaussian = noise == "gaussian" and task.problems == 1 and takes_statistics(kind, calibration)
    if gaussian or (scored and not guarantee.is_private):
        return _add_statistics(calibrated, task, rows, scored, regularization)
    if scored:
        raise InvalidParameter(
            "probability=True needs Gaussian noise (delta above 0), tight calibration and two "
            "classes, or softmax, which has probabilities: leave it out, or take PrivateLogisticRegression"
        )
    return calibrated


def _add_statistics(
    plain: ReleaseMechanism, task: Task, rows: Centrable | None, scored: bool, regularization: str | float
) -> ReleaseMechanism:
    """Return the mechanism on centred rows, where that helps, and with counts of its scores, if requested."""
    private = plain.guarantee.is_private
    centring = affordable_centring(rows, plain) if rows is not None and private else None
    counts = _score_counts(plain) if scored else None
    if centring is None and counts is None:
        return plain
    task, kind = dataclasses.replace(task, centring=centring, score_counts=counts), type(plain)
    chosen = _choose_regularization(task, plain.guarantee, kind, plain.noise, regularization)
    task = dataclasses.replace(task, regularization=chosen)
    centred: ReleaseMechanism = kind.calibrate(task, plain.guarantee, plain.noise, plain.calibration)
    return centred


_MAX_TOLERANCE_SHARE = 1 / 3  # of the mechanism's noise: a third more of independent noise adds 5 %


def check_tolerance(value: object) -> float:
    """Return the tolerance of a task; 0 for ``"auto"``, which the mechanism chooses."""
    if isinstance(value, str) and value == "auto":
        return 0.0
    if not _is_positive(value):
        raise InvalidParameter(f"tolerance must be 'auto' or a finite number above 0, not {preview(value)}")
    return float(cast(float, value))


def _refuse_loose_tolerance(requested: float, calibrated: ReleaseMechanism) -> None:
    """Refuse a requested tolerance that costs much noise; the smallest that rounding allows is not refused."""
    share = calibrated.tolerance_share
    if calibrated.task.tolerance == requested and share > _MAX_TOLERANCE_SHARE:
        raise InvalidParameter(
            f"tolerance = {requested:g} is too loose: the noise that it needs would be {share:.2g} times the "
            f"mechanism's own. Take tolerance='auto', or at most {requested * _MAX_TOLERANCE_SHARE / share:.1g}"
        )


def _own_noise(kind: Kind, noise: str, calibration: str) -> tuple[str, str]:
    """Return noise and calibration of a mechanism that answers questions; each has one of both."""
    ((own_calibration, (own_noise,)),) = kind.combinations.items()
    if noise not in ("auto", own_noise) or calibration not in ("tight", own_calibration):
        raise InvalidParameter(
            f"mechanism={kind.name!r} has one noise and one calibration: leave noise and calibration out"
        )
    return own_noise, own_calibration


def _choose_mechanism(task: Task, guarantee: Guarantee, mechanism: str, noise: str, calibration: str) -> Kind:
    known: dict[str, Kind] = mechanisms_of(ReleaseMechanism)
    if mechanism in known:
        return known[mechanism]
    if mechanism != "auto":
        raise InvalidParameter(
            f"mechanism must be 'auto', {', '.join(map(repr, known))}, not {preview(mechanism)}"
            f"{did_you_mean(mechanism, known)}"
        )
    for kind in known.values():
        if kind.is_default and calibration in kind.combinations:
            likely = _choose_noise(kind, guarantee, noise, calibration)
            if likely in kind.combinations[calibration] and kind.explain_refusal(task, likely) is None:
                return kind
    return OutputPerturbation


def _choose_noise(kind: Kind, guarantee: Guarantee, noise: str, calibration: str) -> str:
    known = kind.combinations.get(calibration, ("gaussian",))
    if noise == "auto":
        pure = [name for name in known if name != "gaussian"]
        noise = pure[0] if pure and (guarantee.delta == 0 or "gaussian" not in known) else known[0]
    if noise == "gaussian" and guarantee.delta == 0 and guarantee.is_private:
        raise InvalidParameter(
            "Gaussian noise needs delta > 0: pass delta=1e-6 (well below 1/n), or noise='norm_gamma' for delta=0"
        )
    return noise


def _choose_regularization(
    task: Task, guarantee: Guarantee, kind: Kind, noise: str, requested: str | float
) -> float:
    if isinstance(requested, str) and requested == "auto":
        distribution = "gaussian" if kind.answers_questions else noise
        return default_regularization(
            task, guarantee, "objective" if kind.perturbs == "objective" else "output", distribution
        )
    return check_regularization(requested)


def check_regularization(value: object) -> float:
    """Return a regularization that is not ``"auto"``; refuse anything but a finite number above 0."""
    if not _is_positive(value):
        raise InvalidParameter(f"regularization must be 'auto' or a number above 0, not {preview(value)}")
    return float(cast(float, value))


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and 0 < float(cast(float, value)) < math.inf
