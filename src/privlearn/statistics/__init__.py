"""Statistics of a private table from noisy sums: the quality of a model, columns, regression tables, bounds.

`evaluation/` measures a model on private records, `description/` describes the columns of a table, `regression/`
estimates coefficients with intervals, and `discovery/` estimates bounds and lists that a schema leaves open.
Each reads the rows once, computes a public layout of
tables, charges the budget once and adds noise to every cell; everything else is post-processing of the noisy counts.
Shared: `layout.py` (tables and charge), `intervals.py` (intervals around what follows from counts), `page.py` (HTML).

May import everything up to `sessions`. Start with `evaluation/measuring.py`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.statistics.description import Description, describe
from privlearn.statistics.discovery import discover
from privlearn.statistics.evaluation import Evaluation, evaluate
from privlearn.statistics.regression import Estimates, PrivateGLM, estimate

if TYPE_CHECKING:
    from privlearn.statistics.intervals import (
        NO_NOISE,
        Estimate,
        NoisyTable,
        estimates,
        largest_share,
        magnitude,
        nearest_counts,
        quotient,
        root,
    )
    from privlearn.statistics.layout import CountsLayout
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "Description", "Estimates", "Evaluation", "PrivateGLM", "describe", "discover", "estimate", "evaluate",
]  # fmt: skip
