"""scikit-learn's own checks of its protocol, as parameters of a test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

QUIET = "the conversion error that scikit-learn expects would quote the offending cell; ours never does"


def with_checks(
    estimators: Iterable[Any], cannot_pass: Callable[[Any], dict[str, str]]
) -> pytest.MarkDecorator:
    """One test for each check; those that cannot pass are skipped for the stated reason.

    scikit-learn's `parametrize_with_checks` runs them and throws the result away, which took longer than all others.
    """
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
