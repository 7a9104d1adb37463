"""A number as target, from the table to predictions."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn import Release, Schema
from privlearn.data import write_table
from tests.support.cli_support import Run


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    rooms = np.random.default_rng(0).uniform(1.0, 9.0, 500)
    whole = [int(price) for price in 10.0 * rooms]  # CSV would guess integers; the schema says number
    write_table(pa.table({"rooms": rooms, "price": whole}), tmp_path / "houses.csv")
    write_table(pa.table({"rooms": [1.0, 5.0, 9.0]}), tmp_path / "new.csv")
    schema: dict[str, Any] = {
        "name": "houses",
        "columns": {"rooms": {"type": "number", "lower": 0, "upper": 10}},
        "target": {"name": "price", "lower": 0, "upper": 100},
    }
    Schema.from_dict(schema).save(tmp_path / "houses.schema.yaml")
    return tmp_path


def train(run: Run, folder: Path, *more: object) -> Any:
    return run(
        "train", folder / "houses.csv", "--schema", folder / "houses.schema.yaml",
        "--out", folder / "m.privlearn", *more,
    )  # fmt: skip


def test_train_verify_predict(houses: Path, run: Run) -> None:
    assert train(run, houses, "--epsilon", 20, "--delta", "1e-3").code == 0
    assert run("verify", houses / "m.privlearn").code == 0
    told = run("predict", houses / "m.privlearn", houses / "new.csv", "--out", houses / "p.csv")
    assert told.code == 0
    with (houses / "p.csv").open() as lines:
        predictions = [float(row["prediction"]) for row in csv.DictReader(lines)]
    assert predictions == pytest.approx([10.0, 50.0, 90.0], abs=25.0)
    shown = run("inspect", houses / "m.privlearn").stdout
    assert "'price' (numbers from 0 to 100)" in shown
    assert "mportance" in shown
    assert "in price" in shown


def test_a_regression_has_no_probabilities(houses: Path, run: Run) -> None:
    train(run, houses, "--epsilon", math.inf, "--loss", "clipped_square")
    assert Release.load(houses / "m.privlearn").certificate.mechanism.task.loss.name == "clipped_square"
    told = run("predict", houses / "m.privlearn", houses / "new.csv", "--probabilities")
    assert told.code == 2
    assert "Omit --probabilities" in told.stderr


def test_a_classifier_refuses_a_number(houses: Path, run: Run) -> None:
    told = run(
        "train", houses / "houses.csv", "--schema", houses / "houses.schema.yaml", "--epsilon", 1, "--delta", 0,
        "--out", houses / "c.privlearn", "--model", "logistic",
    )  # fmt: skip
    assert told.code == 1
    assert "train a regression" in told.stderr
    assert not (houses / "c.privlearn").exists()
