"""Lines of the table of bounds: what noise costs in the objective, and how open-ended bounds grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privlearn.bounds import (
    LAWS,
    Bound,
    Law,
    Sizes,
    gamma_length,
    gaussian_excess,
    objective_excess,
    output_excess,
    ra12_noise,
    sensitivity,
    tuning_excess,
)
from privlearn.bounds.growth import ROWS
from privlearn.erm.losses import HuberHinge
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.release.objective import ObjectivePerturbation
from privlearn.mechanisms.session.pinp import QUERIES
from privlearn.mechanisms.task import Task

if TYPE_CHECKING:
    from privlearn.study.bounds import Case

LOSS = HuberHinge(0.5)
"""The default of support vector machines; the hinge has no curvature bound, which these theorems need."""

TRIVIAL = 1.0
"""J(0), which predicts nothing: the loss of a margin of 0."""


def excess_lines(case: Case) -> list[tuple[str, str, str]]:
    """A linear model over the columns: (what, how much, what it means)."""
    facts = (case.rows, case.regularization, case.columns, LOSS.smoothness, case.failure)
    scale = sensitivity(case.rows, case.regularization) / case.epsilon
    length = gamma_length(case.columns, scale, case.failure)
    mistakes = tuning_excess(case.epsilon, case.candidates, case.failure)
    noise = ra12_noise(
        case.epsilon, case.delta, case.rows, case.regularization, case.columns, LOSS.smoothness
    )
    objective = objective_excess(case.epsilon, *facts)
    return [
        (
            "longest norm-Gamma noise",
            f"{length.sharp:.3g}",
            f"CMS11 Lemma 5 (printed: {length.printed:.3g})",
        ),
        _risk("output perturbation raises J by", "CMS11 Lemma 4", output_excess(case.epsilon, *facts)),
        _risk("objective perturbation raises J by", "CMS11 Lemma 6", objective),
        _risk(
            "the same with RA12's Gaussian noise",
            "RA12 Theorem 5.1",
            None if noise is None else gaussian_excess(noise, *facts),
        ),
        _risk("the same with our Gaussian noise", "RA12 Theorem 5.1", _ours(case, facts)),
        (
            f"mistakes lost by choosing among {case.candidates}",
            f"{mistakes.sharp:.3g}",
            f"CMS11 Theorem 9 (printed: {mistakes.printed:.3g}), of those that choose",
        ),
    ]


def _ours(case: Case, facts: tuple[int, float, int, float, float]) -> Bound | None:
    """Of the default; the tiny noise for the solver's tolerance is left out."""
    task = Task(LOSS, case.rows, case.columns, 1, case.regularization, 0.0, "replace_one")
    promise = Guarantee(case.epsilon, case.delta)
    ours = ObjectivePerturbation.calibrate(task, promise, "gaussian", "tight")
    raised = ours.effective_regularization > case.regularization
    return None if raised else gaussian_excess(ours.noise_scale, *facts)


def _risk(what: str, source: str, bound: Bound | None) -> tuple[str, str, str]:
    if bound is None:
        return what, "none", f"{source} is silent: Lambda would have to be raised"
    useful = "" if bound.sharp < TRIVIAL else "; VACUOUS: the zero model has J = 1"
    return what, f"{bound.sharp:.3g}", f"{source} (printed: {bound.printed:.3g}){useful}"


HEADING = ("bound", "of what", "rows x 2", "epsilon x 2", "columns x 2", "excess / 2", "says")


def growth_lines(case: Case) -> list[tuple[str, ...]]:
    """Laws without constants: what each bound is multiplied by. The first line names the columns."""
    sizes = Sizes(case.rows, case.columns, case.epsilon, case.accuracy, case.failure, QUERIES)
    return [HEADING, *(_law(law, sizes) for law in LAWS)]


def _law(law: Law, sizes: Sizes) -> tuple[str, ...]:
    changes = (("rows", 2), ("epsilon", 2), ("columns", 2), ("excess", 0.5))
    unasked = "rows" if law.bounds == ROWS else "excess"  # what the law is about is not what it depends on
    ratios = (
        "-" if quantity == unasked else f"{law.ratio(sizes, quantity, factor):.3g}"
        for quantity, factor in changes
    )
    return law.source, law.bounds, *ratios, law.says
