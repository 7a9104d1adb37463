"""Losses: value, derivatives, and every property that theorems and models need. One list, `LOSSES`.

A margin loss is a function of ``z = sign * <w, x>``; those of this file do not increase, and their derivative lies in
[-1, 0]. A loss of residuals is a function of ``z = <w, x> - target``. The multinomial loss is a function of the scores
of all classes. All are convex, and all but the hinge have a bounded second derivative. The smoothed hinges are
polynomials in ``t = (1 - z) / width``, clipped to [-1, 1]. They are written in factored form, so that each is computed
to a few rounding errors (`DERIVATIVE_ROUNDING`) for any width.

>>> loss = HuberHinge(width=0.5)
>>> loss.first_derivative(np.array([0.0, 1.0, 2.0])).tolist(), loss.smoothness
([-1.0, -0.5, -0.0], 1.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.imports import look_up, register, special
from privlearn.solvers.loss_checks import check_loss_properties

DERIVATIVE_ROUNDING = 16 * 2.0**-53
"""Bound of every loss in this file."""

LossArgument = Literal["margin", "residual", "classes"]


class LossProperties(Protocol):
    """The properties of a loss that theorems and models need; none has a default.

    Attributes
    ----------
    name : str
        Key in `LOSSES`.
    argument : {"margin", "residual", "classes"}
        A signed score, a score minus its target, or the scores of all classes, learnt in one problem.
    link : {"none", "logistic", "softmax"}
        How its scores become probabilities.
    lipschitz : float
        Maximal absolute first derivative.
    smoothness : float
        Maximal second derivative; ``math.inf`` if the first jumps.
    self_concordance : float
        Maximal absolute ratio of the third derivative to the second, along any direction of length 1 of the scores;
        ``math.inf`` if unbounded.
    monotone : bool
        True if the first derivative never changes its sign.
    derivative_rounding : float
        Bound on the absolute rounding error of the computed first derivative at a given float.
    """

    name: ClassVar[str]
    argument: ClassVar[LossArgument]
    link: ClassVar[str]
    monotone: ClassVar[bool]
    derivative_rounding: ClassVar[float]

    @property
    def lipschitz(self) -> float: ...

    @property
    def smoothness(self) -> float: ...

    @property
    def self_concordance(self) -> float: ...

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of certificates; `loss_from_dict` reads it back."""
        ...


class Loss(LossProperties, Protocol):
    """A convex function of the signed margin, or of the residual."""

    def value(self, z: Array) -> Array: ...

    def first_derivative(self, z: Array) -> Array: ...

    def second_derivative(self, z: Array) -> Array: ...


class _UnitSlope:
    """Properties of most losses of this file; each class states its argument and monotonicity."""

    name: ClassVar[str]
    link: ClassVar[str] = "none"
    lipschitz: ClassVar[float] = 1.0
    self_concordance: ClassVar[float] = math.inf  # a polynomial near a corner, and straight lines
    derivative_rounding: ClassVar[float] = DERIVATIVE_ROUNDING

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "width": getattr(self, "width", None)}


@dataclass(frozen=True)
class Logistic(_UnitSlope):
    """``log(1 + exp(-z))``.

    Examples
    --------
    >>> Logistic().first_derivative(np.array([-2.0, 0.5, 1.0, 3.0])).round(3).tolist()
    [-0.881, -0.378, -0.269, -0.047]
    """

    name: ClassVar[str] = "logistic"
    argument: ClassVar[LossArgument] = "margin"
    link: ClassVar[str] = "logistic"
    self_concordance: ClassVar[float] = 1.0  # p (1 - p) (1 - 2 p) over p (1 - p)
    monotone: ClassVar[bool] = True

    @property
    def smoothness(self) -> float:
        return 0.25

    def value(self, z: Array) -> Array:
        return np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))

    def first_derivative(self, z: Array) -> Array:
        return -special.expit(-z)

    def second_derivative(self, z: Array) -> Array:
        return special.expit(z) * special.expit(-z)


