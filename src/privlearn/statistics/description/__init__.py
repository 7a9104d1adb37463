"""Describe a private table: counts, histograms, quantiles, missing shares and correlations, for one charge.

Start with `measuring.py`, which reads the rows. `layout.py` decides which tables are counted; `description.py` derives
every number from the noisy tables, `cross_table.py` shows pairs of columns, `hypotheses.py` tests associations, and
`page.py` draws them.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.statistics.description.cross_table import CrossTable, format_count
from privlearn.statistics.description.description import Description
from privlearn.statistics.description.measuring import describe, measure, read_cells

if TYPE_CHECKING:
    from privlearn.statistics.description.hypotheses import (
        CountNoise,
        HypothesisTest,
        difference_test,
        independence_test,
    )
    from privlearn.statistics.description.layout import description_layout
    from privlearn.statistics.description.page import write_page
else:
    __getattr__ = export_late(__name__)


__all__ = ["CrossTable", "Description", "describe", "format_count", "measure", "read_cells"]
