"""Who calls `fit`: inside most of scikit-learn's tools a promise about the rows would not hold.

scikit-learn tells an estimator nothing about who fits it, so the calls under way are looked at: best effort, against
mistakes and not against malice. Not seen are tools of other packages that do not build on scikit-learn's, steps that
were applied before `fit` was called, and what is done with the result afterwards (docs/how-to/scikit-learn.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from privlearn.errors import InvalidParameter

_VALIDATION = "sklearn.model_selection._validation"
_HARMLESS = ("sklearn.base", "sklearn.utils", "sklearn.pipeline", _VALIDATION)
"""A pipeline's steps are judged one by one, and cross-validation shows scores, as `score` does; the others only pass
calls on."""


def check_callers() -> None:
    """Refuse to be fitted by a tool of scikit-learn that reads the rows besides, or fits more than it states."""
    for frame in _frames(sys._getframe(1)):
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline):
            _check_steps(caller)
        module = str(frame.f_globals.get("__name__", ""))
        # A worker process of a search does not see the search itself, but the parameters that it tries.
        searching = module == _VALIDATION and frame.f_locals.get("parameters") is not None
        if module.startswith("sklearn.") and (searching or not _is_harmless(module)):
            raise InvalidParameter(
                f"fit is called by {module}, which reads the rows itself or fits several models, and no certificate "
                "would count that: fit the estimator alone. PrivateGridSearch takes the place of GridSearchCV, and "
                "classes=[...] that of OneVsRestClassifier. For an experiment on public rows give it a random_state"
            )


def _check_steps(pipeline: Pipeline) -> None:
    for name, step in pipeline.steps[:-1]:
        if _reads_rows(step):
            raise InvalidParameter(
                f"the pipeline's step {name!r} is fitted on the rows before this estimator: one record changes "
                "everybody's features, and no promise would hold. Put the columns' bounds into a schema, which scales "
                "them; or fit the step on public rows and put FrozenEstimator(step) in its place. For an experiment on "
                "public rows give the estimator a random_state"
            )


def _reads_rows(step: Any) -> bool:
    """Whether a step is fitted; `FrozenEstimator` is not, and nor is what scikit-learn's tags call stateless."""
    if step is None or isinstance(step, str | FrozenEstimator):
        return False
    try:
        return bool(get_tags(step).requires_fit)
    except AttributeError:  # it has no tags
        return True


def _is_harmless(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _HARMLESS)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
