"""Inside scikit-learn's tools: what keeps its promise is fitted, what would break it is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from privlearn import (
    Guarantee,
    InvalidParameter,
    Ledger,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
)

Tool = Callable[[Any], Any]
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
Y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
GRID = {"regularization": [0.01, 0.1]}


def private(**changed: Any) -> PrivateLogisticRegression:
    usual: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-4, "norm_bound": 3.0, "classes": [0, 1]}
    return PrivateLogisticRegression(**usual | changed)


TOOLS: dict[str, Tool] = {
    "GridSearchCV": lambda model: GridSearchCV(model, GRID, cv=2),
    "GridSearchCV of a pipeline": lambda model: GridSearchCV(
        make_pipeline(Normalizer(), model), {"privatelogisticregression__regularization": [0.01, 0.1]}, cv=2
    ),
    "RandomizedSearchCV": lambda model: RandomizedSearchCV(model, GRID, cv=2, n_iter=2, random_state=0),
    "CalibratedClassifierCV": lambda model: CalibratedClassifierCV(model, cv=2),
    "CalibratedClassifierCV of a pipeline": lambda model: CalibratedClassifierCV(
        make_pipeline(Normalizer(), model), cv=2
    ),
    "TunedThresholdClassifierCV": lambda model: TunedThresholdClassifierCV(model, cv=2),
    "BaggingClassifier": lambda model: BaggingClassifier(model.set_params(max_weight=8.0), 2),
    "OneVsRestClassifier": OneVsRestClassifier,
    "StackingClassifier": lambda model: StackingClassifier([("private", model)], LogisticRegression()),
    "VotingClassifier": lambda model: VotingClassifier([("private", model)]),
    "SelfTrainingClassifier": SelfTrainingClassifier,
    "SequentialFeatureSelector": lambda model: SequentialFeatureSelector(model, cv=2),
    "StandardScaler": lambda model: make_pipeline(StandardScaler(), model),
    "a scaler of some columns": lambda model: make_pipeline(
        ColumnTransformer([("scaled", StandardScaler(), [0])]), model
    ),
    "a scaler in a pipeline in a pipeline": lambda model: make_pipeline(
        StandardScaler(), make_pipeline(Normalizer(), model)
    ),
    "a union": lambda model: make_pipeline(FeatureUnion([("scaled", StandardScaler())]), model),
}
IN_WORKERS: dict[str, Tool] = {
    "GridSearchCV in workers": lambda model: GridSearchCV(model, GRID, cv=2, n_jobs=2),
    "CalibratedClassifierCV in workers": lambda model: CalibratedClassifierCV(model, cv=2, n_jobs=2),
}


@pytest.mark.filterwarnings("ignore")  # of scikit-learn, about fits that failed
@pytest.mark.parametrize("tool", (TOOLS | IN_WORKERS).values(), ids=TOOLS | IN_WORKERS)
def test_refused(tool: Tool, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "people", Guarantee(100.0, 0.1))
    with pytest.raises(ValueError, match=r"sklearn\..* reads the rows itself|is fitted on the rows"):
        tool(private(ledger=ledger)).fit(X, Y)
    assert not ledger.statement().entries


@pytest.mark.filterwarnings("ignore")
def test_several_outputs_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"sklearn\.multioutput"):
        ClassifierChain(private()).fit(X, np.column_stack([Y, Y]))


def test_a_target_that_is_transformed_is_refused() -> None:
    model = PrivateRegressor(epsilon=1.0, norm_bound=3.0, target_bounds=(-1, 1))
    with pytest.raises(InvalidParameter, match=r"sklearn\.compose"):
        TransformedTargetRegressor(model, transformer=StandardScaler()).fit(X, X[:, 0])


def test_a_tool_may_not_seed_the_noise() -> None:
    with pytest.raises(InvalidParameter, match=r"sklearn\.ensemble"):
        BaggingClassifier(private(), 2).fit(X, Y)
    assert private().set_params(random_state=3).random_state == 3  # people may


class Untagged:
    """A transformer that knows nothing of scikit-learn's tags."""

    def fit(self, X: Any, y: Any = None) -> Untagged:
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_a_step_that_says_nothing_is_taken_for_fitted() -> None:
    from privlearn.estimators.scikit_learn import _reads_rows

    assert _reads_rows(Untagged())
    assert not any(map(_reads_rows, (None, "passthrough", Normalizer(), FrozenEstimator(StandardScaler()))))


@pytest.mark.filterwarnings("ignore:y contains no unlabeled samples")
@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
@pytest.mark.parametrize(
    "changed", [{"random_state": 0}, {"epsilon": math.inf}], ids=["seeded", "no promise"]
)
def test_experiments_on_public_data_may_use_everything(tool: Tool, changed: dict[str, Any]) -> None:
    tool(private(**changed)).fit(X, Y)


SOUND: dict[str, Tool] = {
    "alone": lambda model: model,
    "rows by themselves": lambda model: make_pipeline(FunctionTransformer(np.tanh), Normalizer(), model),
    "passthrough": lambda model: make_pipeline("passthrough", model),
    "fitted on public rows": lambda model: make_pipeline(
        FrozenEstimator(StandardScaler().fit(X + 1.0)), model
    ),
}


@pytest.mark.parametrize("wrap", SOUND.values(), ids=SOUND)
def test_what_keeps_its_promise_is_fitted_and_charged(wrap: Tool, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "people", Guarantee(100.0, 0.1))
    wrap(private(ledger=ledger)).fit(X, Y)
    assert len(ledger.statement().entries) == 1
    assert np.isfinite(cross_val_score(wrap(private()), X, Y, cv=3)).all()


def test_other_ways_to_evaluate() -> None:
    cross_val_predict(private(), X, Y, cv=2)
    learning_curve(private(), X, Y, cv=2, train_sizes=[0.5, 1.0])


@pytest.mark.filterwarnings("ignore")
def test_a_private_search_is_guarded_alike() -> None:
    search = PrivateGridSearch(
        PrivateLogisticRegression(norm_bound=3.0, classes=[0, 1], mechanism="output"),
        GRID,
        epsilon=2.0,
        delta=1e-4,
    )
    with pytest.raises(InvalidParameter, match="is fitted on the rows"):
        make_pipeline(StandardScaler(), search).fit(X, Y)
    with pytest.raises(InvalidParameter, match=r"sklearn\.calibration"):
        CalibratedClassifierCV(search, cv=2).fit(X, Y)
    make_pipeline(Normalizer(), search).fit(X, Y)
