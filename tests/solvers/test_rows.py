"""Reading the feature matrix in blocks."""

import numpy as np
from scipy import sparse

from privlearn.solvers import Logistic, Problem, minimise


def _one_long_row(short_rows: int, dimension: int) -> sparse.csr_matrix:
    long = np.full((1, dimension), dimension**-0.5)
    return sparse.vstack([sparse.csr_matrix(long), sparse.eye(short_rows, dimension)], format="csr")


def test_one_long_row_does_not_spoil_the_certificate() -> None:
    features = _one_long_row(2000, 20000)
    noise = np.random.default_rng(0).normal(size=20000) * 0.01
    problem = Problem(features, np.ones(2001), Logistic(), 1e-3, 2001, None, noise)
    assert minimise(problem, tolerance=1e-10).gradient_norm <= 1e-10
