"""scikit-learn's base classes with the types that it does not state, so that a misspelt attribute is a type error.

mypy takes a class whose base it cannot see to have every attribute. So it is shown what is used of these bases, and
Python gets scikit-learn's own.
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
