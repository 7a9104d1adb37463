"""PINP's threshold (JT13 Algorithm 1) beside the largest answer there can be: is the method vacuous?"""

from __future__ import annotations

from dataclasses import dataclass

from privlearn.erm.losses import Hinge, LossFacts
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.session.task import KernelTask
from privlearn.mechanisms.task import Task


@dataclass(frozen=True)
class PinpSizes:
    """The public numbers of a PINP session.

    Attributes
    ----------
    largest_answer : float
        No value of the learned function is larger, on any data.
    threshold : float
        How far the public guess may be from the private answer before PINP corrects it. It begins with the guess zero.
        A threshold above the largest answer means that only the test's own noise can lead to a correction.
    updates : int
        B: how often it may say so.
    answer_epsilon : float
        Paper mode: 1 over the scale of the Laplace noise on an answer (the paper's eps0).
    vacuous : bool
        True if even that noise is too small for it: whatever the data, the answers to 10,000 queries are all zero,
        except with probability 0.05. (In paper mode the noise reaches a quarter of the threshold, in tight mode half.)
    tight_threshold, tight_updates, tight_answer_noise, tight_test_noise, tight_vacuous
        The same in tight mode; the noise of an answer is Gaussian, that of a test has Laplace scales of
        ``tight_test_noise`` on the distance and half of it on the threshold.
    """

    largest_answer: float
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
    rows: int, regularization: float, epsilon: float, delta: float, *, loss: LossFacts | None = None
) -> PinpSizes:
    """The sizes of both modes for k(x, x) <= 1, as `mechanisms.pinp` calibrates them for an exact minimiser."""
    task = Task(loss or Hinge(), rows, 1, 1, regularization, 1e-10, "replace_one")
    facts = KernelTask(task, solver_distance=0.0)
    guarantee = Guarantee(epsilon, delta)
    paper, tight = PaperPINP.calibrate(facts, guarantee), TightPINP.calibrate(facts, guarantee)
    return PinpSizes(
        largest_answer=facts.norm_bound,
        threshold=paper.threshold,
        updates=paper.updates,
        answer_epsilon=1.0 / paper.answer_scale,
        vacuous=paper.is_vacuous,
        tight_threshold=tight.threshold,
        tight_updates=tight.updates,
        tight_answer_noise=tight.answer_scale,
        tight_test_noise=4.0 * facts.answer_sensitivity / tight.test_epsilon,
        tight_vacuous=tight.is_vacuous,
    )
