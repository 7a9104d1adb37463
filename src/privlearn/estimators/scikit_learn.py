"""scikit-learn's base classes with the types that it does not state, so that a misspelt attribute is a type error.

mypy assumes that a class with an untyped base has every attribute. So type checking sees the stubs below, and Python
imports scikit-learn's own classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __getstate__(self) -> object: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """Accuracy."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin:
        """Coefficient of determination."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class MetaEstimatorMixin:
        """Holds another estimator."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "MetaEstimatorMixin", "RegressorMixin"]
