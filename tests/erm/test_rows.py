"""Reading the feature matrix in blocks."""

import numpy as np
from scipy import sparse

from privlearn.erm import Logistic, Problem, minimise
from privlearn.erm.rows import Rows


def _one_long_row(short_rows: int, dimension: int) -> sparse.csr_matrix:
    long = np.full((1, dimension), dimension**-0.5)
    return sparse.vstack([sparse.csr_matrix(long), sparse.eye(short_rows, dimension)], format="csr")


def test_the_mean_length_weighs_the_rows() -> None:
    rows = Rows(_one_long_row(3, 9), 1.0)
    assert rows.longest_row == 9
    assert rows.mean_length(np.ones(4)) == (9 + 3) / 4
    assert rows.mean_length(np.array([1.0, 0.0, 0.0, 0.0])) == 9
    assert Rows(np.eye(3), 1.0).mean_length(np.ones(3)) == 3


def test_one_long_row_does_not_spoil_the_certificate() -> None:
    features = _one_long_row(2000, 20000)
    noise = np.random.default_rng(0).normal(size=20000) * 0.01
    problem = Problem(features, np.ones(2001), Logistic(), 1e-3, 2001, None, noise)
    assert minimise(problem, tolerance=1e-10).gradient_norm <= 1e-10
