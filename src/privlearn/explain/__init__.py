"""What a released model says, and how surely: intervals, effects of columns, contributions to one prediction."""

from privlearn.explain.bands import Band, Intervals, intervals
from privlearn.explain.buying import curvature
from privlearn.explain.column_effects import ColumnEffect, Effects, PairEffect, effects
from privlearn.explain.one_prediction import Contributions, contributions
from privlearn.explain.refining import refine

__all__ = [
    "Band",
    "ColumnEffect",
    "Contributions",
    "Effects",
    "Intervals",
    "PairEffect",
    "contributions",
    "curvature",
    "effects",
    "intervals",
    "refine",
]
