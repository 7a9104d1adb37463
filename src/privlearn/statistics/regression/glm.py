"""`PrivateGLM`: a regression model for reading, in the manner of an estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from privlearn.budget.charge import Budget
from privlearn.data.schema.schema import SchemaLike
from privlearn.errors import InvalidParameter
from privlearn.estimators.scikit_learn import BaseEstimator, check_callers
from privlearn.statistics.intervals import LEVEL
from privlearn.statistics.regression.estimates import Estimates
from privlearn.statistics.regression.forecast import WidthForecast, forecast_widths
from privlearn.statistics.regression.measuring import estimate

if TYPE_CHECKING:
    import pandas as pd


class PrivateGLM(BaseEstimator):
    """A generalised linear model whose coefficients come with confidence intervals and p-values.

    It is made for reading: few terms, no regularization, intervals that account for sampling and noise. For
    predictions, `PrivateLogisticRegression` and `PrivateRegressor` are more accurate.

    Parameters
    ----------
    formula : str
        Such as ``"readmitted ~ age + sex + age:smoker"``.
    schema : Schema, dict or path
    epsilon : float
    delta : float
        Above 0: the noise is Gaussian.
    family : {"logistic", "ordinal", "linear", "poisson"}, optional
        By default logistic for two classes, ordinal for ordered values and linear for a number.
    exposure : str, optional
        For counts: the column of the time or population at risk.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``.
    ledger : Ledger, optional
    accept_weak_privacy : bool, default=False
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure random bits.

    Attributes
    ----------
    estimates_ : Estimates
        Certified table of the last `fit`; it can be saved and verified.
    """

    def __init__(
        self,
        formula: str,
        schema: SchemaLike,
        *,
        epsilon: float,
        delta: float,
        family: str | None = None,
        exposure: str | None = None,
        neighbours: str = "replace_one",
        expected_records: int | None = None,
        ledger: Budget | None = None,
        accept_weak_privacy: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.formula = formula
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.family = family
        self.exposure = exposure
        self.neighbours = neighbours
        self.expected_records = expected_records
        self.ledger = ledger
        self.accept_weak_privacy = accept_weak_privacy
        self.random_state = random_state

    def plan(self, records: int, rate: float | None = None) -> WidthForecast:
        """Return how wide intervals will be for a number of records or persons; reads no data and costs nothing.

        ``rate`` is the approximate share of a logistic outcome's second class, from public knowledge.
        """
        return forecast_widths(
            self.formula,
            self.schema,
            records,
            epsilon=self.epsilon,
            delta=self.delta,
            family=self.family,
            exposure=self.exposure,
            neighbours=self.neighbours,
            rate=rate,
        )

    def fit(self, table: Any, y: None = None) -> Self:
        """Touch the data: estimate the model, for one charge; see `privlearn.estimate`.

        ``y`` is there for scikit-learn's tools, which are refused. The outcome is a column of the table.
        """
        check_callers(charging=self.ledger is not None)
        if y is not None:
            raise InvalidParameter("the outcome is a column of the table, named in the formula. Leave out y.")
        self.estimates_ = estimate(
            table,
            self.schema,
            self.formula,
            epsilon=self.epsilon,
            delta=self.delta,
            family=self.family,
            exposure=self.exposure,
            neighbours=self.neighbours,
            expected_records=self.expected_records,
            ledger=self.ledger,
            accept_weak_privacy=self.accept_weak_privacy,
            random_state=self.random_state,
        )
        return self

    def summary(self, level: float = LEVEL) -> str:
        """Return the table as text."""
        return self._estimates().summary(level)

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """Return the table as a pandas data frame."""
        return self._estimates().to_frame(level)

    def _estimates(self) -> Estimates:
        if not hasattr(self, "estimates_"):
            raise InvalidParameter("the model has no estimates yet. Call fit(table) first.")
        return self.estimates_
