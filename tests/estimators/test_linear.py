"""What the private linear classifiers compute, refuse and release."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from privlearn import (
    BudgetExceeded,
    DataError,
    Guarantee,
    HuberHinge,
    InvalidParameter,
    Ledger,
    PrivateLogisticRegression,
    PrivateSVC,
    Release,
    Schema,
)
from privlearn.release import LinearModel

rng = np.random.default_rng(7)
X = rng.normal(size=(400, 4))
X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
Y = (X[:, 0] + 0.2 * rng.normal(size=400) > 0).astype(int)
Y3 = np.digitize(X[:, 0], [-0.3, 0.3])
PLAIN: dict[str, Any] = {
    "epsilon": math.inf,
    "norm_bound": 1.0,
    "fit_intercept": False,
    "regularization": 1e-2,
}
FEW: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "norm_bound": 1.0, "classes": [0, 1]}


class TestPlainMinimiser:
    """epsilon = inf is the plain model, to 1e-8."""

    def peer(self, **parameters: Any) -> LogisticRegression:
        return LogisticRegression(
            C=1 / (len(X) * 1e-2),
            fit_intercept=False,
            tol=1e-12,
            solver="newton-cg",
            max_iter=10_000,
            **parameters,
        )

    @pytest.mark.parametrize("mechanism", ["objective", "output"])
    def test_logistic(self, mechanism: str) -> None:
        model = PrivateLogisticRegression(**PLAIN, mechanism=mechanism, classes=[0, 1]).fit(X, Y)
        assert np.allclose(model.coef_, self.peer().fit(X, Y).coef_, atol=1e-8)

    def test_multinomial(self) -> None:
        model = PrivateLogisticRegression(**PLAIN, loss="multinomial", classes=[0, 1, 2]).fit(X, Y3)
        assert np.allclose(model.coef_, self.peer().fit(X, Y3).coef_, atol=1e-8)
        assert np.allclose(model.predict_proba(X), self.peer().fit(X, Y3).predict_proba(X), atol=1e-8)

    def test_one_vs_rest(self) -> None:
        model = PrivateLogisticRegression(**PLAIN, loss="logistic", classes=[0, 1, 2]).fit(X, Y3)
        for row, label in zip(model.coef_, (0, 1, 2), strict=True):
            assert np.allclose(row, self.peer().fit(X, label == Y3).coef_[0], atol=1e-8)

    def test_hinge_against_libsvm(self) -> None:
        model = PrivateSVC(**PLAIN, loss="hinge", classes=[0, 1]).fit(X, Y)
        signs = 2 * Y - 1

        def objective(w: np.ndarray) -> float:
            return float(np.maximum(0, 1 - signs * (X @ w)).mean() + 0.005 * w @ w)

        # libsvm has an unpenalised intercept; fed both halves mirrored, its intercept is zero
        mirrored = SVC(kernel="linear", C=1 / (len(X) * 1e-2) / 2, tol=1e-10)
        mirrored.fit(np.vstack([X, -X]), np.concatenate([signs, -signs]))
        assert objective(model.coef_[0]) <= objective(mirrored.coef_[0]) + 1e-9

    def test_class_weight(self) -> None:
        weight = {0: 1.0, 1: 3.0}
        model = PrivateLogisticRegression(**PLAIN, classes=[0, 1], class_weight=weight).fit(X, Y)
        assert np.allclose(model.coef_, self.peer(class_weight=weight).fit(X, Y).coef_, atol=1e-8)

    def test_sparse_equals_dense(self) -> None:
        dense = PrivateSVC(**PLAIN, classes=[0, 1]).fit(X, Y)
        thin = PrivateSVC(**PLAIN, classes=[0, 1]).fit(sparse.csr_array(X), Y)
        assert np.allclose(dense.coef_, thin.coef_, atol=1e-8)
        assert np.allclose(dense.decision_function(X), thin.decision_function(sparse.coo_array(X)), atol=1e-8)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"norm_bound": None}, "norm_bound="),
        ({"classes": None}, "classes="),
        ({"class_weight": "balanced"}, "frequencies"),
        ({"class_weight": {5: 1.0}}, "class_weight has 1 keys"),
        ({"class_weight": {1: math.nan}}, "finite"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"mechanism": "magic"}, "mechanism must be"),
        ({"noise": "gaussian", "delta": 0.0}, "delta > 0"),
        ({"noise": "laplace", "mechanism": "objective"}, "needs noise"),
        ({"calibration": "rbht", "mechanism": "objective"}, "calibration"),
        ({"regularization": -1.0}, "regularization"),
        ({"regularization": math.nan}, "regularization"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"neighbours": "add_remove"}, "neighbours"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"random_state": "lucky"}, "random_state"),
        ({"tolerance": 0}, "tolerance='auto'|'auto'"),
        ({"tolerance": 1e-2}, "tolerance='auto'"),
        ({"classes": [1, 1]}, "distinct"),
    ],
)
def test_bad_parameters_are_refused_with_what_to_type(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        PrivateLogisticRegression(**FEW | parameters).fit(X, Y)


def test_sample_weight_without_a_cap_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidParameter, match="max_weight"):
        PrivateSVC(**FEW).fit(X, Y, sample_weight=np.ones(len(Y)))
    PrivateSVC(**FEW).fit(X, Y, sample_weight=None)


def test_hinge_takes_output_perturbation_by_itself_and_refuses_objective() -> None:
    model = PrivateSVC(**FEW, loss="hinge").fit(X, Y)
    assert model.certificate_.mechanism.name == "output"
    with pytest.raises(InvalidParameter, match="smooth"):
        PrivateSVC(**FEW, loss="hinge", mechanism="objective").fit(X, Y)


def test_a_declared_class_may_be_absent_and_a_single_one_present() -> None:
    model = PrivateLogisticRegression(**FEW).fit(X, np.zeros(len(X), dtype=int))
    assert model.classes_.tolist() == [0, 1]
    one_row = PrivateLogisticRegression(**FEW).fit(X[:1], Y[:1])
    assert one_row.predict(X).shape == (len(X),)


def test_labels_keep_their_declared_order_and_type() -> None:
    names = np.array(["no", "yes"])[Y]
    model = PrivateSVC(**FEW | {"classes": ["yes", "no"], "epsilon": 20.0}).fit(X, names)
    assert model.classes_.tolist() == ["yes", "no"]
    assert (model.predict(X) == names).mean() > 0.85
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "no")).all()


def test_class_weight_raises_the_noise() -> None:
    weighted = PrivateLogisticRegression(**FEW, class_weight={1: 3.0}).fit(X, Y).certificate_.mechanism
    plain = PrivateLogisticRegression(**FEW).fit(X, Y).certificate_.mechanism
    assert weighted.task.gradient_sensitivity == 3 * plain.task.gradient_sensitivity


def test_a_width_of_ones_own() -> None:
    model = PrivateSVC(**FEW, loss=HuberHinge(0.1)).fit(X, Y)
    assert model.certificate_.mechanism.task.loss == HuberHinge(0.1)


CLINIC = {
    "name": "clinic",
    "columns": {
        "age": {"type": "number", "lower": 0, "upper": 100},
        "ward": {"type": "category", "values": ["a", "b"]},
    },
    "target": {"name": "ill", "classes": ["no", "yes"]},
}


ALONE = {"one_row_per_person": True}


def clinic(rows: int = 300) -> dict[str, list[Any]]:
    ages = rng.uniform(0, 100, rows)
    return {
        "age": ages.tolist(),
        "ward": rng.choice(["a", "b"], rows).tolist(),
        "ill": np.where(ages > 50, "yes", "no").tolist(),
        "patient": rng.integers(0, 50, rows).tolist(),
    }


class TestSchema:
    def test_fit_from_the_table_alone(self) -> None:
        table = clinic()
        model = PrivateLogisticRegression(epsilon=20.0, schema=Schema.from_dict(CLINIC | ALONE)).fit(table)
        assert model.score(table, table["ill"]) == model.score(table) > 0.8
        assert model.certificate_.encoding["dataset"] == "clinic"

    def test_norm_bound_beside_a_schema_is_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="leave out"):
            PrivateSVC(epsilon=1.0, schema=Schema.from_dict(CLINIC), norm_bound=1.0).fit(clinic())

    def test_averaged_persons_count_once(self) -> None:
        table = clinic()
        schema = Schema.from_dict(CLINIC | {"person": "patient"})
        mechanism = PrivateSVC(epsilon=1.0, delta=1e-5, schema=schema).fit(table).certificate_.mechanism
        assert mechanism.task.total == len(set(table["patient"]))
        assert mechanism.task.averaged
        assert mechanism.name == "objective"
        assert mechanism.spends() <= mechanism.guarantee

    def test_rows_per_person_multiply_the_sensitivity(self) -> None:
        once, thrice = (
            PrivateSVC(epsilon=1.0, schema=Schema.from_dict(CLINIC | {"rows_per_person": m}))
            .fit(clinic())
            .certificate_.mechanism
            for m in (2, 6)
        )
        assert thrice.task.gradient_sensitivity == 3 * once.task.gradient_sensitivity

    def test_release_predicts_like_the_model(self, tmp_path: Path) -> None:
        table = clinic()
        schema = Schema.from_dict(CLINIC | ALONE)
        model = PrivateLogisticRegression(epsilon=1.0, schema=schema, fit_intercept=False).fit(table)
        model.release_.save(tmp_path / "m.privlearn")
        loaded = Release.load(tmp_path / "m.privlearn").model
        assert isinstance(loaded, LinearModel)
        assert np.array_equal(loaded.predict_proba(table), model.predict_proba(table))
        assert np.array_equal(loaded.predict(table), model.predict(table))


class TestLedger:
    def ledger(self, tmp_path: Path, epsilon: float = 1.0) -> Ledger:
        return Ledger.create(tmp_path / "budget.sqlite", "clinic", Guarantee(epsilon, 1e-5))

    def test_the_whole_budget_can_be_spent_once(self, tmp_path: Path) -> None:
        ledger = self.ledger(tmp_path)
        model = PrivateLogisticRegression(**FEW, ledger=ledger)
        model.fit(X, Y)
        assert ledger.statement().left.epsilon == 0
        with pytest.raises(BudgetExceeded):
            model.fit(X, Y)

    def test_bad_input_costs_nothing(self, tmp_path: Path) -> None:
        ledger = self.ledger(tmp_path)
        bad = X.copy()
        bad[3, 2] = np.nan
        with pytest.raises(DataError):
            PrivateLogisticRegression(**FEW, ledger=ledger).fit(bad, Y)
        with pytest.raises(DataError):
            PrivateLogisticRegression(**FEW, ledger=ledger).fit(X, Y + 1)
        assert ledger.statement().entries == ()

    def test_pure_noise_is_charged_without_delta(self, tmp_path: Path) -> None:
        ledger = self.ledger(tmp_path)
        PrivateLogisticRegression(**FEW, noise="norm_gamma", ledger=ledger).fit(X, Y)
        assert ledger.statement().spent.delta == 0

    def test_no_promise_cannot_be_paid_for(self, tmp_path: Path) -> None:
        with pytest.raises(Exception, match="epsilon"):
            PrivateLogisticRegression(epsilon=math.inf, ledger=self.ledger(tmp_path)).fit(X, Y)


def test_nothing_of_the_rows_is_kept() -> None:
    canary = 0.123456789123456
    marked = X.copy()
    marked[17, 1] = canary
    model = PrivateLogisticRegression(**FEW).fit(marked, Y)
    stored = pickle.dumps(model)
    assert np.float64(canary).tobytes() not in stored
    assert b"0.12345678912" not in stored
    assert len(stored) < 20_000
    assert "0.1234567891" not in repr(model) + str(model.certificate_)
