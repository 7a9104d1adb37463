"""Regularised empirical risk minimisation; there is no privacy inside."""

from privlearn.erm.certifiable import certified_distance
from privlearn.erm.kernel.dual import certified_kernel_distance, default_gap, minimise_kernel
from privlearn.erm.kernel.gap import least_kernel_gap
from privlearn.erm.kernel.problem import KernelProblem, KernelSolution
from privlearn.erm.losses import (
    LOSSES,
    ClippedSquare,
    Hinge,
    Huber,
    HuberHinge,
    Logistic,
    Loss,
    LossFacts,
    Multinomial,
    SmoothedHinge,
    loss_from_dict,
    loss_from_name,
    losses_of,
)
from privlearn.erm.multinomial import minimise_multinomial
from privlearn.erm.problem import Problem, Progress, Solution
from privlearn.erm.solve import minimise

__all__ = [
    "LOSSES",
    "ClippedSquare",
    "Hinge",
    "Huber",
    "HuberHinge",
    "KernelProblem",
    "KernelSolution",
    "Logistic",
    "Loss",
    "LossFacts",
    "Multinomial",
    "Problem",
    "Progress",
    "SmoothedHinge",
    "Solution",
    "certified_distance",
    "certified_kernel_distance",
    "default_gap",
    "least_kernel_gap",
    "loss_from_dict",
    "loss_from_name",
    "losses_of",
    "minimise",
    "minimise_kernel",
    "minimise_multinomial",
]
