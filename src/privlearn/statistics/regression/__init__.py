"""Regression models for reading: coefficients with intervals and p-values, from noisy sums, for one charge.

Start with `measuring.py`. `formula.py` and `design.py` turn a formula into rows of numbers, `families.py` has the
models, `layout.py` decides which sums are released, `rows.py` computes them, `progress.py` and `estimates.py` derive
every number from them, and `page.py` shows the table.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.statistics.regression.estimates import Coefficient, Estimates
from privlearn.statistics.regression.forecast import WidthForecast, forecast_widths
from privlearn.statistics.regression.glm import PrivateGLM
from privlearn.statistics.regression.measuring import estimate

if TYPE_CHECKING:
    from privlearn.statistics.regression.design import Standardised, design_from_dict, design_of
    from privlearn.statistics.regression.estimates import (
        expected_outer,
        shrunk_moments,
        without_repulsion,
    )
    from privlearn.statistics.regression.formula import parse_formula
    from privlearn.statistics.regression.layout import read_request, regression_layout
    from privlearn.statistics.regression.page import forest_plot, write_page
    from privlearn.statistics.regression.rows import RegressionRows, read_cells
else:
    __getattr__ = export_late(__name__)


__all__ = ["Coefficient", "Estimates", "PrivateGLM", "WidthForecast", "estimate", "forecast_widths"]
