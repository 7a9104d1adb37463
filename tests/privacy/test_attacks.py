"""What a hostile reader of this version found, kept as tests: each failed before its mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privlearn import Guarantee, PrivateLogisticRegression, PrivateSVC, Schema, plan
from privlearn.data import read_table, write_table
from privlearn.data.encoding import owners
from privlearn.errors import PrivlearnError, SchemaError, preview
from privlearn.estimators import KernelLearner, kernel_features, kernel_learner

PERSONS: dict[str, Any] = {
    "name": "visits",
    "columns": {"x": {"type": "number", "lower": 0, "upper": 1, "encoding": "linear"}},
    "target": {"name": "y", "classes": [0, 1]},
    "person": "who",
}


def visits(rows: list[int]) -> pd.DataFrame:
    """Return n rows of each person."""
    who = np.repeat(np.arange(len(rows)), rows)
    x = np.random.default_rng(0).random(len(who))
    return pd.DataFrame({"who": who, "x": x, "y": (x > 0.5).astype(int)})


def test_a_person_with_more_rows_changes_nobodys_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_features, "_LARGE", 2 * 60)
    schema, points = Schema.from_dict(PERSONS), pd.DataFrame({"x": [0.2, 0.8]})
    lifted = [
        PrivateSVC(epsilon=1.0, delta=1e-9, schema=schema, kernel="rbf", public_points=points)
        .prepare(visits([1] * 59 + [last]), None, private=True)
        .rows.features
        for last in (1, 2)
    ]
    assert lifted[0].dtype == lifted[1].dtype
    assert np.allclose(lifted[0][:59], lifted[1][:59], rtol=0, atol=1e-12)


def test_a_warm_start_that_fails_fails_nothing() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)), np.zeros(5000, dtype=int)
    for first in (0, 1):
        y[0] = first
        settings: dict[str, Any] = {"norm_bound": 3.0, "classes": [0, 1], "class_weight": {0: 1.0, 1: 1e14}}
        PrivateLogisticRegression(epsilon=1.0, delta=1e-6, random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("last", [1, 7])
def test_how_many_rows_persons_have_does_not_refuse_a_session(
    monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    monkeypatch.setattr(kernel_learner, "MAX_EXACT_ROWS", 20)
    learner = KernelLearner(schema=Schema.from_dict(PERSONS), guarantee=Guarantee(1.0, 1e-6))
    machine = learner.read(visits([1] * 5 + [4] * 4 + [last])).freeze()
    assert machine.kernel_task("replace_one").task.total == 10
    assert machine.rows.features.shape[0] == 5 + 2 * 4 + min(last, 2)


def test_an_empty_line_of_a_single_column_is_a_record(tmp_path: Path) -> None:
    write_table(pa.table({"age": pa.array([1, None, 3])}), tmp_path / "ages.csv")
    assert read_table(tmp_path / "ages.csv").num_rows == 3


def test_negative_zero_is_the_person_zero() -> None:
    cells = pa.array(["0", "-0", "0.0", "-0.0", "1"])
    assert owners(cells, "column 'who'").tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    "name", ["epsilon", "delta", "norm_bound", "regularization", "gamma", "mechanism", "loss"]
)
def test_a_column_given_as_a_parameter_is_not_printed(name: str) -> None:
    secret = pd.Series([417.25, 93.5])
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 1.0, "classes": [0, 1]}
    with pytest.raises((PrivlearnError, TypeError, ValueError)) as refused:
        PrivateSVC(**settings | {"kernel": "rbf", name: secret}).fit(np.eye(2), [0, 1])
    assert "417" not in str(refused.value)
    assert "417" not in preview(secret)


def test_a_table_given_as_a_number_of_rows_is_not_printed() -> None:
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, norm_bound=1.0, classes=[0, 1])
    with pytest.raises(PrivlearnError) as refused:
        plan(model, rows=pd.DataFrame({"a": [417.25]}), columns=1)  # type: ignore[arg-type]
    assert "417" not in str(refused.value)


def test_the_column_that_names_people_is_suggested_first() -> None:
    table = visits([1, 2]).rename(columns={"who": "patient_nbr"}).assign(encounter_id=[1, 2, 3])
    schema = Schema.from_dict({name: part for name, part in PERSONS.items() if name != "person"})
    with pytest.raises(SchemaError, match="`person: patient_nbr`"):
        PrivateLogisticRegression(epsilon=1.0, schema=schema).fit(
            table[["encounter_id", "patient_nbr", "x", "y"]]
        )
