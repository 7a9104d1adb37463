"""Every command counts persons where a column identifies them, and states the cap where none does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privlearn.data import Schema, write_table
from tests.support.cli_support import Run

PERSONS, GAUSSIAN = 600, ("--epsilon", 2, "--delta", "1e-6")
CONTENT = {
    "name": "visits",
    "columns": {"age": {"type": "number", "lower": 0, "upper": 100}},
    "target": {"name": "ill", "classes": ["no", "yes"]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People with 1 to 40 rows."""
    path, source = tmp_path_factory.mktemp("visits"), np.random.default_rng(1)
    of = np.repeat(np.arange(PERSONS), source.integers(1, 41, PERSONS))
    age = source.integers(0, 101, PERSONS)[of]
    ill = np.where(age + 30 * source.normal(size=len(of)) > 50, "yes", "no")
    write_table(pa.table({"who": of, "age": age, "ill": ill}), path / "visits.csv")
    Schema.from_dict(CONTENT | {"person": "who"}).save(path / "persons.yaml")
    Schema.from_dict(CONTENT | {"rows_per_person": 40}).save(path / "cap.yaml")
    return path


def test_persons_are_counted_everywhere(run: Run, folder: Path) -> None:
    table, schema, model = folder / "visits.csv", folder / "persons.yaml", folder / "p.privlearn"
    formula = ("--schema", schema, "--formula", "ill ~ age")
    commands = {
        "check": (table, "--schema", schema),
        "train": (table, "--schema", schema, *GAUSSIAN, "--out", model),
        "inspect": (model,),
        "report": (model, "--as", "model-card"),
        "describe": (table, "--schema", schema, *GAUSSIAN, "--out", folder / "p.description"),
        "evaluate": (model, table, *GAUSSIAN, "--out", folder / "p.evaluation", "--page", folder / "p.html"),
        "estimate": (table, *formula, *GAUSSIAN, "--out", folder / "p.estimates"),
        "plan": ("estimate", *formula, "--rows", PERSONS, *GAUSSIAN, "--width", "0.5"),
    }
    for name, arguments in commands.items():
        done = run(name, *arguments)
        assert done.code == 0, done.stderr
        assert "persons" in done.stdout, name
        assert f"{PERSONS} records" not in done.stdout, name
        assert "records at epsilon" not in done.stdout, name
    for file in ("p.description", "p.evaluation", "p.estimates", "p.privlearn"):
        told = run("inspect", folder / file).stdout
        assert f"{PERSONS} (public)" in told
        assert "A record is a person here" in told
        assert "rows per person " not in told
    assert "600 persons" in (folder / "p.html").read_text()


def test_a_cap_is_stated(run: Run, folder: Path) -> None:
    table, schema, model = folder / "visits.csv", folder / "cap.yaml", folder / "c.privlearn"
    assert run("train", table, "--schema", schema, *GAUSSIAN, "--out", model).code == 0
    assert run("evaluate", model, table, *GAUSSIAN, "--out", folder / "c.evaluation").code == 0
    for file in (model, folder / "c.evaluation"):
        assert "at most 40, as the schema states" in run("inspect", file).stdout
    assert "people with many rows weigh more" in " ".join(
        run("report", model, "--as", "model-card").stdout.split()
    )
