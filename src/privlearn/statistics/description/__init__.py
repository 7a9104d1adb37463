"""Describe a private table: counts, histograms, quantiles, missing shares and correlations, for one charge.

Start with `measuring.py`, which reads the rows. `layout.py` decides which tables are counted; `description.py` derives
every number from the noisy tables, and `page.py` draws them.
"""

from privlearn.statistics.description.description import Description
from privlearn.statistics.description.measuring import describe

__all__ = ["Description", "describe"]
