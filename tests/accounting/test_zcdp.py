"""Conversion of zCDP: against dp-accounting, order by order, and against the Gaussian mechanism's exact curve."""

from __future__ import annotations

import math

import numpy as np
from dp_accounting import rdp
from hypothesis import given
from hypothesis import strategies as st

from privlearn.accounting import GaussianCurve, zcdp_budget, zcdp_delta

RHOS = st.floats(1e-8, 20.0)
EPSILONS = st.floats(1e-3, 50.0)


@given(RHOS, st.floats(2.0, 30.0))
def test_it_is_the_best_order_of_dp_accounting(rho: float, deviations: float) -> None:
    epsilon = rho + deviations * math.sqrt(2.0 * rho)
    orders = 1.0 + np.geomspace(0.02, 10.0 + 10.0 * epsilon / rho, 2000)
    again, _ = rdp.compute_epsilon(orders, rho * orders, zcdp_delta(rho, epsilon))
    assert epsilon * (1.0 - 1e-9) <= again <= epsilon * (1.0 + 1e-3)


@given(RHOS | st.floats(20.0, 1e6), EPSILONS)
def test_it_covers_the_gaussian_mechanism(rho: float, epsilon: float) -> None:
    assert zcdp_delta(rho, epsilon) >= GaussianCurve(math.sqrt(2.0 * rho)).delta(epsilon) * (1.0 - 1e-9)


@given(st.floats(0.01, 20.0), st.floats(1e-12, 0.5))
def test_the_budget_is_kept_and_used_up(epsilon: float, delta: float) -> None:
    rho = zcdp_budget(epsilon, delta)
    assert zcdp_delta(rho, epsilon) <= delta
    assert zcdp_delta(rho * (1.0 + 1e-6), epsilon) > delta
