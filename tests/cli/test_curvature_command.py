"""`privlearn curvature`, and intervals in `privlearn inspect`."""

from __future__ import annotations

from pathlib import Path

from privlearn.data import census_schema, simulated_census, write_table
from tests.support.cli_support import Run


def test_after_a_split_only_the_part_pays(tmp_path: Path, run: Run) -> None:
    table, schema, store = tmp_path / "census.csv", tmp_path / "census.yaml", tmp_path / "budgets.db"
    train, model = tmp_path / "train.csv", tmp_path / "income.privlearn"
    write_table(simulated_census(4000, seed=1), table)
    census_schema().save(schema)
    assert run("budget", "create", "census", "--ledger", store, "--epsilon", 4, "--delta", "1e-5").code == 0
    parts = ("--out-train", train, "--out-test", tmp_path / "test.csv")
    assert run("split", table, "--schema", schema, "--test", 0.25, "--seed", "autumn", *parts).code == 0
    price = ("--epsilon", 2, "--delta", "1e-6", "--ledger", store, "--part", "train")
    assert run("train", train, "--schema", schema, *price, "--out", model).code == 0
    told = run("curvature", model, train, *price, "--out", tmp_path / "income.curvature")
    assert told.code == 0, told.stderr
    assert "part 'train'" in told.stdout


def test_from_a_table_to_effects_with_intervals(tmp_path: Path, run: Run) -> None:
    table, schema, model = tmp_path / "census.csv", tmp_path / "census.yaml", tmp_path / "income.privlearn"
    store, out = tmp_path / "budgets.db", tmp_path / "income.curvature"
    write_table(simulated_census(6000, seed=1), table)
    census_schema().save(schema)
    assert run("budget", "create", "census", "--ledger", store, "--epsilon", 4, "--delta", "1e-5").code == 0
    price = ("--epsilon", 2, "--delta", "1e-6", "--ledger", store)
    assert run("train", table, "--schema", schema, *price, "--out", model).code == 0
    told = run("curvature", model, table, *price, "--out", out, "--note", "for the report")
    assert told.code == 0
    assert "Guarantee: (epsilon = 2, delta = 1e-06)" in told.stdout
    assert "left epsilon 0.0" in told.stdout
    verified = run("verify", out)
    assert verified.code == 0
    assert "consistent and private" in verified.stdout
    shown = run("inspect", model, "--intervals", out)
    assert shown.code == 0
    assert "Effects of columns, confidence intervals" in shown.stdout
    assert "importance" in shown.stdout
    assert "Effects of columns on" not in shown.stdout
    assert "In 95 % of all cases, each interval by itself" in shown.stdout
    assert "Largest coefficients" not in shown.stdout
    narrower = run("inspect", model, "--intervals", out, "--kind", "privacy", "--level", 0.8)
    assert "privacy intervals" in narrower.stdout
    assert "In 80 %" in narrower.stdout
    free = run("inspect", model, "--effects")
    assert "Effects of columns, privacy intervals" in free.stdout
    assert "A private curvature would make them narrower" in free.stdout
    refused = run("curvature", model, table, *price, "--out", tmp_path / "again.curvature")
    assert refused.code == 1
    assert not (tmp_path / "again.curvature").exists()
    assert run("inspect", model, "--intervals", out, "--kind", "other").code == 2
    assert run("inspect", model, "--intervals", model).code == 1
