"""Explanations of a released model: intervals, effects of columns, contributions to one prediction, refinement.

All but `curvature` use released numbers only and cost nothing; `curvature` reads the records again, with noise, and
charges the ledger. `uncertainty.py` has the theory of intervals, `column_effects.py` the effects; `drawings.py`,
`page.py` and `plot.py` show them. May import release, mechanisms and estimators. Start at `effects`.
"""

from typing import TYPE_CHECKING

from privlearn.explain.bands import Band, Intervals, intervals
from privlearn.explain.column_effects import ColumnEffect, Effects, PairEffect, effects
from privlearn.explain.one_prediction import Contributions, contributions
from privlearn.explain.private_curvature import curvature
from privlearn.explain.refining import refine
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.explain.drawings import pair_figure
    from privlearn.explain.simulated_errors import symmetric_noise
    from privlearn.explain.uncertainty import Uncertainty
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "Band", "ColumnEffect", "Contributions", "Effects", "Intervals", "PairEffect", "contributions", "curvature",
    "effects", "intervals", "refine",
]  # fmt: skip
