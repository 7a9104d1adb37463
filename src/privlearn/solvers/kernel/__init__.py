"""Kernel machines: minimisers in the span of the records, with a certified duality gap.

Start with `problem.py` (the Gram matrix, its rounding), then `dual.py` and `gap.py` (what is certified); `newton.py`,
`hinge.py` and `multinomial.py` are the solvers of the three kinds of loss. May import `solvers` and what it may import;
the kernels themselves come from `features`. The argument is in docs/theory/kernel-machine.md.
"""
