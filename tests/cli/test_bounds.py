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


def test_what_noise_costs_in_the_objective_and_where_theorems_are_silent(run: Run) -> None:
    told = run("bounds", *USUAL, "--candidates", 7).stdout
    assert "output perturbation raises J by" in told
    assert "VACUOUS: the zero model has J = 1" in told
    assert "mistakes lost by choosing among 7" in told
    weak = run("bounds", "--rows", 100, "--lambda", 1e-3, "--epsilon", 0.1, "--columns", 10).stdout
    assert weak.count("does not apply: Lambda would have to be raised") == 3


def test_bounds_without_constants_are_ratios(run: Run) -> None:
    told = run("bounds", *USUAL).stdout
    pinp = next(line for line in told.splitlines() if line.startswith("JT13 Theorem 3 "))
    assert pinp.split()[4:8] == ["0.707", "0.707", "1", "-"]
    assert told.count("NOT CREDIBLE") == 3


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_neighbours_that_replace_nothing_halve_the_sensitivity_and_the_lower_bound(run: Run) -> None:
    options = (*USUAL, "--kernel", "linear", "--accuracy", 1e-4, "--failure", 0.01, "--neighbours")
    ours, theirs = (run("bounds", *options, name).stdout for name in ("replace_one", "add_remove"))
    for start in ("one record moves the machine by", "Laplace scale privacy needs", "function release"):
        first, second = (float(line_of(text, start)[38:].split()[0]) for text in (ours, theirs))
        assert second == pytest.approx(first / 2, rel=0.02)
    assert " 4.6 " in line_of(ours, "epsilon every useful mechanism exceeds")
    assert " 2.3 " in line_of(theirs, "epsilon every useful mechanism exceeds")


def test_another_loss_has_its_own_constants_and_no_lower_bound(run: Run) -> None:
    text = run("bounds", *USUAL, "--kernel", "linear", "--accuracy", 1e-4, "--loss", "logistic").stdout
    assert "none" in line_of(text, "epsilon every useful mechanism exceeds")
    assert "logistic" in line_of(text, "loss of the next lines")
    assert "loss'' <= 0.25" in line_of(text, "loss of the next lines")
    narrow = run("bounds", *USUAL, "--loss", "clipped_square").stdout
    assert "1 / (n lambda)" in line_of(narrow, "one record moves the machine by")  # 2 L with L = 1/2


def test_pinp_is_sized_for_the_queries_asked(run: Run) -> None:
    few, many = (
        float(
            line_of(run("bounds", *USUAL, "--queries", number).stdout, "PINP threshold, paper mode")[
                38:
            ].split()[0]
        )
        for number in (100, 10_000)
    )
    assert few < 0.8 * many


@pytest.mark.parametrize("kernel", ["linear", "rbf", "cauchy"])
def test_the_figure_is_a_drawing_with_readable_text(run: Run, tmp_path: Path, kernel: str) -> None:
    out = tmp_path / "bounds.svg"
    told = run("bounds", *USUAL, "--kernel", kernel, "--accuracy", 0.005, "--out", out)
    assert told.code == 0, told.stderr
    text = " ".join(ElementTree.parse(out).getroot().itertext())
    assert "regularization lambda" in text
    assert ("no mechanism goes below" in text) == (kernel != "cauchy")
    assert run("bounds", *USUAL, "--out", out).code == 2


def test_wrong_numbers_are_refused(run: Run, tmp_path: Path) -> None:
    assert "linear, rbf, cauchy" in run("bounds", *USUAL, "--kernel", "laplacian").stderr
    assert "--out must end in" in run("bounds", *USUAL, "--out", tmp_path / "bounds.doc").stderr
    assert "--delta" in run("bounds", *USUAL, "--delta", 0).stderr
    assert run("bounds", *USUAL, "--failure", 2).code == 2
    assert "--loss must be one of" in run("bounds", *USUAL, "--loss", "multinomial").stderr
    assert "neighbours must be one of" in run("bounds", *USUAL, "--neighbours", "twins").stderr
    assert run("bounds", *USUAL, "--queries", 0).code == 2
