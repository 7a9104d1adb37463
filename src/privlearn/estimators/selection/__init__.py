"""Private grid search: the choice among candidates, the score it reveals and the fit are charged once.

`search.py` has the estimator, `candidates.py` the grid and the fits on shared rows, `methods.py` the ways to choose,
which run the mechanisms of `mechanisms/search`. Imports estimators and mechanisms. Start at `PrivateGridSearch.fit`.
"""

from privlearn.estimators.selection.search import PrivateGridSearch

__all__ = ["PrivateGridSearch"]
