"""Function release: one noisy function, asked at as many points as one likes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.accounting import MARGIN, GaussianCurve, gaussian_ratio
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.gaussian_path import CAPACITY, FACTOR_JITTER, MOST_PATHS, PATH_BITS, VALUE_JITTER
from privlearn.mechanisms.kernel_task import KernelTask, SessionMechanism
from privlearn.mechanisms.mechanism import register_mechanism


@register_mechanism
@dataclass(frozen=True)
class FunctionRelease(SessionMechanism):
    """Answer f(z) + noise_scale (g(z) + jitter), g one path of the Gaussian process whose covariance is the kernel.

    **Theorem** (Hall, Rinaldo and Wasserman 2012; the curve is Balle and Wang's of 2018). Let one person move each of
    K functions by at most D in the norm of the kernel's space, and each computed value be within r of its function's.
    Then the answers at up to T different points, chosen adaptively, each function's with a path of its own, are
    together (epsilon, delta)-private with delta(epsilon) = HS(epsilon, sqrt(K (D^2 + T (2 r)^2 / jitter)) /
    noise_scale), HS the hockey-stick divergence of two normals at that distance. The noise in an answer does not grow
    with T: T stands only beside the rounding error r, of the order of 1e-10. The same point is looked up, never drawn
    again. K is 1 for two classes and for a number, and the number of classes otherwise.

    The argument, also for what is computed in integers and in floating point: docs/theory/function-release.md.
    """

    facts: KernelTask
    guarantee: Guarantee
    noise_scale: float

    name: ClassVar[str] = "function_release"
    title: ClassVar[str] = "function release from one Gaussian-process path"
    page: ClassVar[str] = "function-release"
    noise: ClassVar[str] = "gaussian"
    chosen_constants: ClassVar[tuple[str, ...]] = ("noise_scale",)
    floating_point: ClassVar[str] = (
        "exact: integer Gaussian draws through a public integer matrix. Its rounding, that of kernel values (at most "
        "2^-38 of the kernel's bound, assumed of a kernel of one's own) and that of f are inside the guarantee"
    )

    def __post_init__(self) -> None:
        if self.facts.task.problems > MOST_PATHS:
            raise InvalidParameter(
                f"function release answers for at most {MOST_PATHS} classes: join rare ones"
            )

    @classmethod
    def calibrate(cls, facts: KernelTask, guarantee: Guarantee) -> FunctionRelease:
        """The least noise that keeps the promise; looks at public facts only."""
        if not guarantee.is_private:
            return cls(facts, guarantee, 0.0)
        if guarantee.delta == 0:
            raise InvalidParameter("function release needs delta > 0: pass Guarantee(epsilon, 1e-6)")
        ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
        return cls(facts, guarantee, _distance(facts) / (ratio - _grid_ratio(facts)))

    @property
    def answer_deviation(self) -> float:
        return self.noise_scale

    def spends(self) -> Guarantee:
        """The guarantee recomputed from the constants alone."""
        if not self.guarantee.is_private:
            return self.guarantee
        epsilon = self.guarantee.epsilon
        delta = float(GaussianCurve(self._ratio).delta(epsilon * (1.0 - MARGIN))) / (1.0 - MARGIN)
        return Guarantee(epsilon, delta, self.guarantee.neighbours)

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that the whole session may cost."""
        return order * self._ratio**2 / 2.0

    def answer(self, value: float, noise: int) -> float:
        """The value plus the path's noise there, added as integers: what leaves is a function of their sum."""
        if not self.guarantee.is_private:
            return value
        step = math.ldexp(self.noise_scale, -PATH_BITS)
        return (round(value / step) + noise) * step

    def constants(self) -> dict[str, Any]:
        """Every number the theorem speaks of, for the certificate."""
        return self.facts.constants() | {
            "functions": self.facts.task.problems,
            "points": CAPACITY,
            "factor_jitter": FACTOR_JITTER,
            "value_jitter": VALUE_JITTER,
            "noise_scale": self.noise_scale,
        }

    @property
    def _ratio(self) -> float:
        return _distance(self.facts) / self.noise_scale + _grid_ratio(self.facts)


def _grid_ratio(facts: KernelTask) -> float:
    """What rounding the values to the noise's grid adds to the ratio."""
    return 2.0**-PATH_BITS * math.sqrt(facts.task.problems * CAPACITY / VALUE_JITTER)


def _distance(facts: KernelTask) -> float:
    """How far one person moves all answers together, in the norm of the noise's law at scale 1."""
    rounding = 2.0 * facts.evaluation_error * math.sqrt(CAPACITY / VALUE_JITTER)
    return math.sqrt(facts.task.problems) * math.hypot(facts.sensitivity, rounding)
