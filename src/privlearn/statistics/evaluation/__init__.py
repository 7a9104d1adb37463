"""Measure a model on private records: noisy histograms of its scores, and every number that follows from them.

Start with `measuring.py`. `subject.py` turns releases, scikit-learn models and columns of scores into one form,
`layout.py` decides which tables are counted, `scored_rows.py` counts, `metrics.py` computes rates from counts,
`evaluation.py` is the result and `page.py` its HTML page.
"""

from privlearn.statistics.evaluation.evaluation import Evaluation, GroupResult
from privlearn.statistics.evaluation.measuring import evaluate
from privlearn.statistics.intervals import Estimate

__all__ = ["Estimate", "Evaluation", "GroupResult", "evaluate"]
