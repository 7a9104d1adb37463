"""The scikit-learn face."""

from privlearn.estimators.linear import PrivateLogisticRegression, PrivateSVC

ESTIMATORS = (PrivateLogisticRegression, PrivateSVC)

__all__ = ["ESTIMATORS", "PrivateLogisticRegression", "PrivateSVC"]
