"""Regression models for reading: coefficients with intervals and p-values, from noisy sums, for one charge.

Start with `measuring.py`. `formula.py` and `design.py` turn a formula into rows of numbers, `families.py` has the
models, `layout.py` decides which sums are released, `rows.py` computes them, `progress.py` and `estimates.py` derive
every number from them, and `page.py` shows the table.
"""

from privlearn.statistics.regression.estimates import Coefficient, Estimates
from privlearn.statistics.regression.forecast import WidthForecast, forecast_widths
from privlearn.statistics.regression.glm import PrivateGLM
from privlearn.statistics.regression.measuring import estimate

__all__ = ["Coefficient", "Estimates", "PrivateGLM", "WidthForecast", "estimate", "forecast_widths"]
