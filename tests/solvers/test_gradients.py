"""Newton's systems by conjugate gradients: the factorisation's solution, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privlearn.features import LaplacianKernel, RBFKernel
from privlearn.solvers import HuberHinge, KernelProblem, Logistic, minimise_kernel
from privlearn.solvers.gradients import RESIDUAL, sketch, solve_by_gradients
from privlearn.solvers.kernel import newton

ROWS = np.random.default_rng(0).normal(size=(1800, 4)) / 4.0
SIGNS = np.where(ROWS[:, 0] + ROWS[:, 1] ** 2 > 0.05, 1.0, -1.0)


def solved(kernel: Any, ridge: float, chosen: int) -> tuple[Any, Any, Any]:
    """Conjugate gradients' solution, the system and its right-hand side."""
    system = kernel(ROWS[:600], ROWS[:600]).astype(np.float32)
    places = np.linspace(0, 599, chosen).astype(np.intp)
    right = SIGNS[:600].astype(np.float32)
    found = solve_by_gradients(system, np.full(600, ridge, np.float32), right, sketch(system[places], places))
    return found, system + ridge * np.eye(600), right


@pytest.mark.parametrize("ridge", [0.1, 1.0, 100.0])
def test_it_solves_the_system(ridge: float) -> None:
    found, system, right = solved(RBFKernel(2.0), ridge, 150)
    assert np.linalg.norm(system @ found - right) < 3.0 * RESIDUAL * np.linalg.norm(right)


def test_rows_that_repeat_span_as_well() -> None:
    system = np.ones((600, 600), np.float32)
    places = np.arange(0, 600, 4)
    found = solve_by_gradients(
        system, np.ones(600, np.float32), np.ones(600, np.float32), sketch(system[places], places)
    )
    assert found is not None
    assert found == pytest.approx(np.full(600, 1.0 / 601.0), rel=1e-4)


def test_it_gives_up_where_a_factorisation_is_quicker() -> None:
    """A kernel of which few rows say little, next to no ridge."""
    assert solved(LaplacianKernel(1.0), 1e-4, 20)[0] is None


@pytest.mark.parametrize("loss", [HuberHinge(), Logistic()], ids=lambda loss: loss.name)
def test_the_machine_is_the_same(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "SINGLE_PRECISION_ROWS", 100)
    gram = RBFKernel(2.0)(ROWS, ROWS)
    problem = KernelProblem((gram + gram.T) / 2.0, SIGNS, loss, 1e-3, len(ROWS))
    found = minimise_kernel(problem)
    monkeypatch.setattr(newton, "solve_by_gradients", lambda *_: None)
    factored = minimise_kernel(problem)
    apart = found.dual - factored.dual
    assert np.sqrt(apart @ problem.gram @ apart) <= found.distance + factored.distance
