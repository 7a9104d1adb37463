"""Estimators by the names that commands and files use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, did_you_mean
from privlearn.estimators.classifiers import PrivateLogisticRegression
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.regressor import PrivateRegressor
from privlearn.estimators.svc import PrivateSVC

MODELS: dict[str, Callable[..., PrivateEstimator]] = {
    "logistic": PrivateLogisticRegression,
    "svm": PrivateSVC,
    "regression": PrivateRegressor,
}


def model_for(schema: Schema | None) -> str:
    """Return the model for a schema's target: a regression for a number, else logistic regression."""
    is_number = schema is not None and schema.target is not None and schema.target.bounds is not None
    return "regression" if is_number else "logistic"


def make_estimator(model: str, settings: dict[str, Any], *, probability: bool = False) -> PrivateEstimator:
    """Return the estimator of that name; only the SVM takes ``probability``."""
    if model not in MODELS:
        hint = did_you_mean(model, MODELS)
        raise InvalidParameter(f"the model must be {' or '.join(MODELS)}, not {model}{hint}")
    if probability and MODELS[model] is not PrivateSVC:
        raise InvalidParameter(
            "probability is for the model svm: logistic always has probabilities, regression never"
        )
    return MODELS[model](**settings, **({"probability": True} if probability else {}))
