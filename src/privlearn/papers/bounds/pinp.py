"""PINP's threshold (JT13 Algorithm 1) compared with the largest possible answer: is the method vacuous?"""

from __future__ import annotations

from dataclasses import dataclass

from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.pinp import QUERIES, PaperPINP, TightPINP
from privlearn.mechanisms.session.task import KernelTask
from privlearn.mechanisms.task import Task
from privlearn.solvers.losses import Hinge, LossProperties


@dataclass(frozen=True)
class PinpSizes:
    """The public numbers of a PINP session.

    Attributes
    ----------
    max_answer : float
        Maximum value of the learned function, on any data.
    threshold : float
        Distance of the public guess, at first zero, from the private answer above which PINP corrects it. If it exceeds
        the largest answer, only the noise of the test can lead to a correction.
    updates : int
        B, the maximum number of corrections.
    answer_epsilon : float
        Paper mode: 1 over the scale of the Laplace noise on an answer (the paper's eps0).
    vacuous : bool
        True if, on any data, the answers to that many queries are all zero, except with probability 0.05: even the
        noise of the tests is too small for a correction. (It reaches a quarter of the threshold in paper mode, and half
        of it in tight mode.)
    tight_threshold, tight_updates, tight_answer_noise, tight_test_noise, tight_vacuous
        The same in tight mode; the noise of an answer is Gaussian, that of a test has Laplace scales of
        ``tight_test_noise`` on the distance and half of it on the threshold.
    """

    max_answer: float
    threshold: float
    updates: int
    answer_epsilon: float
    vacuous: bool
    tight_threshold: float
    tight_updates: int
    tight_answer_noise: float
    tight_test_noise: float
    tight_vacuous: bool


def pinp_threshold(
    rows: int,
    regularization: float,
    epsilon: float,
    delta: float,
    *,
    loss: LossProperties | None = None,
    queries: int = QUERIES,
    neighbours: str = "replace_one",
) -> PinpSizes:
    """Return the sizes of both modes for k(x, x) <= 1, as `mechanisms.pinp` calibrates them for an exact minimiser."""
    task = Task(loss or Hinge(), rows, 1, 1, regularization, 1e-10, neighbours)
    kernel_task = KernelTask(task, solver_distance=0.0)
    guarantee = Guarantee(epsilon, delta, neighbours)
    paper = PaperPINP.calibrate(kernel_task, guarantee, queries=queries)
    tight = TightPINP.calibrate(kernel_task, guarantee, queries=queries)
    return PinpSizes(
        max_answer=kernel_task.norm_bound,
        threshold=paper.threshold,
        updates=paper.updates,
        answer_epsilon=1.0 / paper.answer_scale,
        vacuous=paper.is_vacuous,
        tight_threshold=tight.threshold,
        tight_updates=tight.updates,
        tight_answer_noise=tight.answer_scale,
        tight_test_noise=4.0 * kernel_task.answer_sensitivity / tight.test_epsilon,
        tight_vacuous=tight.is_vacuous,
    )
