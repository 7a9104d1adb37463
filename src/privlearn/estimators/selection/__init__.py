"""Private grid search: the choice among candidates, the score it reveals and the fit are charged once.

`search.py` has the estimator, `candidates.py` the grid and the fits on shared rows, `methods.py` the ways to choose,
which run the mechanisms of `mechanisms/search`. Imports estimators and mechanisms. Start at `PrivateGridSearch.fit`.
"""

from typing import TYPE_CHECKING

from privlearn.estimators.selection.search import PrivateGridSearch
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.estimators.selection.candidates import Candidates
    from privlearn.estimators.selection.methods import split_persons
else:
    __getattr__ = export_late(__name__)


__all__ = ["PrivateGridSearch"]
