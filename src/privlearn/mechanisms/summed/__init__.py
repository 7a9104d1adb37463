"""Mechanisms over secure sums of several holders.

Start with `summed.py`, which defines the questions, the noise of each sum and what a sum costs. Then one file per
theorem: `noisy_descent.py`, `psgd.py` and `local_aggregation.py` train, `summed_counts.py` and `summed_moments.py`
release statistics. May import `mechanisms`, `accounting` and `solvers`; masks and messages are in `parties`.
"""
