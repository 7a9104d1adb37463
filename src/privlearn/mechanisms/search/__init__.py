"""Private selection among candidates, all under one guarantee.

Start with `search.py`, which defines what a candidate is and what all searches share; the other files are one theorem
each: all candidates (`every_candidate.py`), disjoint parts of the records (`partition.py`), a random number of trials
(`random_stopping.py`), and a choice on public records (`public_tuning.py`). May import `mechanisms` and `accounting`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.mechanisms.search.partition import scatter_rows, split_rows
    from privlearn.mechanisms.search.search import SCORE_SHARE, SearchResult
else:
    __getattr__ = export_late(__name__)
