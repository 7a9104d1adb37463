"""The table of bounds and its figure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privlearn.accounting import gaussian_ratio
from privlearn.bounds import (
    ball_upper_bound,
    finite_private_noise,
    finite_upper_bound,
    finite_useful_noise,
    fourier_features,
    fourier_private_noise,
    fourier_upper_bound,
    fourier_useful_noise,
    frequency_moment,
    linear_accuracy_limit,
    linear_lower_bound,
    pinp_threshold,
    rbf_accuracy_limit,
    rbf_lower_bound,
    sensitivity,
)
from privlearn.errors import InvalidParameter, shown
from privlearn.study.drawing import STYLE, image_of, require_matplotlib
from privlearn.study.excess import excess_lines

KERNELS = ("linear", "rbf", "cauchy")


@dataclass(frozen=True)
class Case:
    """The public numbers that were typed; k(x, x) <= 1 and the hinge loss."""

    rows: int
    regularization: float
    kernel: str
    columns: int
    gamma: float
    epsilon: float
    delta: float
    accuracy: float
    failure: float
    candidates: int = 10

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise InvalidParameter(
                f"--kernel must be one of {', '.join(KERNELS)}, not {shown(self.kernel)}: RBHT's theorems end there"
            )
        if not 0 < self.delta < 1:
            raise InvalidParameter(
                "--delta must lie between 0 and 1: Gaussian noise and PINP need one, e.g. 1e-6"
            )

    def at(self, *, regularization: float | None = None, epsilon: float | None = None) -> Case:
        """The same case with another regularization or epsilon."""
        return replace(
            self, regularization=regularization or self.regularization, epsilon=epsilon or self.epsilon
        )

    @property
    def frequencies(self) -> int:
        """Random Fourier frequencies that Theorem 13 asks for."""
        return fourier_features(self.accuracy, self.failure, self.regularization, self.columns, self._moment)

    @property
    def private_noise(self) -> float:
        if self.kernel == "linear":
            return finite_private_noise(self.epsilon, self.rows, self.regularization, self.columns)
        return fourier_private_noise(self.epsilon, self.rows, self.regularization, self.frequencies)

    @property
    def useful_noise(self) -> float:
        if self.kernel == "linear":
            return finite_useful_noise(self.accuracy, self.failure, self.columns)
        return fourier_useful_noise(self.accuracy, self.failure, self.frequencies)

    @property
    def upper_bound(self) -> float:
        if self.kernel == "linear":
            return finite_upper_bound(
                self.accuracy, self.failure, self.rows, self.regularization, self.columns
            )
        return fourier_upper_bound(
            self.accuracy, self.failure, self.rows, self.regularization, self.columns, self._moment
        )

    @property
    def ball_bound(self) -> float | None:
        """For a finite map only."""
        if self.kernel != "linear":
            return None
        return ball_upper_bound(self.accuracy, self.failure, self.rows, self.regularization, self.columns)

    @property
    def lower_bound(self) -> float:
        """0 where nothing is excluded; RBHT have no lower bound for the Cauchy kernel."""
        if self.kernel == "linear":
            return linear_lower_bound(self.accuracy, self.failure, self.rows, self.regularization)
        if self.kernel == "rbf":
            return rbf_lower_bound(self.accuracy, self.failure, self.rows, self.regularization, self.gamma)
        return 0.0

    @property
    def accuracy_limit(self) -> float:
        """Below this accuracy the lower bound says something."""
        if self.kernel == "linear":
            return linear_accuracy_limit(self.rows, self.regularization)
        return rbf_accuracy_limit(self.rows, self.regularization) if self.kernel == "rbf" else 0.0

    @property
    def _moment(self) -> float:
        return frequency_moment(self.kernel, self.columns, self.gamma)


def table(case: Case) -> list[tuple[str, str, str]]:
    """Lines of (what, how much, what it means)."""
    moved = sensitivity(case.rows, case.regularization)
    return [
        ("one record moves the machine by", f"{moved:.3g}", "2 / (n lambda), in the kernel's norm"),
        *_laplace_lines(case),
        *_optimum_lines(case),
        (
            "function release: noise in an answer",
            f"{moved / gaussian_ratio(case.epsilon, case.delta):.3g}",
            "standard deviation, however many answers",
        ),
        *_pinp_lines(case),
        *excess_lines(case),
    ]


def _laplace_lines(case: Case) -> list[tuple[str, str, str]]:
    needed, allowed = case.private_noise, case.useful_noise
    verdict = "useful" if needed <= allowed else f"not useful: {needed / allowed:.2g} times too much noise"
    lines = []
    if case.kernel != "linear":
        lines.append(("Fourier frequencies for usefulness", f"{case.frequencies:.3g}", "RBHT Theorem 13"))
    return [
        *lines,
        ("Laplace scale privacy needs", f"{needed:.3g}", "RBHT Theorem 10"),
        ("Laplace scale usefulness allows", f"{allowed:.3g}", f"RBHT Theorem 11, 13: {verdict}"),
    ]


def _optimum_lines(case: Case) -> list[tuple[str, str, str]]:
    source = "RBHT Corollary 19" if case.kernel == "linear" else "RBHT Theorem 21"
    lines = [("epsilon some useful mechanism keeps", f"{case.upper_bound:.3g}", source)]
    if case.ball_bound is not None:
        lines.append(("the same with norm-Gamma noise", f"{case.ball_bound:.3g}", "CMS11 Algorithm 1"))
    if case.lower_bound > 0:
        lowest = (f"{case.lower_bound:.3g}", "RBHT Theorems 23, 26: no mechanism keeps less")
    elif case.accuracy_limit > 0:
        lowest = ("none", f"they speak of accuracies below {case.accuracy_limit:.3g} (RBHT Theorems 23, 26)")
    else:
        lowest = ("none", "RBHT have none for this kernel")
    return [*lines, ("epsilon every useful mechanism exceeds", *lowest)]


def _pinp_lines(case: Case) -> list[tuple[str, str, str]]:
    sizes = pinp_threshold(case.rows, case.regularization, case.epsilon, case.delta)

    def meaning(threshold: float, vacuous: bool, updates: int) -> str:
        if vacuous:
            return "VACUOUS: every answer is zero"
        if threshold > sizes.largest_answer:
            return "above every answer: zero, but for the luck of its noise"
        return f"{updates:,} updates; a sure answer is about 1"

    return [
        ("largest answer there can be", f"{sizes.largest_answer:.3g}", "on any data, in any form of release"),
        (
            "PINP threshold, paper mode",
            f"{sizes.threshold:.3g}",
            meaning(sizes.threshold, sizes.vacuous, sizes.updates),
        ),
        (
            "PINP threshold, tight mode",
            f"{sizes.tight_threshold:.3g}",
            meaning(sizes.tight_threshold, sizes.tight_vacuous, sizes.tight_updates),
        ),
        ("PINP noise in an answer, tight mode", f"{sizes.tight_answer_noise:.3g}", "standard deviation"),
    ]


POINTS = 200


def draw_bounds(case: Case, kind: str) -> bytes:
    """An image of that kind, svg, png or pdf."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "bounds"}):
        figure = matplotlib.figure.Figure(figsize=(9.6, 4.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_privacy(left, case)
        _draw_noise(right, case)
        figure.suptitle(
            f"{case.rows:,} records, {case.kernel} kernel, {case.columns} columns; useful: within "
            f"{case.accuracy:g}, except with probability {case.failure:g}",
            fontsize=10,
        )
        return image_of(figure, kind)


def _draw_privacy(axes: Any, case: Case) -> None:
    """Upper and lower bounds on the least epsilon of all useful mechanisms."""
    strengths = np.geomspace(_weakest(case), max(1.0, case.regularization), POINTS)
    cases = [case.at(regularization=float(strength)) for strength in strengths]
    axes.plot(
        strengths, [at.upper_bound for at in cases], color="#0072B2", linewidth=2, label="Laplace noise keeps"
    )
    if case.ball_bound is not None:
        axes.plot(
            strengths,
            [at.ball_bound for at in cases],
            color="#009E73",
            linestyle="-.",
            label="norm-Gamma noise keeps",
        )
    lower = np.array([at.lower_bound for at in cases])
    if np.any(lower > 0):
        axes.plot(
            strengths,
            np.where(lower > 0, lower, np.nan),
            color="#D55E00",
            linewidth=2,
            label="no mechanism keeps less",
        )
    axes.axvline(
        case.regularization, color="#777777", linestyle=":", label=f"asked for: {case.regularization:g}"
    )
    _finish(axes, "regularization lambda", "epsilon of useful mechanisms")


def _draw_noise(axes: Any, case: Case) -> None:
    """The noise that privacy asks for, beside what usefulness allows: useful where the first is below."""
    epsilons = np.geomspace(min(0.01, case.epsilon), max(100.0, case.epsilon), POINTS)
    needed = [case.at(epsilon=float(epsilon)).private_noise for epsilon in epsilons]
    axes.plot(epsilons, needed, color="#0072B2", linewidth=2, label="privacy needs")
    allowed = np.full(POINTS, case.useful_noise)
    axes.plot(epsilons, allowed, color="#009E73", linestyle="--", label="usefulness allows")
    axes.axvline(case.epsilon, color="#777777", linestyle=":", label=f"asked for: {case.epsilon:g}")
    _finish(axes, "epsilon", "scale of the Laplace noise")


def _finish(axes: Any, across: str, up: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=9)


def _weakest(case: Case) -> float:
    """Weak enough for the lower bound to show, since its range grows as the regularization falls."""
    strength = min(1e-6, case.regularization)
    while 0 < case.at(regularization=strength).accuracy_limit <= case.accuracy:
        strength /= 10.0
    return strength / 10.0
