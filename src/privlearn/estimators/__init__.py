"""Private estimators with scikit-learn's protocol, their search, forecast, and the learner of sessions.

Three ideas: an estimator holds parameters (`learner.py`, `estimator.py` and one file per estimator); a `Fit` holds the
steps read, calibrate, charge, solve, release (`fit.py`); what varies between classes and numbers, or between kernels,
is a value that they are composed of (`target_readers.py`, `kernel_features.py`).
May import data, features, solvers, mechanisms, release and budget. Start reading at `PrivateEstimator.fit`.
"""

from typing import TYPE_CHECKING

from privlearn.estimators.classifiers import PrivateLogisticRegression
from privlearn.estimators.cluster.rows import Cluster
from privlearn.estimators.kernel_learner import KernelLearner
from privlearn.estimators.regressor import PrivateRegressor
from privlearn.estimators.svc import PrivateSVC
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.estimators.calibration import calibrate_mechanism, default_regularization
    from privlearn.estimators.fit import Fit
    from privlearn.estimators.fit_statistics import Centrable, Requests
    from privlearn.estimators.memory_oracle import MemoryOracle
    from privlearn.estimators.training_rows import ClassTargets, NumberTargets, Targets, TrainingRows
else:
    __getattr__ = export_late(__name__)


ESTIMATORS = (PrivateLogisticRegression, PrivateSVC)
"""The classifiers."""

__all__ = [
    "ESTIMATORS", "Cluster", "KernelLearner", "PrivateLogisticRegression", "PrivateRegressor", "PrivateSVC",
]  # fmt: skip
