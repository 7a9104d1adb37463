"""Certified solvers of regularised empirical risk minimisation. They add no noise.

`solve.minimise` (binary losses), `multinomial.minimise_multinomial` and `kernel/` return a point together with a proven
bound on its distance from the exact minimiser, rounding errors included; mechanisms rely on that bound. `problem.py`
defines the problem and sums over rows, `objective.py` value and gradient, `newton.py` the directions, `descent.py` the
iteration and `certifiable.py` the tolerances that are reachable on every table. May import data and features; start
with `solve.py`. The arguments are in docs/theory/solver.md.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.solvers.certifiable import certified_distance
from privlearn.solvers.kernel.dual import certified_kernel_distance, default_gap, minimise_kernel
from privlearn.solvers.kernel.gap import min_kernel_gap
from privlearn.solvers.kernel.problem import KernelProblem, KernelSolution
from privlearn.solvers.losses import (
    LOSSES,
    ClippedSquare,
    Hinge,
    Huber,
    HuberHinge,
    Logistic,
    Loss,
    LossProperties,
    Multinomial,
    SmoothedHinge,
    loss_from_dict,
    loss_from_name,
    losses_of,
)
from privlearn.solvers.multinomial import minimise_multinomial
from privlearn.solvers.problem import Problem, Progress, Rows, Solution
from privlearn.solvers.solve import minimise

if TYPE_CHECKING:
    from privlearn.solvers.loss_checks import check_loss_properties
    from privlearn.solvers.objective import Objective
    from privlearn.solvers.summed import (
        MAX_PARTITION_ROWS,
        MAX_PARTITIONS,
        PartitionRows,
        check_partitions,
        minimise_summed,
        minimise_summed_multinomial,
        sums_in_order,
    )
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "LOSSES", "ClippedSquare", "Hinge", "Huber", "HuberHinge", "KernelProblem", "KernelSolution", "Logistic", "Loss",
    "LossProperties", "Multinomial", "Problem", "Progress", "Rows", "SmoothedHinge", "Solution", "certified_distance",
    "certified_kernel_distance", "default_gap", "loss_from_dict", "loss_from_name", "losses_of", "min_kernel_gap",
    "minimise", "minimise_kernel", "minimise_multinomial",
]  # fmt: skip
