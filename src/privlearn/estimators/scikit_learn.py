"""The border to scikit-learn: its protocol for estimators, and `check_callers`.

Importing scikit-learn takes longer than a fit of a small table, so the protocol is spelled out here as scikit-learn's
guide for developers describes it, and scikit-learn itself is imported when one of its tools asks.

`check_callers` refuses to be fitted inside tools of scikit-learn that would break the guarantee. scikit-learn does not
pass an estimator its caller, so the stack is inspected: best effort, against mistakes and not against malice.
Undetected are tools of packages that do not build on scikit-learn, steps applied before `fit`, and what is done with
the result afterwards (docs/how-to/scikit-learn.md).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

import numpy as np

from privlearn.errors import InvalidParameter


class BaseEstimator:
    """Parameters by name, tags and notebook display, as scikit-learn's tools expect them of an estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep`` also those of an estimator among them."""
        params = {name: getattr(self, name) for name in self._defaults()}
        for name, value in list(params.items()) if deep else ():
            if hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": part for inner, part in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, ``estimator__epsilon`` for one of an estimator among them."""
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            own, within, inner = name.partition("__")
            if own not in self._defaults():
                raise ValueError(
                    f"Invalid parameter {own!r} for estimator {type(self).__name__}. "
                    f"Valid parameters are: {sorted(self._defaults())}."
                )
            if within:
                nested.setdefault(own, {})[inner] = value
            else:
                setattr(self, own, value)
        for own, inner_params in nested.items():
            getattr(self, own).set_params(**inner_params)
        return self

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the constructor's parameters with their defaults."""
        parameters = inspect.signature(cls.__init__).parameters
        return {name: each.default for name, each in sorted(parameters.items()) if name != "self"}

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self._defaults()}
        changed = [
            f"{name}={_shorten(repr(given[name]))}"
            for name, default in self._defaults().items()
            if repr(given[name]) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """Return scikit-learn's display of estimators in notebooks."""
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def set_fit_request(self, *, sample_weight: bool | str | None) -> Self:
        """State whether scikit-learn's metadata routing passes ``sample_weight`` to `fit`."""
        return self._request("fit", sample_weight)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """State whether scikit-learn's metadata routing passes ``sample_weight`` to `score`."""
        return self._request("score", sample_weight)

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn's metadata routing passes to which method."""
        from sklearn.utils.metadata_routing import MetadataRequest

        stored = self.__dict__.get("_metadata_request")  # `clone` copies an attribute of this name
        if stored is not None:
            return stored
        requests = MetadataRequest(owner=self)
        for method in ("fit", "score"):
            if "sample_weight" in inspect.signature(getattr(self, method)).parameters:
                getattr(requests, method).add_request(param="sample_weight", alias=None)
        return requests

    def _request(self, method: str, alias: bool | str | None) -> Self:
        requests = self.get_metadata_routing()
        getattr(requests, method).add_request(param="sample_weight", alias=alias)
        self._metadata_request = requests
        return self


class ClassifierMixin:
    """Score and tags of a classifier."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict` on these rows."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))  # type: ignore[attr-defined]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type, tags.classifier_tags, tags.target_tags.required = (
            "classifier",
            ClassifierTags(),
            True,
        )
        return tags


class RegressorMixin:
    """Score and tags of a regression."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination of `predict` on these rows."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))  # type: ignore[attr-defined]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type, tags.regressor_tags, tags.target_tags.required = (
            "regressor",
            RegressorTags(),
            True,
        )
        return tags


def check_is_fitted(estimator: Any, attribute: str = "") -> None:
    """Raise scikit-learn's NotFittedError before `fit`."""
    state = vars(estimator)
    if attribute in state or (not attribute and any(name.endswith("_") and name[0] != "_" for name in state)):
        return
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
        "using this estimator."
    )


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Store number and names of an array's columns in `fit`; compare them later, with scikit-learn's messages."""
    if hasattr(X, "columns") or hasattr(X, "__dataframe__") or hasattr(estimator, "feature_names_in_"):
        from sklearn.utils.validation import validate_data

        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return
    columns = int((X if hasattr(X, "shape") else np.asarray(X)).shape[1])
    if reset:
        estimator.n_features_in_ = columns
    elif columns != estimator.n_features_in_:
        raise ValueError(
            f"X has {columns} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )


_SHOWN = 60


def _shorten(text: str) -> str:
    """Return the representation of a parameter on one line, long ones cut: public points may be a table."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


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
        if "sklearn.pipeline" in sys.modules and isinstance(caller, sys.modules["sklearn.pipeline"].Pipeline):
            _check_steps(caller, instead)
        module = str(frame.f_globals.get("__name__", ""))
        # A worker process of a search does not see the search itself, but the parameters that it tries.
        searching = module == _VALIDATION and frame.f_locals.get("parameters") is not None
        if module.startswith("sklearn.") and (searching or not _is_harmless(module)):
            raise InvalidParameter(
                f"{module} reads the rows itself or fits several models, which one certificate cannot cover. Fit the "
                "estimator alone, or use PrivateGridSearch for GridSearchCV and classes=[...] for OneVsRestClassifier."
                f"{instead}"
            )
        validating |= module == _VALIDATION
    if charging and validating:
        raise InvalidParameter(
            "cross-validation does not work with a ledger, because no ledger counts its exact scores. Split the rows "
            "with privlearn.split, fit on one part and use privlearn.evaluate on the other. Nothing was charged"
        )


def _check_steps(pipeline: Any, instead: str) -> None:
    for name, step in pipeline.steps[:-1]:
        if _reads_rows(step):
            raise InvalidParameter(
                f"the pipeline's step {name!r} is fitted on the rows, so one record would change the features of all "
                "others. State the columns' bounds in a schema, which scales them, or fit the step on public rows and "
                f"use FrozenEstimator(step).{instead}"
            )


def _reads_rows(step: Any) -> bool:
    """Return whether a step is fitted on rows; not if it is frozen, tagged as stateless, or made of such parts."""
    from sklearn.compose import ColumnTransformer  # slow to import: only behind a pipeline
    from sklearn.frozen import FrozenEstimator
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import FeatureUnion, Pipeline
    from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer
    from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
    from sklearn.utils import get_tags

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
        case RBFSampler(gamma=size, random_state=seed) if type(step) is RBFSampler:
            return isinstance(size, str) or not isinstance(seed, int)
        case (
            GaussianRandomProjection(n_components=size, random_state=seed)
            | SparseRandomProjection(n_components=size, random_state=seed)
        ) if type(step) in (GaussianRandomProjection, SparseRandomProjection):
            # They draw directions by the number of columns; only "auto" looks at the number of rows.
            return isinstance(size, str) or not isinstance(seed, int)
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
