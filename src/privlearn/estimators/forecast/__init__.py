"""Forecasts from public numbers, before any budget is spent: will the signal survive the noise?

`plan` forecasts a fit and `forecast_session` an interactive session; both compare the exact noise of the mechanism
with the margins of a reference problem on synthetic rows (`stand_ins.py`, `reference.py`). `expected_error.py` turns
them into an error. Imports estimators; used by the command line, the server, parties and papers.
"""

from privlearn.estimators.forecast.fit_forecast import Plan, plan

__all__ = ["Plan", "plan"]
