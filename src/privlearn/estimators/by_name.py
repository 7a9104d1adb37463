"""Estimators by the names that people write in commands and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privlearn.errors import InvalidParameter
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.linear import PrivateLogisticRegression
from privlearn.estimators.regression import PrivateRegressor
from privlearn.estimators.svc import PrivateSVC

MODELS: dict[str, Callable[..., PrivateLinearModel]] = {
    "logistic": PrivateLogisticRegression,
    "svm": PrivateSVC,
    "regression": PrivateRegressor,
}


def make_estimator(
    model: str, settings: dict[str, Any], kernel_settings: dict[str, Any]
) -> PrivateLinearModel:
    """The estimator of that name; the second settings are for those that take a kernel."""
    if model not in MODELS:
        raise InvalidParameter(f"the model must be {' or '.join(MODELS)}, not {model}")
    if model != "logistic":
        return MODELS[model](**settings, **kernel_settings)
    if kernel_settings["kernel"] != "linear" or kernel_settings.get("public_points") is not None:
        raise InvalidParameter("a kernel and public points go with the model svm or regression")
    return MODELS[model](**settings)
