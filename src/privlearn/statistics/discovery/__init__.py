"""Estimate privately what a draft of a schema marks with ``estimate``: bounds of numbers and lists of values.

Start with `measuring.py` (one table, one holder); `summed.py` does the same for several holders, from one noisy sum.
"""

from privlearn.statistics.discovery.measuring import discover

__all__ = ["discover"]
