"""Statistics of a private table from noisy counts: the quality of a model, the columns, and the bounds of a schema.

`evaluation/` measures a model on private records, `description/` describes the columns of a table, and `discovery/`
estimates bounds and lists of values that a schema leaves open. Each reads the rows once, computes a public layout of
tables, charges the budget once and adds noise to every cell; everything else is post-processing of the noisy counts.
Shared: `layout.py` (tables and charge), `intervals.py` (intervals around what follows from counts), `page.py` (HTML).

May import everything up to `sessions`. Start with `evaluation/measuring.py`.
"""

from privlearn.statistics.description import Description, describe
from privlearn.statistics.discovery import discover
from privlearn.statistics.evaluation import Evaluation, evaluate

__all__ = ["Description", "Evaluation", "describe", "discover", "evaluate"]
