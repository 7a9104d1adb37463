"""The table of `privlearn bounds`: RBHT's bounds, PINP's sizes, the cost of noise in the objective, growth rates."""

from __future__ import annotations

import math

import numpy as np

from privlearn.accounting import gaussian_ratio
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.release.objective import ObjectivePerturbation
from privlearn.mechanisms.task import Task
from privlearn.papers import bounds
from privlearn.papers.bounds.growth import ROWS
from privlearn.papers.study.case import Case
from privlearn.solvers.losses import HuberHinge, Loss


def table(case: Case) -> list[tuple[str, str, str]]:
    """Return lines of (what, how much, what it means)."""
    moved = case.sensitivity
    formula = f"{case.gradient_sensitivity:g} / (n lambda), in the kernel's norm; {case.loss_name}, {case.neighbours}"
    return [
        ("one record moves the machine by", f"{moved:.3g}", formula),
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
        lowest = (f"{case.lower_bound:.3g}", "RBHT Theorems 23, 26: no mechanism goes below")
    elif case.accuracy_limit > 0:
        lowest = ("none", f"they apply to accuracies below {case.accuracy_limit:.3g} (RBHT Theorems 23, 26)")
    else:
        lowest = ("none", "RBHT have none for this kernel and loss")
    return [*lines, ("epsilon every useful mechanism exceeds", *lowest)]


def _pinp_lines(case: Case) -> list[tuple[str, str, str]]:
    sizes = bounds.pinp_threshold(
        case.rows,
        case.regularization,
        case.epsilon,
        case.delta,
        loss=case.loss,
        queries=case.queries,
        neighbours=case.neighbours,
    )

    def meaning(threshold: float, vacuous: bool, updates: int) -> str:
        if vacuous:
            return "VACUOUS: every answer is zero"
        if threshold > sizes.max_answer:
            return "above every answer: zero, except by chance of the noise"
        return f"{updates:,} updates; a sure answer is about 1"

    return [
        ("largest possible answer", f"{sizes.max_answer:.3g}", "on any data, in any form of release"),
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


INSTEAD_OF_HINGE = HuberHinge(0.5)
"""The default of support vector machines; the hinge's second derivative has no bound, which these theorems need."""


def excess_lines(case: Case) -> list[tuple[str, str, str]]:
    """Return lines about a linear model over the columns: (what, how much, what it means)."""
    loss = _smooth(case)
    arguments = (case.rows, case.regularization, case.columns, loss.smoothness, case.failure)
    length = bounds.gamma_length(case.columns, case.sensitivity / case.epsilon, case.failure)
    mistakes = bounds.tuning_excess(case.epsilon, case.candidates, case.failure)
    moved = case.gradient_sensitivity
    noise = bounds.ra12_noise(case.epsilon, case.delta, *arguments[:4], gradient=moved)
    objective = bounds.objective_excess(case.epsilon, *arguments, gradient=moved)
    output = bounds.output_excess(case.epsilon, *arguments, gradient=moved)
    trivial = _zero_loss(loss)
    return [
        (
            "loss of the next lines",
            loss.name,
            f"|loss'| <= {loss.lipschitz:g}, loss'' <= {loss.smoothness:g}; what is printed has |loss'| <= 1",
        ),
        ("longest norm-Gamma noise", f"{length.sharp:.3g}", f"CMS11 Lemma 5 (printed: {length.printed:.3g})"),
        _risk("output perturbation raises J by", "CMS11 Lemma 4", output, trivial),
        _risk("objective perturbation raises J by", "CMS11 Lemma 6", objective, trivial),
        _risk(
            "the same with RA12's Gaussian noise",
            "RA12 Theorem 5.1",
            None if noise is None else bounds.gaussian_excess(noise, *arguments),
            trivial,
        ),
        _risk("the same with our Gaussian noise", "RA12 Theorem 5.1", _ours(case, loss, arguments), trivial),
        (
            f"mistakes lost by choosing among {case.candidates}",
            f"{mistakes.sharp:.3g}",
            f"CMS11 Theorem 9 (printed: {mistakes.printed:.3g}), of those that choose",
        ),
    ]


def _smooth(case: Case) -> Loss:
    """Return the loss of the case, or the Huber hinge instead of the hinge."""
    return case.loss if math.isfinite(case.loss.smoothness) else INSTEAD_OF_HINGE


def _zero_loss(loss: Loss) -> float:
    """Return the largest J(0): the loss of margin 0, or of a target at its bound."""
    return float(loss.value(np.array([0.0 if loss.argument == "margin" else 1.0]))[0])


def _ours(case: Case, loss: Loss, arguments: tuple[int, float, int, float, float]) -> bounds.Bound | None:
    """Return the bound of the default, without the tiny noise for the solver's tolerance."""
    task = Task(loss, case.rows, case.columns, 1, case.regularization, 0.0, case.neighbours)
    guarantee = Guarantee(case.epsilon, case.delta, case.neighbours)
    ours = ObjectivePerturbation.calibrate(task, guarantee, "gaussian", "tight")
    raised = ours.effective_regularization > case.regularization
    return None if raised else bounds.gaussian_excess(ours.noise_scale, *arguments)


def _risk(what: str, source: str, bound: bounds.Bound | None, trivial: float) -> tuple[str, str, str]:
    if bound is None:
        return what, "none", f"{source} does not apply: Lambda would have to be raised"
    useful = "" if bound.sharp < trivial else f"; VACUOUS: the zero model has J = {trivial:.2g}"
    return what, f"{bound.sharp:.3g}", f"{source} (printed: {bound.printed:.3g}){useful}"


HEADING = ("bound", "of what", "rows x 2", "epsilon x 2", "columns x 2", "excess / 2", "meaning")


def growth_lines(case: Case) -> list[tuple[str, ...]]:
    """Return the factors of bounds without constants; the first line is the heading."""
    sizes = bounds.Sizes(case.rows, case.columns, case.epsilon, case.accuracy, case.failure, case.queries)
    return [HEADING, *(_growth_line(rate, sizes) for rate in bounds.GROWTH_RATES)]


def _growth_line(rate: bounds.GrowthRate, sizes: bounds.Sizes) -> tuple[str, ...]:
    changes = (("rows", 2), ("epsilon", 2), ("columns", 2), ("excess", 0.5))
    bounded = "rows" if rate.bounds == ROWS else "excess"  # a bound does not depend on what it bounds
    ratios = (
        "-" if quantity == bounded else f"{rate.ratio(sizes, quantity, factor):.3g}"
        for quantity, factor in changes
    )
    return rate.source, rate.bounds, *ratios, rate.meaning
