"""Every listed loss keeps the promises its constants make."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.errors import InvalidParameter
from privlearn.solvers import Loss, loss_from_dict, loss_from_name, losses_of
from privlearn.solvers.losses import DERIVATIVE_ROUNDING

LOSSES = losses_of("margin") | losses_of("residual")

WIDE = [name for name in LOSSES if hasattr(loss_from_name(name), "width")]
ALL = [loss_from_name(name) for name in LOSSES] + [
    loss_from_name(n, w) for n in WIDE for w in (0.01, 0.1, 2.0)
]
GRID = np.linspace(-6.0, 6.0, 4801)


def show(loss: Loss) -> str:
    return str(loss)


@pytest.fixture(params=ALL, ids=show)
def loss(request: pytest.FixtureRequest) -> Loss:
    chosen: Loss = request.param
    return chosen


@pytest.fixture(params=[loss for loss in ALL if loss.argument == "margin"], ids=show)
def margin(request: pytest.FixtureRequest) -> Loss:
    chosen: Loss = request.param
    return chosen


@pytest.fixture(params=[loss for loss in ALL if math.isfinite(loss.smoothness)], ids=show)
def smooth(request: pytest.FixtureRequest) -> Loss:
    chosen: Loss = request.param
    return chosen


def rounded(z: Any, start: Any, stop: Any, slopes: tuple[Any, Any], between: Any) -> Any:
    return slopes[0] if z < start else slopes[1] if z > stop else between


EXACT_DERIVATIVES: dict[str, Any] = {  # of z, with the width h
    "logistic": lambda z, h: -1 / (1 + mpmath.exp(z)),
    "huber_hinge": lambda z, h: rounded(z, 1 - h, 1 + h, (-1, 0), -(1 + h - z) / (2 * h)),
    "smoothed_hinge": lambda z, h: rounded(
        z, 1 - h, 1 + h, (-1, 0), (1 - z) ** 3 / (4 * h**3) - 3 * (1 - z) / (4 * h) - mpmath.mpf(1) / 2
    ),
    "huber": lambda z, h: rounded(z, -h, h, (-1, 1), z / h),
    "clipped_square": lambda z, h: rounded(z, -h, h, (-h, h), z),
}


def exact_derivative(loss: Any, z: float) -> mpmath.mpf:
    """Return the papers' formulas, written out independently of the code, in 50 digits."""
    assert loss.name in EXACT_DERIVATIVES, f"write the derivative of {loss.name} out in EXACT_DERIVATIVES"
    return EXACT_DERIVATIVES[loss.name](mpmath.mpf(z), mpmath.mpf(getattr(loss, "width", 1.0)))


def test_value_is_the_integral_of_the_derivative(loss: Loss) -> None:
    middles = 0.5 * (GRID[1:] + GRID[:-1])
    fine = np.linspace(-6.0, 6.0, 480_001)
    slopes = loss.first_derivative(0.5 * (fine[1:] + fine[:-1])).reshape(len(middles), 100).mean(axis=1)
    np.testing.assert_allclose(np.diff(loss.value(GRID)), slopes * np.diff(GRID), atol=2e-7)


def test_derivative_is_the_integral_of_the_curvature(smooth: Loss) -> None:
    fine = np.linspace(-6.0, 6.0, 480_001)
    bends = smooth.second_derivative(0.5 * (fine[1:] + fine[:-1])).reshape(4800, 100).mean(axis=1)
    np.testing.assert_allclose(
        np.diff(smooth.first_derivative(GRID)), bends * np.diff(GRID), atol=2e-5 * smooth.smoothness
    )


def test_lipschitz_is_reached_and_never_exceeded(loss: Loss) -> None:
    slopes = np.abs(loss.first_derivative(np.concatenate([GRID, [-1e6, 1e6]])))
    assert slopes.max() == loss.lipschitz


def test_smoothness_is_reached_and_never_exceeded(smooth: Loss) -> None:
    bends = smooth.second_derivative(np.append(GRID, [0.0, 1.0]))
    assert bends.max() == pytest.approx(smooth.smoothness, rel=1e-12)
    steepest = np.max(np.diff(smooth.first_derivative(GRID)) / np.diff(GRID))
    assert steepest <= smooth.smoothness * (1 + 1e-9)


def test_only_the_hinge_is_not_smooth() -> None:
    assert [name for name in LOSSES if math.isinf(loss_from_name(name).smoothness)] == ["hinge"]


def test_convex_and_monotone_as_stated(loss: Loss) -> None:
    slopes = loss.first_derivative(GRID)
    assert np.all(np.diff(slopes) >= 0)
    assert loss.monotone == bool(np.all(slopes <= 0))
    assert loss.monotone or loss.argument != "margin"
    assert np.all(loss.second_derivative(GRID) >= 0)


@pytest.mark.parametrize("name", [name for name in WIDE if name in losses_of("margin")])
@given(width=st.floats(1e-3, 10.0))
def test_pieces_join(name: str, width: float) -> None:
    loss = loss_from_name(name, width)
    ends = np.array([1.0 - width, 1.0 + width])
    step = 1e-9 * width
    for side in (-step, 0.0, step):
        np.testing.assert_allclose(loss.value(ends + side), [width, 0.0], atol=4 * step)
        np.testing.assert_allclose(loss.first_derivative(ends + side), [-1.0, 0.0], atol=1e-8)
    assert loss.value(np.array([1.0]))[0] == pytest.approx(width * (4 if name == "huber_hinge" else 3) / 16)


def test_the_quartic_has_no_jump_in_curvature() -> None:
    loss = loss_from_name("smoothed_hinge")
    np.testing.assert_allclose(loss.second_derivative(np.array([0.5, 1.5])), 0.0, atol=1e-15)


def test_far_out_nothing_overflows(margin: Loss) -> None:
    far = np.array([-1e6, 1e6])
    base = 0.0 if margin.name == "logistic" else 1.0
    np.testing.assert_array_equal(margin.value(far), [1e6 + base, 0.0])
    np.testing.assert_array_equal(margin.first_derivative(far), [-1.0, 0.0])
    np.testing.assert_array_equal(margin.second_derivative(far), [0.0, 0.0])


def test_derivative_rounding_is_a_bound(smooth: Loss) -> None:
    rng = np.random.default_rng(7)
    points = np.concatenate(
        [
            rng.normal(size=300) * 5,
            (smooth.argument == "margin") + getattr(smooth, "width", 1.0) * rng.uniform(-1.1, 1.1, 300),
        ]
    )
    computed = smooth.first_derivative(points)
    with mpmath.workdps(50):
        errors = [
            abs(mpmath.mpf(float(c)) - exact_derivative(smooth, float(z)))
            for c, z in zip(computed, points, strict=True)
        ]
    assert max(errors) <= DERIVATIVE_ROUNDING


def test_survives_a_round_trip(loss: Loss) -> None:
    record = loss.to_dict()
    assert set(record) == {"name", "width"}
    assert loss_from_dict(record) == loss
    assert LOSSES[loss.name] is type(loss)


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf, True, "0.5"])
@pytest.mark.parametrize("name", WIDE)
def test_bad_width_is_refused(name: str, width: object) -> None:
    with pytest.raises(InvalidParameter, match="width"):
        loss_from_name(name, width)  # type: ignore[arg-type]


def test_width_where_there_is_none_and_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="no width"):
        loss_from_name("logistic", 0.5)
    with pytest.raises(InvalidParameter, match="huber_hinge"):
        loss_from_name("square")
