"""A schema may be a path or a dict; it says what classes weigh and which are one; columns and features have names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from privlearn import PrivateLogisticRegression, Schema, evaluate
from privlearn.data import SchemaEncoder, census_schema, read_table, simulated_census, split, write_table
from privlearn.errors import DataError, SchemaError

PEOPLE = simulated_census(500, seed=1)
SETTINGS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-4, "random_state": 0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    census_schema().save(tmp_path / "census.yaml")
    return tmp_path / "census.yaml"


def test_a_path_and_a_dict_are_schemas(path: Path) -> None:
    expected = PrivateLogisticRegression(schema=census_schema(), **SETTINGS).fit(PEOPLE)
    for given in (path, str(path), census_schema().to_dict()):
        model = PrivateLogisticRegression(schema=given, **SETTINGS)
        assert clone(model).schema == census_schema()
        assert np.array_equal(model.fit(PEOPLE).coefficients_, expected.coefficients_)
        assert PrivateLogisticRegression().set_params(schema=given).schema == census_schema()
        assert SchemaEncoder(given).schema == census_schema()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (5, "the path of a"),
        ("nowhere.yaml", "nowhere.yaml"),
        ({}, "name"),
        ({1: 2}, "keys name, columns and target"),
    ],
)
def test_fit_explains_what_is_no_schema(wrong: Any, told: str) -> None:
    """Constructors and ``set_params`` keep it: scikit-learn lets them refuse nothing."""
    for model in (
        PrivateLogisticRegression(schema=wrong),
        PrivateLogisticRegression().set_params(schema=wrong),
    ):
        assert model.schema is wrong
        with pytest.raises(SchemaError, match=told):
            model.set_params(**SETTINGS).fit(PEOPLE)


def test_functions_take_them_too(path: Path, tmp_path: Path) -> None:
    parts = split(PEOPLE, str(path), seed="a")
    assert len(parts.train) == 400
    model = PrivateLogisticRegression(schema=str(path), **SETTINGS).fit(parts.train)
    found = evaluate(
        model.release_, parts.test, schema=str(path), epsilon=1.0, random_state=0, accept_weak_privacy=True
    )
    assert found.certificate.guarantee.epsilon == 1.0
    write_table(PEOPLE, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", str(path)).num_rows == 500


def test_columns_and_features_have_names() -> None:
    model = PrivateLogisticRegression(schema=census_schema(), **SETTINGS).fit(PEOPLE)
    assert model.feature_names_in_.tolist() == list(census_schema().columns)
    assert model.n_features_in_ == 7
    assert model.coefficients_.shape == (1, len(model.get_feature_names_out()))
    assert "sex=female" in model.get_feature_names_out() or len(set(model.get_feature_names_out())) > 7


def _schema(**target: Any) -> Schema:
    columns = {"age": {"type": "number", "lower": 0, "upper": 100}}
    return Schema.from_dict({"name": "t", "columns": columns, "target": {"name": "y", **target}})


ROWS: dict[str, Any] = {"age": np.linspace(0, 100, 300), "y": ["no"] * 150 + ["mild"] * 75 + ["severe"] * 75}


def test_merged_classes_are_one() -> None:
    merged = _schema(classes=["no", "ill"], merge={"ill": ["mild", "severe"]})
    model = PrivateLogisticRegression(schema=merged, **SETTINGS).fit(ROWS)
    plain = PrivateLogisticRegression(schema=_schema(classes=["no", "ill"]), **SETTINGS)
    renamed = {"age": ROWS["age"], "y": ["no"] * 150 + ["ill"] * 150}
    assert np.array_equal(model.coefficients_, plain.fit(renamed).coefficients_)
    assert model.classes_.tolist() == ["no", "ill"]
    assert model.score(ROWS) == plain.score(renamed) > 0.5
    for given in (ROWS["y"], np.array(ROWS["y"]), renamed["y"]):
        assert model.score(ROWS, given) == model.score(ROWS)
    assert merged.digest != _schema(classes=["no", "ill"]).digest


@pytest.mark.parametrize("stands", ["in the table", "beside it"])
def test_a_label_of_no_class_is_refused_or_never_met(stands: str) -> None:
    rows = {**ROWS, "y": [*ROWS["y"][:-30], *["secret"] * 30]}
    given = None if stands == "in the table" else rows["y"]
    settings = {"classes": ["no", "ill"], "merge": {"ill": ["mild", "severe"]}}
    strict = PrivateLogisticRegression(schema=_schema(**settings), **SETTINGS).fit(ROWS)
    with pytest.raises(DataError, match="labels that the schema does not list") as refused:
        strict.score(rows, given)
    assert "secret" not in str(refused.value)
    lax = PrivateLogisticRegression(schema=_schema(**settings, unknown="zero"), **SETTINGS).fit(ROWS)
    assert lax.score(rows, given) == pytest.approx(lax.score(ROWS) - 0.1)


def test_a_schema_s_weights_are_those_of_the_estimator() -> None:
    classes = ["no", "mild", "severe"]
    weighted = PrivateLogisticRegression(schema=_schema(classes=classes, weights={"severe": 3}), **SETTINGS)
    weights = {"no": 1.0, "mild": 1.0, "severe": 3.0}
    stated = PrivateLogisticRegression(schema=_schema(classes=classes), class_weight=weights, **SETTINGS)
    assert weighted.fit(ROWS).certificate_.task.weight_bound == 3.0
    assert np.array_equal(weighted.coefficients_, stated.fit(ROWS).coefficients_)
    own = weighted.set_params(class_weight={"severe": 2.0}).fit(ROWS)
    assert own.certificate_.task.weight_bound == 2.0
