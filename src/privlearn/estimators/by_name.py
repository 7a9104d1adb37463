"""Estimators by the names that people write in commands and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, did_you_mean
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.linear import PrivateLogisticRegression
from privlearn.estimators.regression import PrivateRegressor
from privlearn.estimators.svc import PrivateSVC

MODELS: dict[str, Callable[..., PrivateLinearModel]] = {
    "logistic": PrivateLogisticRegression,
    "svm": PrivateSVC,
    "regression": PrivateRegressor,
}


def model_for(schema: Schema | None) -> str:
    """What the target asks for: a regression if it is a number, else classes."""
    is_number = schema is not None and schema.target is not None and schema.target.bounds is not None
    return "regression" if is_number else "logistic"


def make_estimator(model: str, settings: dict[str, Any], *, probability: bool = False) -> PrivateLinearModel:
    """The estimator of that name; ``probability`` is for the one whose probabilities have to be bought."""
    if model not in MODELS:
        meant = did_you_mean(model, MODELS)
        raise InvalidParameter(f"the model must be {' or '.join(MODELS)}, not {model}{meant}")
    if probability and MODELS[model] is not PrivateSVC:
        raise InvalidParameter(
            "probability goes with the model svm: logistic has probabilities, and a regression none"
        )
    return MODELS[model](**settings, **({"probability": True} if probability else {}))
