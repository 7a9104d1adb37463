"""Kernels from the shell: without public points, with them, and refusals that cost nothing."""

from __future__ import annotations

import pytest
from cli_support import Census, Run


@pytest.mark.parametrize(
    "options",
    [
        ("--kernel", "rbf"),
        ("--kernel", "polynomial", "--degree", 2, "--public-points"),
        ("--kernel", "rbf", "--mechanism", "tddl", "--public-points"),
    ],
)
def test_a_kernel_is_trained_verified_and_predicts(
    options: tuple, census: Census, train: Run, run: Run
) -> None:
    points = (census.new_rows,) if options[-1] == "--public-points" else ()
    told = train("--model", "svm", "--epsilon", 5, "--delta", "1e-6", *options, *points)
    assert told.code == 0
    assert run("verify", census / "income.privlearn").code == 0
    assert options[1] in run("inspect", census / "income.privlearn", "--json").stdout
    predicted = run("predict", census / "income.privlearn", census.new_rows)
    assert predicted.code == 0
    assert predicted.stdout.count("\n") == 51


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--kernel", "rbf"), "--model svm"),
        (("--model", "svm", "--kernel", "polynomial"), "public_points"),
        (("--model", "svm", "--kernel", "magic"), "kernel must be one of"),
    ],
)
def test_refusals_cost_nothing(options: tuple, says: str, budgeted: Census, train: Run, run: Run) -> None:
    told = train("--epsilon", 1, "--delta", "1e-6", "--ledger", budgeted.ledger, *options)
    assert told.code == 2
    assert says in told.stderr
    assert "entries" not in run("budget", "show", "census", "--ledger", budgeted.ledger).stdout
