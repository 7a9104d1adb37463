"""Buying a curvature: what it is sold for, what it costs, its file, and that refusals charge nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import (
    Curvature,
    DataError,
    Guarantee,
    InvalidParameter,
    Ledger,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    PrivlearnError,
    Schema,
    VerificationError,
    curvature,
    verify,
)
from privlearn.guarantee import RELATIONS

PRICE: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6}


def rows(count: int = 1500) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    X = random.normal(size=(count, 3))
    return X, (X[:, 0] + random.logistic(size=count) > 0).astype(int)


def release_of(kind: Any = PrivateLogisticRegression, **settings: Any) -> Any:
    default = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 3.0, "classes": [0, 1], "random_state": 0}
    return kind(**default | settings).fit(*rows()).release_


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_a_saved_curvature_verifies_and_names_its_release(neighbours: str, tmp_path: Path) -> None:
    expected = {} if RELATIONS[neighbours].count_is_public else {"expected_records": 1400}
    release = release_of(neighbours=neighbours, **expected)
    found = curvature(release, *rows(), **PRICE)
    path = tmp_path / "model.curvature"
    found.save(path)
    proven = verify(path)
    assert proven.is_private
    assert proven.claimed == Guarantee(0.5, 1e-6, neighbours)
    assert proven.recomputed <= proven.claimed
    loaded = Curvature.load(path)
    assert loaded.release_sha256 == release.digest
    assert np.array_equal(loaded.hessian, found.hessian)
    assert np.array_equal(loaded.gradients, found.gradients)
    assert "hessian noise scale" in proven.certificate.properties
    assert "The release they belong to has its own price" in str(proven.certificate)


def _changed(path: tuple[str, ...], value: Any) -> Any:
    def change(record: dict[str, Any]) -> None:
        inner = record
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _changed(("claim", "epsilon"), 0.1),
        _changed(("constants", "hessian_noise_scale"), 1.0),
        _changed(("constants", "gradient_bound"), 0.5),
        _changed(("about", "release_sha256"), "0" * 64),
        _changed(("matrices", "hessian"), [1.0]),
        _changed(("matrices",), None),
        _changed(("task", "dimension"), 3),
        _changed(("task", "problems"), 2),
        _changed(("task", "loss"), {"name": "multinomial", "width": None}),
        _changed(("task", "loss"), {"name": "hinge", "width": None}),
        _changed(("randomness", "secure"), False),
        _changed(("format",), "privlearn curvature 2"),
    ],
)
def test_what_was_changed_does_not_verify(change: Any, tmp_path: Path) -> None:
    record = json.loads(curvature(release_of(), *rows(), **PRICE).to_bytes())
    change(record)
    path = tmp_path / "model.curvature"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(VerificationError):
        verify(path)


def test_a_seed_makes_it_not_private() -> None:
    found = curvature(release_of(), *rows(), **PRICE, random_state=0)
    assert not found.certificate.is_private


def test_it_is_charged_once_and_refusals_are_not(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "clinic", Guarantee(1.0, 1e-5))
    release, (X, y) = release_of(), rows()
    curvature(release, X, y, **PRICE, ledger=ledger)
    assert ledger.statement().spent.epsilon == 0.5
    with pytest.raises(DataError, match="1500 records"):
        curvature(release, X[:-1], y[:-1], **PRICE, ledger=ledger)
    with pytest.raises(InvalidParameter, match="delta > 0"):
        curvature(release, X, y, epsilon=0.5, delta=0.0, ledger=ledger)
    with pytest.raises(PrivlearnError):
        curvature(release, X * np.nan, y, **PRICE, ledger=ledger)
    with pytest.raises(PrivlearnError):
        curvature(release, X, y + 5, **PRICE, ledger=ledger)
    with pytest.raises(InvalidParameter, match="class_weight"):
        curvature(release, X, y, **PRICE, class_weight={0: 1.0, 1: 3.0}, ledger=ledger)
    with pytest.raises(InvalidParameter, match="hardly private"):
        curvature(release, X, y, epsilon=30.0, delta=1e-6, ledger=ledger)
    assert ledger.statement().spent.epsilon == 0.5


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        (PrivateSVC, {"loss": "hinge", "mechanism": "output"}, "no curvature"),
        (PrivateSVC, {"kernel": "rbf", "fourier_pairs": 20}, "kernel"),
        (PrivateLogisticRegression, {"loss": "logistic", "classes": [0, 1, 2]}, "several problems"),
    ],
)
def test_what_is_not_sold(kind: Any, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        curvature(release_of(kind, **settings), *rows(), **PRICE)


def test_many_coefficients_and_unnamed_persons_are_refused() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 300)), random.integers(0, 2, 400)
    wide = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1], random_state=0
    ).fit(X, y)
    with pytest.raises(InvalidParameter, match="301 coefficients"):
        curvature(wide.release_, X, y, **PRICE)
    table = {"age": X[:, 0], "ill": np.where(y, "yes", "no")}
    visits = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, schema=Schema.from_dict(VISITS | {"rows_per_person": 2}), random_state=0
    ).fit(table)
    with pytest.raises(InvalidParameter, match="person: COLUMN"):
        curvature(visits.release_, table, **PRICE)


VISITS: dict[str, Any] = {
    "name": "visits",
    "columns": {"age": {"type": "number", "lower": 0, "upper": 100, "encoding": "linear"}},
    "target": {"name": "ill", "classes": ["no", "yes"]},
}


def test_the_curvature_of_persons_is_robust_against_clusters() -> None:
    """Rows of a person that are all alike count as one row: gradients are added up before they are squared."""
    random = np.random.default_rng(0)
    age, ill = random.uniform(0.0, 100.0, 200), np.where(random.integers(0, 2, 200), "yes", "no")
    schema = Schema.from_dict(VISITS | {"person": "who"})
    price: dict[str, Any] = {"epsilon": math.inf, "delta": 0.0}
    once = {"age": age, "ill": ill, "who": np.arange(200)}
    release = (
        PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema, random_state=0).fit(once).release_
    )
    thrice = {name: np.tile(column, 3) for name, column in once.items()}
    first, second = (curvature(release, table, **price) for table in (once, thrice))
    assert np.allclose(first.hessian, second.hessian, atol=0.2)
    assert np.allclose(first.gradients, second.gradients, atol=0.2)


def test_the_curvature_of_persons_counts_persons_in_its_file() -> None:
    table = {"age": np.linspace(0.0, 100.0, 60), "ill": ["no", "yes"] * 30, "who": np.arange(60) // 2}
    schema = Schema.from_dict(VISITS | {"person": "who"})
    release = (
        PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema, random_state=0).fit(table).release_
    )
    found = curvature(release, table, **PRICE, random_state=0)
    again = type(found).from_bytes(found.to_bytes())
    assert again.certificate.task.averaged
    assert again.certificate.task.total == 30


def test_class_weights_enter_as_in_the_fit() -> None:
    X, y = rows()
    release = release_of(class_weight={0: 1.0, 1: 3.0})
    price: dict[str, Any] = {"epsilon": math.inf, "delta": 0.0}
    found = curvature(release, X, y, **price, class_weight={0: 1.0, 1: 3.0})
    plain = curvature(release_of(), X, y, **price)
    ratio = np.trace(found.hessian) * 3.0 / np.trace(plain.hessian)
    assert 1.3 < ratio < 3.0


def test_centred_rows_and_numbers_are_read_as_they_were_learnt_from() -> None:
    """With no noise the two matrices are those of the encoded rows."""
    random = np.random.default_rng(0)
    X = 1.0 + 0.1 * random.normal(size=(3000, 2))
    y = X[:, 0] + 0.05 * random.normal(size=3000)
    model = PrivateRegressor(
        epsilon=1.0, delta=1e-6, norm_bound=2.0, target_bounds=(0, 2), centre=True, random_state=0
    ).fit(X, y)
    found = curvature(model.release_, X, y, epsilon=math.inf, delta=0.0)
    features: Any = model.release_.model.encoder.encode(X)
    residuals = features @ model.coefficients_[0] - (y - 1.0)
    loss: Any = model.certificate_.task.loss
    inside = (np.abs(residuals) < loss.width) / loss.width
    exact = (features * inside[:, np.newaxis]).T @ features
    assert found.certificate.mechanism.hessian_bound * found.hessian == pytest.approx(
        exact, rel=2e-3, abs=1.0
    )


def test_the_curvature_of_a_model_with_bought_probabilities_verifies(tmp_path: Path) -> None:
    release = release_of(PrivateSVC, probability=True)
    curvature(release, *rows(), **PRICE).save(tmp_path / "model.curvature")
    assert verify(tmp_path / "model.curvature").is_private
