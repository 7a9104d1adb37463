"""The border to scikit-learn: its base classes with types, and `check_callers`.

mypy assumes that a class with an untyped base has every attribute. So type checking sees the stubs below, and Python
imports scikit-learn's own classes.

`check_callers` refuses to be fitted inside tools of scikit-learn that would break the guarantee. scikit-learn does not
pass an estimator its caller, so the stack is inspected: best effort, against mistakes and not against malice.
Undetected are tools of packages that do not build on scikit-learn, steps applied before `fit`, and what is done with
the result afterwards (docs/how-to/scikit-learn.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer
from sklearn.utils import get_tags

from privlearn.errors import InvalidParameter

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

__all__ = ["BaseEstimator", "ClassifierMixin", "MetaEstimatorMixin", "RegressorMixin", "check_callers"]

_VALIDATION = "sklearn.model_selection._validation"
_HARMLESS = ("sklearn.base", "sklearn.utils", "sklearn.pipeline", _VALIDATION)
"""A pipeline's steps are judged one by one, and cross-validation without a ledger shows scores, as `score` does; the
others only pass calls on."""


def check_callers(*, charging: bool = False, seedable: bool = True) -> None:
    """Raise if `fit` is called by a tool of scikit-learn that also reads the rows, or fits several models.

    Every public class with a `fit` calls this before it reads a row (tests/estimators/test_callers_contract.py).

    Parameters
    ----------
    charging : bool, default=False
        Whether the fit is charged to a ledger. Then cross-validation is refused, too: it turns a `BudgetExceeded` into
        a score of NaN, and shows exact scores that no ledger counts.
    seedable : bool, default=True
        Whether the estimator takes a ``random_state`` for experiments.
    """
    instead = " For an experiment on public rows give it a random_state" if seedable else ""
    validating = False
    for frame in _frames(sys._getframe(1)):
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline):
            _check_steps(caller, instead)
        module = str(frame.f_globals.get("__name__", ""))
        # A worker process of a search does not see the search itself, but the parameters that it tries.
        searching = module == _VALIDATION and frame.f_locals.get("parameters") is not None
        if module.startswith("sklearn.") and (searching or not _is_harmless(module)):
            raise InvalidParameter(
                f"fit is called by {module}, which reads the rows itself or fits several models, and no certificate "
                "would count that: fit the estimator alone. PrivateGridSearch takes the place of GridSearchCV, and "
                f"classes=[...] that of OneVsRestClassifier.{instead}"
            )
        validating |= module == _VALIDATION
    if charging and validating:
        raise InvalidParameter(
            "cross-validation does not work with a ledger: it shows exact scores that no ledger counts, and it turns "
            "an exceeded budget into a score of NaN. Split the rows once with privlearn.split, fit on one part and "
            "use privlearn.evaluate on the other. Nothing was charged"
        )


def _check_steps(pipeline: Pipeline, instead: str) -> None:
    for name, step in pipeline.steps[:-1]:
        if _reads_rows(step):
            raise InvalidParameter(
                f"the pipeline's step {name!r} is fitted on the rows before this estimator: one record changes "
                "the features of all others, and no guarantee would hold. Put the columns' bounds into a schema, "
                "which scales them; or fit the step on public rows and put FrozenEstimator(step) in its place."
                f"{instead}"
            )


def _reads_rows(step: Any) -> bool:
    """Return whether a step is fitted on rows; not if it is frozen, tagged as stateless, or made of such parts."""
    if step is None or isinstance(step, str | FrozenEstimator):
        return False
    # Exact types: a subclass may read rows in its `fit`.
    match step:
        case Pipeline(steps=steps) if type(step) is Pipeline:
            return any(_reads_rows(part) for _, part in steps)
        case FeatureUnion(transformer_list=parts) if type(step) is FeatureUnion:
            return any(_reads_rows(part) for _, part in parts)
        case ColumnTransformer(transformers=parts) if type(step) is ColumnTransformer:
            # A function that selects columns, and transformers of what is left over, see the table.
            chosen = any(callable(columns) for _, _, columns in parts) or not isinstance(step.remainder, str)
            return chosen or any(_reads_rows(part) for _, part, _ in parts)
        case PolynomialFeatures() if type(step) is PolynomialFeatures:
            return False
        case SplineTransformer(knots=knots) if type(step) is SplineTransformer:
            return isinstance(knots, str)
        case OneHotEncoder() if type(step) is OneHotEncoder:
            # An unknown category must not raise, and counts of categories must not decide.
            fixed = not isinstance(step.categories, str) and step.handle_unknown == "ignore"
            return not (fixed and step.min_frequency is None and step.max_categories is None)
    try:
        return bool(get_tags(step).requires_fit)
    except AttributeError:  # the step has no tags
        return True


def _is_harmless(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _HARMLESS)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
