"""Every public class with a `fit` looks at its callers before it reads a row; a new class is held to it at once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import privlearn
from privlearn import (
    Guarantee,
    InteractivePredictor,
    InvalidParameter,
    KernelLearner,
    Ledger,
    PrivateGridSearch,
    PrivateLogisticRegression,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
CLASSES: dict[str, Any] = {"norm_bound": 3.0, "classes": [0, 1]}
NUMBERS: dict[str, Any] = {"norm_bound": 3.0, "target_bounds": (0.0, 1.0)}


def public_learners() -> dict[str, type]:
    """Return every class of privlearn with a `fit` that can be constructed, from all its modules."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(privlearn.__path__, "privlearn."):
        if ".storage.migrations" in module.name or module.name.endswith("__main__"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some modules are deprecated
                members = list(vars(importlib.import_module(module.name)).values())
        except ImportError:  # an extra that is not installed
            continue
        own = [each for each in members if inspect.isclass(each) and each.__module__.startswith("privlearn.")]
        fitted = [
            each for each in own if callable(getattr(each, "fit", None)) and not inspect.isabstract(each)
        ]
        found |= {each.__qualname__: each for each in fitted}
    return {name: kind for name, kind in found.items() if not name.startswith("_")}


LEARNERS = public_learners()


def made(kind: type) -> Any:
    """Return an instance with what its parameters need to be fitted on the rows above."""
    names = set(inspect.signature(kind).parameters)
    usual: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-4}
    usual |= CLASSES if "classes" in names else NUMBERS
    usual |= {
        "estimator": PrivateLogisticRegression(**CLASSES, mechanism="output"),
        "param_grid": {"regularization": [0.1, 1.0]},
        "formula": "y ~ x",
    }
    if "formula" in names:
        usual["schema"] = {"name": "v", "columns": {"x": {"type": "number", "lower": 0, "upper": 1}}}
    return kind(**{name: value for name, value in usual.items() if name in names})


def test_the_known_ones_are_found() -> None:
    exported = {
        name for name in privlearn.__all__ if callable(getattr(getattr(privlearn, name), "fit", None))
    }
    assert exported == {
        "KernelLearner", "PrivateGLM", "PrivateGridSearch", "PrivateLogisticRegression", "PrivateRegressor",
        "PrivateSVC"
    }  # fmt: skip
    assert exported <= LEARNERS.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", LEARNERS.values(), ids=LEARNERS)
def test_none_is_fitted_behind_a_step_that_reads_the_rows(kind: type) -> None:
    with pytest.raises(InvalidParameter, match="is fitted on the rows, so one record"):
        make_pipeline(StandardScaler(), made(kind)).fit(X, Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", LEARNERS.values(), ids=LEARNERS)
def test_none_is_fitted_by_a_search(kind: type) -> None:
    grid = {"epsilon": [1.0, 2.0]} if hasattr(made(kind), "epsilon") else {"gamma": [1.0, 2.0]}
    with pytest.raises(ValueError, match=r"sklearn\..* reads the rows itself"):
        GridSearchCV(made(kind), grid, cv=2, scoring=lambda *_: 0.0, error_score="raise").fit(X, Y)


def test_a_session_behind_a_fitted_scaler_has_no_learner(tmp_path: Path) -> None:
    guarantee = Guarantee(1.0, 1e-6)
    learner = KernelLearner(**CLASSES, guarantee=guarantee)
    with pytest.raises(InvalidParameter, match="is fitted on the rows") as refused:
        make_pipeline(StandardScaler(), learner).fit(X, Y)
    assert "random_state" not in str(refused.value)  # it has none
    sound = make_pipeline(Normalizer(), learner).fit(X, Y)[-1]
    with InteractivePredictor(
        sound, guarantee, state=tmp_path / "state", accept_weak_privacy=True
    ) as session:
        assert session.certificate.guarantee == guarantee


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("jobs", [None, 2], ids=["here", "in workers"])
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateGridSearch])
def test_cross_validation_with_a_ledger_is_refused_before_anything_is_charged(
    kind: type, jobs: int | None, tmp_path: Path
) -> None:
    """It would swallow `BudgetExceeded`: a budget for two of three folds gave NaN for the third."""
    ledger = Ledger.create(tmp_path / "budgets.db", "people", Guarantee(4.0, 0.1))
    for validate in (cross_val_score, cross_validate):
        with pytest.raises(ValueError, match="cross-validation does not work with a ledger"):
            validate(made(kind).set_params(ledger=ledger), X, Y, cv=3, n_jobs=jobs)
    assert ledger.statement().entries == ()
