"""`privlearn bounds` reads no data, prints a table and draws."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.cli_support import Run

USUAL = ("--rows", 36000, "--lambda", 1e-3, "--epsilon", 1, "--columns", 104)


def test_the_table_says_when_a_method_is_vacuous(run: Run) -> None:
    told = run("bounds", *USUAL, "--kernel", "rbf", "--gamma", 2)
    assert told.code == 0
    assert "VACUOUS" in told.stdout
    assert "not useful" in told.stdout
    assert "accuracies below 0.00694" in told.stdout


def test_both_bounds_show_where_both_speak(run: Run) -> None:
    told = run("bounds", *USUAL, "--kernel", "linear", "--accuracy", 1e-4, "--failure", 0.01)
    assert "norm-Gamma" in told.stdout
    lowest = next(line for line in told.stdout.splitlines() if "every useful mechanism exceeds" in line)
    assert " 4.6 " in lowest  # log 99


@pytest.mark.parametrize("kernel", ["linear", "rbf", "cauchy"])
def test_the_figure_is_a_drawing_with_readable_text(run: Run, tmp_path: Path, kernel: str) -> None:
    out = tmp_path / "bounds.svg"
    told = run("bounds", *USUAL, "--kernel", kernel, "--accuracy", 0.005, "--out", out)
    assert told.code == 0, told.stderr
    text = " ".join(ElementTree.parse(out).getroot().itertext())
    assert "regularization lambda" in text
    assert ("no mechanism keeps less" in text) == (kernel != "cauchy")
    assert run("bounds", *USUAL, "--out", out).code == 2


def test_wrong_numbers_are_refused(run: Run, tmp_path: Path) -> None:
    assert "linear, rbf, cauchy" in run("bounds", *USUAL, "--kernel", "laplacian").stderr
    assert "--out must end in" in run("bounds", *USUAL, "--out", tmp_path / "bounds.doc").stderr
    assert "--delta" in run("bounds", *USUAL, "--delta", 0).stderr
    assert run("bounds", *USUAL, "--failure", 2).code == 2
