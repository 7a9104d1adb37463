"""Every listed loss keeps its facts when measured; a copy with one fact forgotten or wrong is told which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.solvers import (
    LOSSES,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    check_loss_properties,
    loss_from_name,
    losses_of,
)
from privlearn.solvers.losses import REQUIRED_PROPERTIES, LossArgument, _RoundedHinge, register_loss

COMPUTED = losses_of("margin") | losses_of("residual")


@dataclass(frozen=True)
class LogCosh(_RoundedHinge):
    """Of a residual: ``width log cosh(z / width)``, as it should be."""

    name: ClassVar[str] = "log_cosh"
    argument: ClassVar[LossArgument] = "residual"
    monotone: ClassVar[bool] = False

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def value(self, z: Array) -> Array:
        return np.abs(z) + self.width * (np.log1p(np.exp(-2.0 * np.abs(z) / self.width)) - math.log(2.0))

    def first_derivative(self, z: Array) -> Array:
        return np.tanh(z / self.width)

    def second_derivative(self, z: Array) -> Array:
        return (1.0 - np.tanh(z / self.width) ** 2) / self.width


@pytest.mark.parametrize("name", COMPUTED)
def test_every_listed_loss_is_as_it_states(name: str) -> None:
    widths = [1e-6, 0.01, 2.0, 1e4] if hasattr(loss_from_name(name), "width") else []
    for width in (None, *widths):
        check_loss_properties(loss_from_name(name, width))
    check_loss_properties(LogCosh(0.01))


def test_the_multinomial_loss_is_as_it_states() -> None:
    """The one loss of several scores."""
    assert set(LOSSES) - set(COMPUTED) == {"multinomial"}
    scores = np.random.default_rng(0).normal(size=(3000, 3)) * 10.0
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    steepest = np.linalg.norm(shares - np.eye(3)[0], axis=1).max()
    bends = np.linalg.eigvalsh(shares[:, :, None] * np.eye(3) - shares[:, :, None] * shares[:, None]).max()
    assert 0.99 * Multinomial().lipschitz < steepest <= Multinomial().lipschitz
    assert 0.99 * Multinomial().smoothness < bends <= Multinomial().smoothness
    assert not Multinomial.monotone


@pytest.mark.parametrize(
    ("kind", "wrong", "claim"),
    [
        (LogCosh, {"monotone": True}, "monotone = True fails at the argument"),
        (LogCosh, {"smoothness": 0.2}, "smoothness = 0.2 fails at the argument"),
        (Huber, {"smoothness": 0.99 / 0.2}, "smoothness = 4.95"),
        (Hinge, {"smoothness": 100.0}, "smoothness = 100"),
        (Logistic, {"lipschitz": 0.999}, "lipschitz = 0.999"),
        (Logistic, {"lipschitz": math.nan}, "lipschitz = nan"),
        (Huber, {"value": lambda self, z: 1.1 * Huber.value(self, z)}, "a derivative that fits the value"),
        (Huber, {"first_derivative": lambda self, z: -Huber.first_derivative(self, z)}, "convexity"),
        (
            Huber,
            {"first_derivative": lambda self, z: z / self.width},
            "lipschitz = 1 fails at the argument -1e",
        ),
        (
            Logistic,
            {"second_derivative": lambda self, z: 2.0 * Logistic.second_derivative(self, z)},
            "smoothness = 0.25",
        ),
    ],
)
def test_a_wrong_fact_is_found(kind: Any, wrong: dict[str, Any], claim: str) -> None:
    lying = type("Lying", (kind,), {"name": "lying", **wrong})
    with pytest.raises(InvalidParameter, match=f"'lying' is not as it states: .*{claim}"):
        register_loss(lying)


def test_no_loss_of_the_file_states_what_it_sees_or_its_sign_by_default() -> None:
    silent = type("Silent", (_RoundedHinge,), {"name": "silent"})
    assert {"argument", "monotone"} <= set(REQUIRED_PROPERTIES)
    with pytest.raises(InvalidParameter, match="does not define argument, smoothness, monotone, value"):
        register_loss(silent)


def test_a_parameter_without_a_default_is_refused() -> None:
    made: Any = dataclass(frozen=True)(
        type("Depth", (Hinge,), {"name": "deep", "__annotations__": {"depth": float}})
    )
    with pytest.raises(InvalidParameter, match="'deep' needs a default for each of its parameters"):
        register_loss(made)
