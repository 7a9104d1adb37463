"""`privlearn inspect` and `privlearn plan` know every kind of column, and regressions of many records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from privlearn import PrivateRegressor, Schema
from tests.support.cli_support import Run

SCHEMA: dict[str, Any] = {
    "name": "stays",
    "columns": {
        "age": {"type": "number", "lower": 0, "upper": 110},
        "grade": {"type": "ordinal", "values": ["mild", "moderate", "severe"]},
        "admitted": {"type": "date", "lower": "2024-01-01", "upper": "2025-12-31"},
    },
    "target": {"name": "days", "lower": 1, "upper": 60},
}


def stays(count: int) -> pa.Table:
    rng = np.random.default_rng(0)
    ages = rng.uniform(18, 95, count)
    return pa.table(
        {
            "age": ages,
            "grade": np.array(["mild", "moderate", "severe"])[rng.integers(0, 3, count)],
            "admitted": [f"2024-0{month}-15" for month in rng.integers(1, 10, count)],
            "days": np.clip(1 + ages / 10 + rng.exponential(2.0, count), 1, 60),
        }
    )


def test_orders_and_dates_are_shown(run: Run, tmp_path: Path) -> None:
    model = PrivateRegressor(epsilon=1.0, delta=1e-6, schema=Schema.from_dict(SCHEMA)).fit(stays(3000))
    model.release_.save(tmp_path / "m.privlearn")
    shown = run("inspect", tmp_path / "m.privlearn").stdout
    assert "one of mild, moderate, severe, in this order" in " ".join(shown.split())
    assert "date from 2024-01-01 to 2025-12-31" in " ".join(shown.split())


def test_a_regression_keeps_its_columns_whole() -> None:
    """Bins and pairs would add up their noise in a number."""
    model = PrivateRegressor(epsilon=3.0, delta=1e-6, schema=Schema.from_dict(SCHEMA))
    assert model.resolution(Schema.from_dict(SCHEMA), 10**6).is_centred
    table = stays(20_000)
    assert model.set_params(random_state=0).fit(table).score(table) > 0.3


def test_a_plan_of_a_regression_is_not_refused_for_sizes_that_nobody_asked_for(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "stays.yaml").write_text(yaml.safe_dump(SCHEMA))
    for rows in (500, 8000, 50_000):
        options = ("--rows", rows, "--epsilon", 1, "--delta", 1e-6, "--model", "regression")
        found = run("plan", "--schema", tmp_path / "stays.yaml", *options)
        assert found.code == 0, found.stderr
