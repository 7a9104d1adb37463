"""Measure a model on private records: noisy histograms of its scores, and every number that follows from them.

Start with `measuring.py`. `subject.py` turns releases, scikit-learn models and columns of scores into one form,
`layout.py` decides which tables are counted, `scored_rows.py` counts, `metrics.py` computes rates from counts,
`evaluation.py` is the result and `page.py` its HTML page.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.statistics.evaluation.evaluation import Evaluation, GroupResult
from privlearn.statistics.evaluation.measuring import evaluate, read_cells
from privlearn.statistics.intervals import Estimate

if TYPE_CHECKING:
    from privlearn.statistics.evaluation.page import page_part, write_page
    from privlearn.statistics.evaluation.subject import subject_of
else:
    __getattr__ = export_late(__name__)


__all__ = ["Estimate", "Evaluation", "GroupResult", "evaluate", "read_cells"]
