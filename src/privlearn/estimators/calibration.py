"""Calibrate a fit from public numbers: the default regularization, and the mechanism for a guarantee.

`calibrate_mechanism` chooses what was left to ``"auto"`` and refuses what no theorem covers.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from typing import cast

from privlearn.accounting import GaussianObjectiveCurves, gaussian_ratio
from privlearn.accounting.functions import root
from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.estimators.fit_statistics import Requests, affordable_statistics
from privlearn.guarantee import Guarantee, check_guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism, mechanisms_of, takes_statistics
from privlearn.mechanisms.release.output import OutputPerturbation
from privlearn.mechanisms.task import Task
from privlearn.release.score_map import MAX_TARGET, UNITS_OF_SPREAD
from privlearn.solvers.losses import Huber

_SEPARATOR = 10.0  # norm of a weight vector that decides: log-odds of 10 along it
_OUTPUT_FLAT, _OUTPUT_CURVED = 0.08, 0.1  # output perturbation: many directions, each flat; few, each curved
_SLACK_SHARE = 0.45  # of epsilon; objective perturbation itself stops at a half
_PLAIN = 0.25  # N Lambda without noise
_LOG_ODDS = 2 / 3  # typical size of a coefficient, in log-odds, along each direction
_FLAT_WEIGHT = 1 / 3  # of equal curvatures against decaying ones, on the scale of log k
_TARGET_DEVIATION = (
    0.2  # of targets in [-1, 1]: what a useful regression explains, and what it leaves, is 0.1 to 0.4
)
# Noise in scores over that of equal curvatures: 3 on simulated visits, 5 on CoverType's elevation.
_UNEQUAL = 3.0
_NOT_COMMON = 0.5  # part of the norm of rows that are not centred by which they differ
_SESSION_CLASSES = 2.5  # best of 1 to 5 on Adult, epsilon 0.1 to 4
_SESSION_NUMBERS = 0.4  # about the best of 0.02 to 1.6 on two simulated tables and Adult, 1000 and 4000 rows


def default_regularization(task: Task, guarantee: Guarantee, mechanism: str, noise: str) -> float:
    """Return Lambda from n, epsilon, delta, the dimension and the loss's constants (docs/theory/regularization.md).

    Let sigma be the deviation of the noise in one coordinate of the sum of gradients, and k = N Lambda.

    Objective perturbation: noise and shrinkage reach a direction of curvature h as sigma^2 h / (N h + k)^2 and
    k^2 v^2 h / (N h + k)^2. Data has directions of all magnitudes of curvature; over such a spectrum the first adds up
    to a multiple of d sigma^2 / k, the second of k |v|^2, and they balance at k = sigma sqrt(d) / |v|. The norm |v| of
    what is to be learnt is taken as 10, or as sqrt(d), one unit per direction, if that is more: beyond 100 features
    k is sigma itself; for numbers see `_size_to_learn`. sigma belongs to the epsilon that remains after the Jacobian's
    slack, which falls as k grows, so k solves an equation; and the slack never takes more than 45 % of epsilon.

    Numbers learnt from centred rows, or from more columns than records: at least sigma^2 d / (N h v^2), see
    `_flat_balance`; it matters for few rows. Two classes where a person may weigh more than one record: the geometric
    mean of the first and the last, see `_heavy_balance`.

    Softmax loss: k = sqrt(2) sigma / (tau (1 + log(K - 1))), and more for little N epsilon: see `_softmax_balance`.

    Output perturbation: the noise in a prediction is sigma / k for any dimension: k = (0.08 sigma sqrt(N))^(2/3),
    or, where few directions share the curvature and shrinkage costs less, sqrt(0.1 sigma N / d).
    Without noise k is 0.25 (in scikit-learn's terms C = 4), below which held-out error hardly moves.

    The task's own ``regularization`` is not read.
    """
    if not guarantee.is_private:
        return _PLAIN / task.total
    balance = _output_balance if mechanism == "output" else _objective_balance
    if task.classes and mechanism != "output":
        balance = _softmax_balance
    return max(balance(task, guarantee, noise), _PLAIN) / task.total


def session_regularization(task: Task, guarantee: Guarantee | None) -> float:
    """Return Lambda of a session's learner, at which noise and shrinkage balance.

    Let B be the noise in the sum of gradients: an answer has noise B / (N Lambda). A label needs its sign only, and
    N Lambda = 2.5 B leaves a noise of 0.4. Of K scores, two are compared, and the largest noise of K - 1 rivals counts:
    sqrt(2) max(1, sqrt(2 log(K - 1))) times as much. A number needs its size: shrinkage, about Lambda / c where the
    loss has curvature c, costs as much as the noise at N Lambda proportional to sqrt(B N c).
    """
    if guarantee is None:
        raise InvalidParameter(
            "regularization='auto' depends on the guarantee. Pass epsilon=... and delta=..., the same "
            "as for the session, or a number"
        )
    check_guarantee(guarantee)
    if guarantee.is_private and guarantee.delta == 0:
        raise InvalidParameter("a session needs delta > 0. Pass delta=1e-6")
    if not guarantee.is_private:
        return _PLAIN / task.total
    ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta)
    noise = math.sqrt(task.problems) * task.gradient_sensitivity / ratio
    if task.loss.argument == "residual":
        balance = _SESSION_NUMBERS * math.sqrt(noise * task.total * task.loss.smoothness)
    else:
        rivals = max(task.classes - 1, 1)
        several = math.sqrt(2.0 * max(1.0, 2.0 * math.log(rivals))) if task.classes else 1.0
        balance = _SESSION_CLASSES * several * noise
    return max(balance, _PLAIN) / task.total


def _output_balance(task: Task, guarantee: Guarantee, noise: str) -> float:
    deviation = _noise_deviation(task, guarantee.epsilon, guarantee.delta, noise)
    flat = (_OUTPUT_FLAT * deviation * math.sqrt(task.total)) ** (2 / 3)
    curved = math.sqrt(_OUTPUT_CURVED * deviation * task.total / task.dimension)
    return float(max(flat, curved))


def _objective_balance(task: Task, guarantee: Guarantee, noise: str) -> float:
    def balance(strength: float) -> float:
        slack = task.problems * task.jacobian_slack(strength / task.total)
        deviation = _noise_deviation(task, guarantee.epsilon - slack, guarantee.delta, noise)
        directions = math.sqrt(task.dimension)
        usual = max(deviation * directions / _size_to_learn(task), _flat_balance(task, deviation))
        return max(usual, math.sqrt(usual * _heavy_balance(task, deviation)))

    lower = _strength_of_slack(task, _SLACK_SHARE * guarantee.epsilon / task.problems)
    return _solve(balance, lower)


def _size_to_learn(task: Task) -> float:
    """Return the norm |v| of what is to be learnt: that of a sure score, or a typical one for each direction.

    For numbers that is the largest target in units, and their typical deviation; more where rows have a common part.
    """
    directions = math.sqrt(task.dimension)
    if task.loss.argument != "residual":
        return max(_SEPARATOR, directions)
    differing = 1.0 if task.centring is not None else _NOT_COMMON
    return max(MAX_TARGET, _TARGET_DEVIATION * directions) / differing


def _flat_balance(task: Task, deviation: float) -> float:
    """Return k at which noise and shrinkage of numbers balance if all directions have the same curvature.

    They have in centred rows, and with more columns than records. Each has curvature a = N h / d then; noise and
    shrinkage of a score are sigma^2 / (a + k)^2 and k^2 v^2 / (a + k)^2, smallest at k = sigma^2 / (a v^2). Rows
    hardly fill more than 100 directions.
    """
    is_flat = task.centring is not None or task.dimension > task.total
    if not is_flat or task.loss.argument != "residual":
        return 0.0
    directions = min(task.dimension, _SEPARATOR**2)
    width = task.loss.lipschitz / task.loss.smoothness
    # Share of normal residuals that are within the width, where the loss is curved.
    within = math.erf(width / (math.sqrt(2.0) * _TARGET_DEVIATION))
    curvature = task.total * within * task.loss.smoothness / directions
    return deviation**2 / (curvature * _TARGET_DEVIATION**2)


def _heavy_balance(task: Task, deviation: float) -> float:
    """Return the same k for classes, where one person may weigh more than a record of mean weight.

    The noise then is that of a far smaller table, and exceeds the curvature of most directions: shrinkage costs little
    there. Coefficients have a typical size in log-odds along each of the directions that rows fill. Flat curvature and
    the spectrum that decays, which the usual k is for, are the extremes of what a table may have. The default is the
    geometric mean of the two, whose distance from either is the same on the scale on which errors are symmetric.
    """
    if task.records_of_a_person * task.row_weight_bound <= 1.0 or task.loss.argument != "margin":
        return 0.0
    curvature = task.total * task.loss.smoothness / min(task.dimension, _SEPARATOR**2)
    return deviation**2 / (curvature * _LOG_ODDS**2)


def _softmax_balance(task: Task, guarantee: Guarantee, noise: str) -> float:
    """Return k at which noise and shrinkage of a coefficient are equal, k = sigma / size.

    In scores over directions whose curvatures fall like a power, the noise adds up to about sigma^2 / k and the
    shrinkage to k size^2. Two classes that differ by log-odds of size tau have coefficients of size tau / sqrt(2)
    each. With K classes the same odds against K - 1 rivals need scores that differ by log(K - 1) more.

    The risk rises faster below the best k than above, the more so the more directions the noise exceeds. So where equal
    curvatures would need a larger k, it is moved a third of the way there.
    """
    size = _LOG_ODDS * (1.0 + math.log(task.classes - 1)) / math.sqrt(2.0)

    def balance(strength: float) -> float:
        slack = task.jacobian_slack(strength / task.total)
        if noise == "gaussian":
            curve = GaussianObjectiveCurves(slack, corners=task.corners)
            ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta, curve=curve)
            deviation = task.gradient_sensitivity / ratio
        else:
            deviation = _noise_deviation(task, guarantee.epsilon - slack, guarantee.delta, noise)
        usual, flat = deviation / size, _flat_softmax_balance(task, deviation)
        return max(usual, float(usual ** (1.0 - _FLAT_WEIGHT) * flat**_FLAT_WEIGHT))

    lower = _strength_of_slack(task, _SLACK_SHARE * guarantee.epsilon)
    return _solve(balance, lower)


def _flat_softmax_balance(task: Task, deviation: float) -> float:
    """Return the same k if all directions that rows fill have the same curvature.

    It is sigma^2 / (a size^2) with a = N p (1 - p) / d for classes of probability p = 1 / K. The noise drowns how sure
    a model could be against many rivals, so sizes are those of two classes.
    """
    curvature = task.total * (1.0 - 1.0 / task.classes) / task.classes
    directions = min(task.dimension / task.classes, _SEPARATOR**2)
    return 2.0 * deviation**2 * directions / (curvature * _LOG_ODDS**2)


def _solve(balance: Callable[[float], float], lower: float) -> float:
    """Return the k of at least ``lower`` that equals ``balance(k)``, which falls as k grows."""
    upper = balance(lower)
    if upper <= lower:
        return lower
    return root(lambda strength: strength - balance(strength), lower, upper, rtol=1e-6)


def _strength_of_slack(task: Task, slack: float) -> float:
    """Return the k at which the Jacobian of one problem costs ``slack`` of epsilon."""
    return task.curvature_ratio(1.0 / task.total) / task.curvature_ratio_of(slack)


def _noise_deviation(task: Task, epsilon: float, delta: float, noise: str) -> float:
    sensitivity, dimension, problems = task.gradient_sensitivity, task.dimension, task.problems
    if noise == "gaussian":
        return sensitivity * math.sqrt(problems) / gaussian_ratio(epsilon, delta)
    deviation = sensitivity * problems * math.sqrt(dimension) / epsilon
    return math.sqrt(2.0) * deviation if noise == "laplace" else deviation


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
    requests: Requests | None = None,
) -> ReleaseMechanism:
    """Choose what was left to ``"auto"``, refuse what no theorem covers, and calibrate.

    ``mechanism="auto"`` is objective perturbation where its theorem holds, output perturbation elsewhere;
    ``noise="auto"`` is Gaussian when delta is above 0, else the calibration's pure noise.
    The task's regularization is a placeholder until it is chosen here. JT13's mechanisms, which ask a model questions,
    need the number of public points of these questions. Of the ``requests``, the statistics are released with the
    model that a theorem covers and that reduce the error.
    """
    kind = _choose_mechanism(task, guarantee, mechanism, noise, calibration)
    if kind.answers_questions:
        noise, calibration = _own_noise(kind, noise, calibration)
    else:
        noise = _choose_noise(kind, guarantee, noise, calibration)
    if task.prior_norm and kind.answers_questions:
        raise InvalidParameter(
            f"regularize_towards goes with objective and output perturbation, not with {kind.title}. Leave it out"
        )
    if reason := kind.explain_refusal(task, noise):
        raise InvalidParameter(f"{kind.title} does not fit: {reason}. Use mechanism='output'")
    if noise != "gaussian" and not kind.answers_questions:
        guarantee = Guarantee(guarantee.epsilon, 0.0, guarantee.neighbours)
    chosen = _choose_regularization(task, guarantee, kind, noise, regularization)
    task = dataclasses.replace(task, regularization=chosen)
    calibrated: ReleaseMechanism = kind.calibrate(task, guarantee, noise, calibration, points=points)
    _refuse_loose_tolerance(task.tolerance, calibrated)
    requests = Requests() if requests is None else requests
    if requests.is_scored and guarantee.is_private:
        _refuse_scores(task, kind, noise, calibration)
    if takes_statistics(kind, calibration):
        return _add_statistics(calibrated, task, requests, regularization)
    return calibrated


def _refuse_scores(task: Task, kind: Kind, noise: str, calibration: str) -> None:
    covered = task.problems == 1 and noise == "gaussian" and takes_statistics(kind, calibration)
    if not covered:
        raise InvalidParameter(
            "probability=True needs Gaussian noise (delta above 0), tight calibration and two "
            "classes, or softmax, which has probabilities. Leave it out, or use PrivateLogisticRegression"
        )


def _add_statistics(
    plain: ReleaseMechanism, task: Task, requests: Requests, regularization: str | float
) -> ReleaseMechanism:
    """Return the mechanism together with the statistics that are requested and affordable.

    Rows are not centred where the noise of a person who weighs more than one record exceeds the curvature of most
    directions: what can be learnt there is mostly in the common part of all rows, which centring removes.
    """
    kind = type(plain)
    if requests.rows is not None and not requests.rows.always and _is_drowned(plain):
        requests = dataclasses.replace(requests, rows=None)
    task = dataclasses.replace(task, **affordable_statistics(requests, plain))
    if requests.chooses_width and (task.target_locations is not None or not requests.targets):
        task = dataclasses.replace(task, loss=_loss_of_width(task, plain))
    if not task.statistics and task.loss == plain.task.loss:
        return plain
    chosen = _choose_regularization(task, plain.guarantee, kind, plain.noise, regularization)
    task = dataclasses.replace(task, regularization=chosen)
    together: ReleaseMechanism = kind.calibrate(task, plain.guarantee, plain.noise, plain.calibration)
    return together


def _loss_of_width(task: Task, plain: ReleaseMechanism) -> Huber:
    """Return Huber's loss for targets in units of their spread: wider where the noise allows (docs/theory/offsets.md).

    A width of W spreads biases the mean by about exp(-W) spreads where residuals are skewed. In d directions of equal
    curvature the noise in a score is W sigma d / N spreads, in real ones about 3 times as much. The sum of the squares
    is least at about W = log(N / (3 sigma d)).
    """
    guarantee, deviation = plain.guarantee, 0.0
    if guarantee.is_private:
        deviation = _noise_deviation(task, guarantee.epsilon, guarantee.delta, plain.noise)
    directions = min(task.dimension, _SEPARATOR**2)
    noise = _UNEQUAL * math.hypot(deviation, 1.0) * directions  # sampling, too, has noise
    spreads = math.log(task.total / noise)
    return Huber(min(max(spreads / UNITS_OF_SPREAD, Huber.width), MAX_TARGET))


def _is_drowned(plain: ReleaseMechanism) -> bool:
    if plain.noise != "gaussian" or not plain.guarantee.is_private:
        return False
    deviation = plain.task.gradient_sensitivity / plain.ratio
    return _heavy_balance(plain.task, deviation) > deviation


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
            f"mechanism's own. Use tolerance='auto', or at most {requested * _MAX_TOLERANCE_SHARE / share:.1g}"
        )


def _own_noise(kind: Kind, noise: str, calibration: str) -> tuple[str, str]:
    """Return noise and calibration of a mechanism that answers questions; each has one of both."""
    ((own_calibration, (own_noise,)),) = kind.combinations.items()
    if noise not in ("auto", own_noise) or calibration not in ("tight", own_calibration):
        raise InvalidParameter(
            f"mechanism={kind.name!r} has one noise and one calibration. Leave noise and calibration out"
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
            "Gaussian noise needs delta > 0. Pass delta=1e-6 (well below 1/n), or noise='norm_gamma' for delta=0"
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
