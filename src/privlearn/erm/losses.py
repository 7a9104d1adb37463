"""Losses: value, derivatives, and every fact that theorems and models take from them. One list, `LOSSES`.

A margin loss sees ``z = sign * <w, x>``; here it is non-increasing with slope in [-1, 0]. A loss of residuals sees
``z = <w, x> - target``. The multinomial loss sees the scores of all classes at once. All are convex, and all but the
hinge have bounded curvature. The smoothed hinges are written in ``t = (1 - z) / width`` clipped to [-1, 1]: polynomials
in factored form, so that each is computed to a few rounding errors (`DERIVATIVE_ROUNDING`) whatever the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.measured_facts import refuse_contradicted
from privlearn.errors import InvalidParameter, did_you_mean, shown
from privlearn.extensions import enlist, listed
from privlearn.heavy import special

DERIVATIVE_ROUNDING = 16 * 2.0**-53
"""Of every loss in this file."""

Sees = Literal["margin", "residual", "classes"]


class LossFacts(Protocol):
    """What theorems and models need to know of a loss; none of it has a default.

    Attributes
    ----------
    name : str
        Key in `LOSSES`.
    sees : {"margin", "residual", "classes"}
        What it is a function of: a signed score, a score minus its target, or the scores of all classes, learnt
        together in one problem.
    link : {"none", "logistic", "softmax"}
        How its scores become probabilities.
    lipschitz : float
        Largest absolute slope.
    smoothness : float
        Largest curvature; ``math.inf`` if the slope jumps.
    monotone : bool
        True if the slope never changes its sign.
    derivative_rounding : float
        Bound on the absolute rounding error of the computed slope at a given float.
    """

    name: ClassVar[str]
    sees: ClassVar[Sees]
    link: ClassVar[str]
    monotone: ClassVar[bool]
    derivative_rounding: ClassVar[float]

    @property
    def lipschitz(self) -> float: ...

    @property
    def smoothness(self) -> float: ...

    def to_dict(self) -> dict[str, Any]:
        """What a certificate records; `loss_from_dict` reads it back."""
        ...


class Loss(LossFacts, Protocol):
    """A convex function of the signed margin, or of the residual."""

    def value(self, z: Array) -> Array: ...

    def derivative(self, z: Array) -> Array: ...

    def curvature(self, z: Array) -> Array: ...


class _UnitSlope:
    """What most losses of this file share; what a loss sees, and whether its sign is known, each states itself."""

    name: ClassVar[str]
    link: ClassVar[str] = "none"
    lipschitz: ClassVar[float] = 1.0
    derivative_rounding: ClassVar[float] = DERIVATIVE_ROUNDING

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "width": getattr(self, "width", None)}


@dataclass(frozen=True)
class Logistic(_UnitSlope):
    """``log(1 + exp(-z))``."""

    name: ClassVar[str] = "logistic"
    sees: ClassVar[Sees] = "margin"
    link: ClassVar[str] = "logistic"
    monotone: ClassVar[bool] = True

    @property
    def smoothness(self) -> float:
        return 0.25

    def value(self, z: Array) -> Array:
        return np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))

    def derivative(self, z: Array) -> Array:
        return -special.expit(-z)

    def curvature(self, z: Array) -> Array:
        return special.expit(z) * special.expit(-z)


@dataclass(frozen=True)
class _RoundedHinge(_UnitSlope):
    """A hinge whose corner at ``z = 1`` is rounded within ``width`` of it."""

    width: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, (int, float)):
            raise InvalidParameter(f"width must be a number above 0, not {shown(self.width)}")
        if not 0 < self.width < math.inf:
            raise InvalidParameter(
                f"width must be finite and above 0, not {shown(self.width)}; the papers take 0.5"
            )

    def _corner(self, z: Array) -> Array:
        return np.clip((1.0 - z) / self.width, -1.0, 1.0)

    def _beyond(self, z: Array) -> Array:
        return np.maximum(1.0 - z - self.width, 0.0)


@dataclass(frozen=True)
class HuberHinge(_RoundedHinge):
    """CMS11 eq. 41: ``(1 + width - z)^2 / (4 width)`` near the corner, the hinge elsewhere."""

    name: ClassVar[str] = "huber_hinge"
    sees: ClassVar[Sees] = "margin"
    monotone: ClassVar[bool] = True

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
    sees: ClassVar[Sees] = "margin"
    monotone: ClassVar[bool] = True

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
    sees: ClassVar[Sees] = "margin"
    monotone: ClassVar[bool] = True

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

    width: float = 0.2
    name: ClassVar[str] = "huber"
    sees: ClassVar[Sees] = "residual"
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

    width: float = 0.5
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
    sees: ClassVar[Sees] = "classes"
    link: ClassVar[str] = "softmax"
    lipschitz: ClassVar[float] = math.sqrt(
        2.0
    )  # largest norm of that difference, whatever the number of classes
    monotone: ClassVar[bool] = False

    @property
    def smoothness(self) -> float:
        return 0.5  # largest eigenvalue of diag(p) - p p'


LOSSES: dict[str, type[LossFacts]] = {}

Kind = TypeVar("Kind", bound=type[LossFacts])


FACTS = ("name", "sees", "link", "lipschitz", "smoothness", "monotone", "derivative_rounding", "to_dict")
OWN = (Logistic, HuberHinge, SmoothedHinge, Hinge, Huber, ClippedSquare, Multinomial)

for _kind in OWN:
    enlist(LOSSES, _kind.name, _kind, "loss", FACTS)


def register_loss(kind: Kind) -> Kind:
    """Make a loss known by its name, everywhere at once, if it is as steep as it says with its default parameters."""
    facts = (*FACTS, "value", "derivative", "curvature")
    enlist(LOSSES, getattr(kind, "name", kind.__name__), kind, "loss", facts, _refuse_unfit)
    return kind


def _refuse_unfit(kind: Any) -> None:
    if kind.sees not in ("margin", "residual"):
        raise InvalidParameter(
            f"the loss {kind.name!r} must see a margin or a residual: of all classes at once only the multinomial loss "
            "is computed"
        )
    try:
        loss = kind()
    except TypeError:
        raise InvalidParameter(f"the loss {kind.name!r} needs a default for each of its parameters") from None
    measured(loss)


def measured(loss: Any) -> Any:
    """The loss, unless its facts are wrong with these parameters; of this file's own losses the tests make sure.

    (At every start that would take scipy, which a privlearn that only predicts does not have.)
    """
    if type(loss) not in OWN:
        refuse_contradicted(loss)
    return loss


def losses_of(sees: Sees) -> dict[str, type[Loss]]:
    """Those that see margins, or residuals, and can be computed one score at a time."""
    return {name: cast(type[Loss], kind) for name, kind in LOSSES.items() if kind.sees == sees}


def loss_from_name(name: str, width: float | None = None) -> Any:
    """The listed loss of that name; ``width`` only for those that have one."""
    if name not in LOSSES:
        raise InvalidParameter(f"loss must be one of {', '.join(LOSSES)}, not {shown(name)}")
    kind: Any = LOSSES[name]
    if width is None:
        return measured(kind())
    if "width" not in {field.name for field in fields(kind)}:
        raise InvalidParameter(f"the {name} loss has no width: leave it out, or take huber_hinge")
    return measured(kind(width=width))


def choose_loss(asked: Any, takes: Callable[[type[LossFacts]], bool], default: str) -> Any:
    """The loss asked for, by name or as a value, if it is listed and one of those that a learner takes."""
    if asked is None:
        return loss_from_name(default)
    # A foreign class could bear a listed name and have steeper slopes than its constants say.
    kind: Any = LOSSES.get(asked) if isinstance(asked, str) else type(asked)
    if kind not in LOSSES.values() or not takes(kind):
        names = sorted(
            (name for name, kind in LOSSES.items() if takes(kind)), key=lambda name: name != default
        )
        raise InvalidParameter(
            f"loss must be one of {', '.join(names)} (or such a Loss), not {shown(asked)}{did_you_mean(asked, names)}"
        )
    return measured(kind() if isinstance(asked, str) else asked)


def loss_from_dict(record: Mapping[str, Any]) -> LossFacts:
    """Inverse of ``to_dict``."""
    kind: Any = listed(LOSSES, record["name"], "loss")
    known = {field.name for field in fields(kind)}
    found: LossFacts = measured(kind(**{name: value for name, value in record.items() if name in known}))
    return found
