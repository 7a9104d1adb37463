"""scikit-learn's own checks of its protocol, as parameters of a test."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

_QUIET = "the conversion error that scikit-learn expects would quote the offending cell; ours never does"
_ALL_ROWS = "without a norm_bound, rows of weight 0 bound the norm too"

OF_ALL = {
    "check_dtype_object": _QUIET,
    "check_all_zero_sample_weights_error": "weights are private: no refusal depends on them",
    "check_sample_weight_equivalence_on_dense_data": _ALL_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": _ALL_ROWS,
}
"""Checks that no estimator passes, and why."""

OF_WEIGHTS = dict.fromkeys(
    (
        "check_sample_weights_list",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ),
    "a private fit needs the public cap max_weight",
)


def with_checks(
    estimators: Iterable[Any], cannot_pass: Callable[[Any], dict[str, str]]
) -> pytest.MarkDecorator:
    """Return one test for each check; those that cannot pass are skipped for the stated reason.

    scikit-learn's `parametrize_with_checks` runs them and throws the result away, which took longer than all others.
    """
    with warnings.catch_warnings():  # the estimators follow the protocol without scikit-learn's base class
        warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base.BaseEstimator`")
        pairs = [
            pair
            for estimator in estimators
            for pair in estimator_checks_generator(
                estimator, expected_failed_checks=cannot_pass(estimator), mark="skip"
            )
        ]
    return pytest.mark.parametrize(("estimator", "check"), pairs, ids=_name)


def _name(part: Any) -> str:
    check = getattr(part, "__wrapped__", part)  # of a check that is skipped
    return check.func.__name__ if hasattr(check, "func") else re.sub(r"\s", "", str(part))
