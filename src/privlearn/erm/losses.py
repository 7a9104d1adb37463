"""Margin losses ``l(z)``, ``z = sign * <w, x>``: value, derivatives, and the constants the theorems need.

Every loss here is convex and non-increasing, with slope in [-1, 0]; all but the hinge have bounded curvature.
The smoothed hinges are written in ``t = (1 - z) / width`` clipped to [-1, 1]: polynomials in factored form,
so that each is computed to a few rounding errors (`DERIVATIVE_ROUNDING`) whatever the width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privlearn.errors import InvalidParameter

Array = NDArray[np.float64]

DERIVATIVE_ROUNDING = 16 * 2.0**-53
"""Bound on the absolute rounding error of ``derivative`` at a given float, for every loss listed here."""


class LossFacts(Protocol):
    """What the theorems need to know of a loss.

    Attributes
    ----------
    name : str
        Key in `LOSSES`.
    lipschitz : float
        Largest absolute slope.
    smoothness : float
        Largest curvature; ``math.inf`` if the slope jumps.
    monotone : bool
        True if the slope never changes its sign.
    """

    name: ClassVar[str]
    lipschitz: ClassVar[float]
    monotone: ClassVar[bool]

    @property
    def smoothness(self) -> float: ...

    def to_dict(self) -> dict[str, Any]:
        """What a certificate records; `loss_from_dict` reads it back."""
        ...


class Loss(LossFacts, Protocol):
    """A convex function of the signed margin."""

    def value(self, z: Array) -> Array: ...

    def derivative(self, z: Array) -> Array: ...

    def curvature(self, z: Array) -> Array: ...


class _UnitSlope:
    """What all losses of this file share."""

    name: ClassVar[str]
    lipschitz: ClassVar[float] = 1.0
    monotone: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "width": getattr(self, "width", None)}


@dataclass(frozen=True)
class Logistic(_UnitSlope):
    """``log(1 + exp(-z))``."""

    name: ClassVar[str] = "logistic"

    @property
    def smoothness(self) -> float:
        return 0.25

    def value(self, z: Array) -> Array:
        return np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))

    def derivative(self, z: Array) -> Array:
        return -expit(-z)

    def curvature(self, z: Array) -> Array:
        return expit(z) * expit(-z)


@dataclass(frozen=True)
class _RoundedHinge(_UnitSlope):
    """A hinge whose corner at ``z = 1`` is rounded within ``width`` of it."""

    width: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, (int, float)):
            raise InvalidParameter(f"width must be a number above 0, not {self.width!r}")
        if not 0 < self.width < math.inf:
            raise InvalidParameter(
                f"width must be finite and above 0, not {self.width!r}; the papers take 0.5"
            )

    def _corner(self, z: Array) -> Array:
        return np.clip((1.0 - z) / self.width, -1.0, 1.0)

    def _beyond(self, z: Array) -> Array:
        return np.maximum(1.0 - z - self.width, 0.0)


@dataclass(frozen=True)
class HuberHinge(_RoundedHinge):
    """CMS11 eq. 41: ``(1 + width - z)^2 / (4 width)`` near the corner, the hinge elsewhere."""

    name: ClassVar[str] = "huber_hinge"

    @property
    def smoothness(self) -> float:
        return 1.0 / (2.0 * self.width)

    def value(self, z: Array) -> Array:
        return self.width / 4.0 * (1.0 + self._corner(z)) ** 2 + self._beyond(z)

    def derivative(self, z: Array) -> Array:
        return -0.5 * (1.0 + self._corner(z))

    def curvature(self, z: Array) -> Array:
        return np.where(np.abs(1.0 - z) < self.width, self.smoothness, 0.0)


@dataclass(frozen=True)
class SmoothedHinge(_RoundedHinge):
    """CMS11 eq. 38-40: twice continuously differentiable, a quartic near the corner."""

    name: ClassVar[str] = "smoothed_hinge"

    @property
    def smoothness(self) -> float:
        return 3.0 / (4.0 * self.width)

    def value(self, z: Array) -> Array:
        t = self._corner(z)
        return self.width / 16.0 * (1.0 + t) ** 3 * (3.0 - t) + self._beyond(z)

    def derivative(self, z: Array) -> Array:
        t = self._corner(z)
        return -0.25 * (1.0 + t) ** 2 * (2.0 - t)

    def curvature(self, z: Array) -> Array:
        t = self._corner(z)
        return self.smoothness * (1.0 - t) * (1.0 + t)


@dataclass(frozen=True)
class Hinge(_UnitSlope):
    """``max(0, 1 - z)``; at the corner the derivative is the right-hand one."""

    name: ClassVar[str] = "hinge"

    @property
    def smoothness(self) -> float:
        return math.inf

    def value(self, z: Array) -> Array:
        return np.maximum(1.0 - z, 0.0)

    def derivative(self, z: Array) -> Array:
        return np.where(z < 1.0, -1.0, 0.0)

    def curvature(self, z: Array) -> Array:
        return np.zeros_like(z)


@dataclass(frozen=True)
class Huber(_RoundedHinge):
    """Of a residual: its square over ``2 width`` near zero, the absolute value beyond, joined smoothly."""

    name: ClassVar[str] = "huber"
    monotone: ClassVar[bool] = False

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def value(self, z: Array) -> Array:
        inside = np.clip(z, -self.width, self.width)
        return inside**2 / (2.0 * self.width) + np.abs(z - inside)

    def derivative(self, z: Array) -> Array:
        return np.clip(z / self.width, -1.0, 1.0)

    def curvature(self, z: Array) -> Array:
        return np.where(np.abs(z) < self.width, self.smoothness, 0.0)


@dataclass(frozen=True)
class ClippedSquare(Huber):
    """Half the square of a residual, its slope clipped at ``width``: the squared loss with a bounded gradient."""

    width: float = 1.0
    name: ClassVar[str] = "clipped_square"

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return self.width

    @property
    def smoothness(self) -> float:
        return 1.0

    def value(self, z: Array) -> Array:
        return self.width * super().value(z)

    def derivative(self, z: Array) -> Array:
        return np.clip(z, -self.width, self.width)


@dataclass(frozen=True)
class Multinomial(_UnitSlope):
    """The softmax loss of all classes at once: facts only, `minimise_multinomial` computes it.

    The gradient of one record is (probabilities - indicator of its class) times its row.
    """

    name: ClassVar[str] = "multinomial"
    lipschitz: ClassVar[float] = math.sqrt(
        2.0
    )  # largest norm of that difference, whatever the number of classes
    monotone: ClassVar[bool] = False

    @property
    def smoothness(self) -> float:
        return 0.5  # largest eigenvalue of diag(p) - p p'


LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (Logistic, HuberHinge, SmoothedHinge, Hinge)}
RESIDUAL_LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (Huber, ClippedSquare)}


def loss_from_name(name: str, width: float | None = None) -> Loss:
    """The listed loss of that name; ``width`` only for those that have one."""
    known = LOSSES | RESIDUAL_LOSSES
    if name not in known:
        raise InvalidParameter(f"loss must be one of {', '.join(known)}, not {name!r}")
    kind: Any = known[name]
    if width is None:
        return kind()  # type: ignore[no-any-return]
    if not issubclass(kind, _RoundedHinge):
        raise InvalidParameter(f"the {name} loss has no width: leave it out, or take huber_hinge")
    made: Loss = kind(width=width)
    return made


def loss_from_dict(record: Mapping[str, Any]) -> LossFacts:
    """Inverse of ``to_dict``."""
    if record["name"] == Multinomial.name:
        return Multinomial()
    return loss_from_name(record["name"], record.get("width"))
