"""The Gram matrix of a session's records."""

from __future__ import annotations

import numpy as np
import pytest

from privlearn.estimators import kernel_fit
from privlearn.estimators.kernel_fit import symmetric_gram
from privlearn.features import Kernel, PolynomialKernel, RBFKernel

ROWS = np.random.default_rng(0).normal(size=(70, 5)) / 5.0


@pytest.mark.parametrize("together", [1, 16, 70, 512])
@pytest.mark.parametrize("kernel", [RBFKernel(2.0), PolynomialKernel()], ids=lambda kernel: kernel.name)
def test_the_matrix_is_the_kernels(kernel: Kernel, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_fit, "BLOCK_ROWS", together)
    gram = symmetric_gram(kernel, ROWS)
    assert np.array_equal(gram, gram.T)
    np.testing.assert_allclose(gram, kernel(ROWS, ROWS) / kernel.bound, rtol=1e-13)


def test_a_users_function_keeps_what_it_returned() -> None:
    kept = ROWS @ ROWS.T + np.triu(np.full((70, 70), 1e-14))
    before = kept.copy()
    gram = symmetric_gram(Kernel.from_callable(lambda X, Z: kept, bound=2.0), ROWS)
    assert np.array_equal(gram, gram.T)
    assert np.array_equal(kept, before)
    np.testing.assert_allclose(gram, kept / 2.0, atol=1e-13)
