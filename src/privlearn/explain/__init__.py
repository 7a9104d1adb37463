"""What a released model says, and how surely: intervals, and effects of columns."""

from privlearn.explain.bands import Band, Intervals, intervals
from privlearn.explain.buying import curvature

__all__ = ["Band", "Intervals", "curvature", "intervals"]
