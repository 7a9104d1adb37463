"""Mechanisms over secure sums of several holders.

Start with `summed.py`, which defines the questions, the noise of each sum and what a sum costs. Then one file per
theorem: `noisy_descent.py`, `psgd.py` and `local_aggregation.py` train, `summed_counts.py` and `summed_moments.py`
release statistics. May import `mechanisms`, `accounting` and `solvers`; masks and messages are in `parties`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.mechanisms.summed.summed import (
        MAX_COEFFICIENT,
        Noise,
        NoisySum,
        NoisySums,
        Question,
        grid_ratio,
        pack,
        unpack,
    )
    from privlearn.mechanisms.summed.summed_moments import SummedMoments, even_shares
else:
    __getattr__ = export_late(__name__)