@dataclass(frozen=True)
class _RoundedHinge(_UnitSlope):
    """A loss with a corner that is rounded within ``width`` of it: it checks the width.

    The corner of hinges is at ``z = 1``, and the methods are for them; losses of residuals use neither.
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, (int, float)):
            raise InvalidParameter(f"width must be a number above 0, not {preview(self.width)}")
        if not 0 < self.width < math.inf:
            raise InvalidParameter(
                f"width must be finite and above 0, not {preview(self.width)}; the papers take 0.5"
            )

    def _corner(self, z: Array) -> Array:
        return np.clip((1.0 - z) / self.width, -1.0, 1.0)

    def _beyond(self, z: Array) -> Array:
        return np.maximum(1.0 - z - self.width, 0.0)


@dataclass(frozen=True)
class HuberHinge(_RoundedHinge):
    """CMS11 eq. 41: ``(1 + width - z)^2 / (4 width)`` near the corner, the hinge elsewhere.

    Examples
    --------
    >>> HuberHinge().first_derivative(np.array([-2.0, 0.5, 1.0, 3.0])).round(3).tolist()
    [-1.0, -1.0, -0.5, -0.0]
    """

    name: ClassVar[str] = "huber_hinge"
    argument: ClassVar[LossArgument] = "margin"
    monotone: ClassVar[bool] = True

    @property
    def smoothness(self) -> float:
        return 1.0 / (2.0 * self.width)

    def value(self, z: Array) -> Array:
        return self.width / 4.0 * (1.0 + self._corner(z)) ** 2 + self._beyond(z)

    def first_derivative(self, z: Array) -> Array:
        return -0.5 * (1.0 + self._corner(z))

    def second_derivative(self, z: Array) -> Array:
        return np.where(np.abs(1.0 - z) < self.width, self.smoothness, 0.0)


@dataclass(frozen=True)
class SmoothedHinge(_RoundedHinge):
    """CMS11 eq. 38-40: twice continuously differentiable, a quartic near the corner.

    Examples
    --------
    >>> SmoothedHinge().first_derivative(np.array([-2.0, 0.5, 1.0, 3.0])).round(3).tolist()
    [-1.0, -1.0, -0.5, -0.0]
    """

    name: ClassVar[str] = "smoothed_hinge"
    argument: ClassVar[LossArgument] = "margin"
    monotone: ClassVar[bool] = True

    @property
    def smoothness(self) -> float:
        return 3.0 / (4.0 * self.width)

    def value(self, z: Array) -> Array:
        t = self._corner(z)
        return self.width / 16.0 * (1.0 + t) ** 3 * (3.0 - t) + self._beyond(z)

    def first_derivative(self, z: Array) -> Array:
        t = self._corner(z)
        return -0.25 * (1.0 + t) ** 2 * (2.0 - t)

    def second_derivative(self, z: Array) -> Array:
        t = self._corner(z)
        return self.smoothness * (1.0 - t) * (1.0 + t)


@dataclass(frozen=True)
class Hinge(_UnitSlope):
    """``max(0, 1 - z)``; at the corner the derivative is the right-hand one.

    Examples
    --------
    >>> Hinge().first_derivative(np.array([-2.0, 0.5, 1.0, 3.0])).round(3).tolist()
    [-1.0, -1.0, 0.0, 0.0]
    """

    name: ClassVar[str] = "hinge"
    argument: ClassVar[LossArgument] = "margin"
    monotone: ClassVar[bool] = True

    @property
    def smoothness(self) -> float:
        return math.inf

    def value(self, z: Array) -> Array:
        return np.maximum(1.0 - z, 0.0)

    def first_derivative(self, z: Array) -> Array:
        return np.where(z < 1.0, -1.0, 0.0)

    def second_derivative(self, z: Array) -> Array:
        return np.zeros_like(z)


@dataclass(frozen=True)
class Huber(_RoundedHinge):
    """Huber's loss of a residual: its square over ``2 width`` near zero, the absolute value beyond, joined smoothly.

    Examples
    --------
    >>> Huber().first_derivative(np.array([-1.0, -0.1, 0.0, 1.0])).tolist()
    [-1.0, -0.5, 0.0, 1.0]
    """

    width: float = 0.2
    name: ClassVar[str] = "huber"
    argument: ClassVar[LossArgument] = "residual"
    monotone: ClassVar[bool] = False

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def value(self, z: Array) -> Array:
        inside = np.clip(z, -self.width, self.width)
        return inside**2 / (2.0 * self.width) + np.abs(z - inside)

    def first_derivative(self, z: Array) -> Array:
        return np.clip(z / self.width, -1.0, 1.0)

    def second_derivative(self, z: Array) -> Array:
        return np.where(np.abs(z) < self.width, self.smoothness, 0.0)


@dataclass(frozen=True)
class ClippedSquare(Huber):
    """Half the square of a residual, its derivative clipped at ``width``: the squared loss with a bounded gradient.

    Examples
    --------
    >>> ClippedSquare().first_derivative(np.array([-1.0, -0.1, 0.0, 1.0])).tolist()
    [-0.5, -0.1, 0.0, 0.5]
    """

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

    def first_derivative(self, z: Array) -> Array:
        return np.clip(z, -self.width, self.width)


@dataclass(frozen=True)
class Multinomial(_UnitSlope):
    """The softmax loss of all classes at once: properties only, `minimise_multinomial` computes it.

    The gradient of one record is (probabilities - indicator of its class) times its row.

    Examples
    --------
    >>> Multinomial().lipschitz, Multinomial().smoothness
    (1.4142135623730951, 0.5)
    """

    name: ClassVar[str] = "multinomial"
    argument: ClassVar[LossArgument] = "classes"
    link: ClassVar[str] = "softmax"
    lipschitz: ClassVar[float] = math.sqrt(2.0)  # maximal norm of (probabilities - indicator)
    # The third derivative is a third central moment of scores that differ by at most this, the second their variance.
    self_concordance: ClassVar[float] = math.sqrt(2.0)
    monotone: ClassVar[bool] = False

    @property
    def smoothness(self) -> float:
        return 0.5  # maximal eigenvalue of diag(p) - p p'


LOSSES: dict[str, type[LossProperties]] = {}

Kind = TypeVar("Kind", bound=type[LossProperties])


REQUIRED_PROPERTIES = (
    "name",
    "argument",
    "link",
    "lipschitz",
    "smoothness",
    "self_concordance",
    "monotone",
    "derivative_rounding",
    "to_dict",
)
# The losses of this file; an extension calls `register_loss`.
OWN = (Logistic, HuberHinge, SmoothedHinge, Hinge, Huber, ClippedSquare, Multinomial)

for _kind in OWN:
    register(LOSSES, _kind.name, _kind, "loss", REQUIRED_PROPERTIES)


def register_loss(kind: Kind) -> Kind:
    """Add a loss to `LOSSES` if its values agree with its properties for default parameters; usable as a decorator."""
    required = (*REQUIRED_PROPERTIES, "value", "first_derivative", "second_derivative")
    register(LOSSES, getattr(kind, "name", kind.__name__), kind, "loss", required, _refuse_unfit)
    return kind


def _refuse_unfit(kind: Any) -> None:
    if kind.argument not in ("margin", "residual"):
        raise InvalidParameter(
            f"argument of the loss {kind.name!r} must be margin or residual: only the multinomial loss has all classes"
        )
    try:
        loss = kind()
    except TypeError:
        raise InvalidParameter(f"the loss {kind.name!r} needs a default for each of its parameters") from None
    check_properties(loss)


def check_properties(loss: Any) -> Any:
    """Return the loss if its values agree with its properties; losses of this file are checked by the tests.

    (Checking them at every start would need scipy, which a privlearn that only predicts does not have.)
    """
    if type(loss) not in OWN:
        check_loss_properties(loss)
    return loss


def losses_of(argument: LossArgument) -> dict[str, type[Loss]]:
    """Return the losses of margins, or of residuals, which are computed one score at a time."""
    return {name: cast(type[Loss], kind) for name, kind in LOSSES.items() if kind.argument == argument}


def loss_from_name(name: str, width: float | None = None) -> Any:
    """Return the loss of that name; ``width`` only for those that have one."""
    if name not in LOSSES:
        raise InvalidParameter(f"loss must be one of {', '.join(LOSSES)}, not {preview(name)}")
    kind: Any = LOSSES[name]
    if width is None:
        return check_properties(kind())
    if "width" not in {field.name for field in fields(kind)}:
        raise InvalidParameter(f"the {name} loss has no width. Leave it out, or use huber_hinge")
    return check_properties(kind(width=width))


def choose_loss(requested: Any, takes: Callable[[type[LossProperties]], bool], default: str) -> Any:
    """Return the requested loss, by name or as a value, if it is registered and accepted by the learner."""
    if requested is None:
        return loss_from_name(default)
    # An unregistered class could have a known name and larger derivatives than its constants.
    kind: Any = LOSSES.get(requested) if isinstance(requested, str) else type(requested)
    if kind not in LOSSES.values() or not takes(kind):
        names = sorted(
            (name for name, kind in LOSSES.items() if takes(kind)), key=lambda name: name != default
        )
        raise InvalidParameter(
            f"loss must be one of {', '.join(names)} (or such a Loss), not {preview(requested)}"
            f"{did_you_mean(requested, names)}"
        )
    return check_properties(kind() if isinstance(requested, str) else requested)


def loss_from_dict(record: Mapping[str, Any]) -> LossProperties:
    """Return the loss of a certificate: the inverse of ``to_dict``."""
    kind: Any = look_up(LOSSES, record["name"], "loss")
    known = {field.name for field in fields(kind)}
    loss: LossProperties = check_properties(
        kind(**{name: value for name, value in record.items() if name in known})
    )
    return loss
