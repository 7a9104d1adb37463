"""Kernel machines: minimisers in the span of the records, with a certified duality gap.

Start with `problem.py` (the Gram matrix, its rounding), then `dual.py` and `gap.py` (what is certified); `newton.py`,
`hinge.py` and `multinomial.py` are the solvers of the three kinds of loss. May import `solvers` and what it may import;
the kernels themselves come from `features`. The argument is in docs/theory/kernel-machine.md.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.solvers.kernel.gap import WeightedLoss, gradient_gap, hinge_gap
    from privlearn.solvers.kernel.multinomial import minimise_kernel_multinomial
    from privlearn.solvers.kernel.problem import SignedGram
else:
    __getattr__ = export_late(__name__)
