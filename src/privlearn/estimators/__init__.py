"""The scikit-learn face."""

from privlearn.estimators.cluster.rows import Cluster
from privlearn.estimators.kernel_learner import KernelLearner
from privlearn.estimators.linear import PrivateLogisticRegression
from privlearn.estimators.regression import PrivateRegressor
from privlearn.estimators.svc import PrivateSVC

ESTIMATORS = (PrivateLogisticRegression, PrivateSVC)
"""The classifiers."""

__all__ = [
    "ESTIMATORS",
    "Cluster",
    "KernelLearner",
    "PrivateLogisticRegression",
    "PrivateRegressor",
    "PrivateSVC",
]
