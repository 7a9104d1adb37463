"""Estimate privately what a draft of a schema marks with ``estimate``: bounds of numbers and lists of values.

Start with `measuring.py` (one table, one holder); `summed.py` does the same for several holders, from one noisy sum.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.statistics.discovery.measuring import MarkedColumns, discover

if TYPE_CHECKING:
    from privlearn.statistics.discovery.summed import DiscoveredSchema
else:
    __getattr__ = export_late(__name__)


__all__ = ["MarkedColumns", "discover"]
