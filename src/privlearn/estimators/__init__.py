"""The scikit-learn face."""

from privlearn.estimators.linear import PrivateLogisticRegression
from privlearn.estimators.regression import PrivateRegressor
from privlearn.estimators.svc import PrivateSVC

ESTIMATORS = (PrivateLogisticRegression, PrivateSVC)

__all__ = ["ESTIMATORS", "PrivateLogisticRegression", "PrivateRegressor", "PrivateSVC"]
