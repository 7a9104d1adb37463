"""`privlearn export` and `privlearn report` on a release file."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from privlearn import Guarantee, Ledger
from tests.support.cli_support import Census, Run
from tests.support.release_files import release_file

ROW = "age,dose,sex\n41,2.5,female\n"


def test_python_file_runs_on_its_own(run: Run, tmp_path: Path) -> None:
    run("export", release_file("logistic"), "--to", "python", "--out", tmp_path / "model.py")
    (tmp_path / "rows.csv").write_text(ROW)
    command = [sys.executable, "-I", "-S", str(tmp_path / "model.py"), str(tmp_path / "rows.csv")]
    alone = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert alone.startswith("prediction,probability_healthy,probability_ill\n")


def test_sql_runs(run: Run) -> None:
    sql = run("export", release_file("logistic"), "--to", "sql", "--table", "people", "--keep", "id").stdout
    assert "differential privacy" in sql.splitlines()[1]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE people (id, age, dose, sex)")
    database.execute("INSERT INTO people VALUES (7, 41, 2.5, 'female')")
    (row,) = database.execute(sql).fetchall()
    assert row[0] == 7
    assert row[2] + row[3] == pytest.approx(1.0)


def test_refusals_say_what_to_type(run: Run, tmp_path: Path) -> None:
    assert "html-calculator" in run("export", release_file("logistic"), "--to", "excel").told
    assert (
        "no setting 'table'"
        in run("export", release_file("logistic"), "--to", "json", "--table", "people").told
    )
    assert "--out model.onnx" in run("export", release_file("logistic"), "--to", "onnx").told
    kernel = release_file("fourier")
    assert "only models of columns can be exported" in run("export", kernel, "--to", "json").told


def test_the_ending_of_a_report_is_its_format(run: Run, tmp_path: Path) -> None:
    for ending, start in ((".html", "<"), (".json", "{"), (".md", "#")):
        run("report", release_file("logistic"), "--as", "ethics", "--out", tmp_path / f"board{ending}")
        assert (tmp_path / f"board{ending}").read_text().startswith(start)


def test_reports(run: Run, tmp_path: Path) -> None:
    run("report", release_file("logistic"), "--out", tmp_path / "papers", "--format", "html")
    assert len(list((tmp_path / "papers").glob("*.html"))) == 7
    assert json.loads(
        run("report", release_file("logistic"), "--as", "privacy-label", "--format", "json").stdout
    )["sections"]
    assert "or a directory for all of them" in run("report", release_file("logistic")).told
    assert "unknown report" in run("report", release_file("logistic"), "--as", "poem").told


def test_a_budget_is_published_only_on_request(run: Run, budgeted: Census) -> None:
    told = run("report", release_file("logistic"), "--as", "ethics", "--ledger", budgeted.ledger).told
    assert "--publish-budget" in told


def test_a_budget_is_that_of_the_account_that_was_charged(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "budgets.db"
    for name, epsilon in (("clinic", 7.0), ("people", 4.0)):
        Ledger.create(path, name, Guarantee(epsilon, 1e-5))
    told = run(
        "report",
        release_file("logistic"),
        "--as",
        "ethics",
        "--ledger",
        path,
        "--publish-budget",
        "--dataset",
        "people",
    ).stdout
    assert "epsilon = 4" in told
    assert "the ledger's account 'people'" in told
    assert (
        "Add --ledger"
        in run("report", release_file("logistic"), "--as", "ethics", "--dataset", "people").told
    )
