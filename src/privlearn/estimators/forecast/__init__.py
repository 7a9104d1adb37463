"""Forecasts from public numbers, before any budget is spent: will the signal survive the noise?

`plan` forecasts a fit and `forecast_session` an interactive session; both compare the exact noise of the mechanism
with the signal of a reference problem on synthetic rows (`stand_ins.py`, `reference.py`). `expected_gain.py` turns them
into the share of a model's gain that privacy costs, `expected_error.py` into an error. Imports estimators; used by the
command line, the server, parties and papers.
"""

from typing import TYPE_CHECKING

from privlearn.estimators.forecast.fit_forecast import Plan, plan
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.estimators.forecast.forecast import MAX_LOST, table
    from privlearn.estimators.forecast.reference import (
        LOG_ODDS_DEVIATION,
        TARGET_DEVIATION,
        Spectrum,
        reference_problem,
    )
    from privlearn.estimators.forecast.session_forecast import forecast_session
    from privlearn.estimators.forecast.stand_ins import stand_in_table, synthetic_table
else:
    __getattr__ = export_late(__name__)


__all__ = ["Plan", "plan"]
