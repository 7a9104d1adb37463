"""How far a linear function of released coefficients may lie from what it estimates, to first order.

Public: reads a release and what was bought beside it, no record. The argument: docs/theory/intervals.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.special import ndtri

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, shown
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.mechanisms.statistics.curvature import MOST_COEFFICIENTS, explain_refusal, noise_refusal
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature
from privlearn.release.encoders import KernelEncoder

Kind = Literal["privacy", "confidence"]

WORLDS = 100
"""How often the curvature's own noise is drawn again."""

DRAWS = 100 * WORLDS
_MOST_DRAWS = 100 * DRAWS
_AT_ONCE = 256  # functions, for the sake of memory

FARTHEST = 0.5
"""Of the width within which the loss's slope changes: where noise moves a usual score farther, first order fails."""


@dataclass(frozen=True, eq=False)
class Curved:
    """A Hessian, by its eigenvectors and what the data adds to the ridge along each; and the gradients' spread."""

    vectors: Array
    lengths: Array
    ridge: float
    gradients: Array

    def solve(self, functions: Array) -> Array:
        """Hessian^-1 v, for each row v."""
        return (functions @ self.vectors / (self.ridge + self.lengths)) @ self.vectors.T

    @property
    def matrix(self) -> Array:
        """What the data adds to the ridge."""
        return (self.vectors * self.lengths) @ self.vectors.T


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The spread of linear functions of a release's coefficients.

    Parameters
    ----------
    release : Release
    curvature : Curvature, optional
        Without it a privacy interval under objective perturbation is the widest that any table could need.
    kind : {"privacy", "confidence"}
        Around the minimiser on these records; or around that of the population they were drawn from.
    bounds_sampling : bool, default=False
        Without a curvature: whether the widest that any table could need covers sampling too; of likelihoods only.
    """

    release: Release
    curvature: Curvature | None
    kind: Kind
    bounds_sampling: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidParameter(f"kind must be 'privacy' or 'confidence', not {shown(self.kind)}")
        known = noise_refusal if self.curvature is None and self.kind == "privacy" else explain_refusal
        reason = known(self.release.certificate.mechanism)
        if isinstance(self.release.model.encoder, KernelEncoder):
            reason = "its coefficients are those of a kernel's public points"
        if self.release.refinement is not None:
            reason = "it was refined, and what is known of the noise is about its origin: take release.origin"
        if reason is not None:
            raise InvalidParameter(f"no intervals are known for this release: {reason}")
        if self.curvature is None and self.kind == "confidence":
            raise InvalidParameter(
                "a confidence interval needs the curvature, which costs privacy: privlearn.curvature(release, X, y, "
                "epsilon=..., delta=..., ledger=...). A privacy interval needs none: kind='privacy'"
            )
        if self.bounds_sampling and (self.curvature is not None or not is_likelihood(self.release)):
            raise InvalidParameter("sampling is bounded for likelihoods only, without a curvature")
        if self.curvature is not None and self.curvature.release_sha256 != self.release.digest:
            raise InvalidParameter("this curvature belongs to another release: buy that of this one")
        if self._curved is not None and (self.kind == "confidence" or self._perturbs_objective):
            self._refuse_far_noise(self._curved.lengths)

    @property
    def is_bound(self) -> bool:
        """True if intervals are as wide as any table could need, for want of a curvature."""
        return self.curvature is None and (self._perturbs_objective or self.bounds_sampling)

    @property
    def covers_sampling(self) -> bool:
        """Whether what is told holds for sampling as well as for noise."""
        return self.kind == "confidence" or self.bounds_sampling

    def half_widths(self, functions: Array, level: float) -> Array:
        """For each row v of ``functions``: v'w lies no farther from what it estimates, with probability ``level``."""
        parts = np.array_split(functions, max(1, math.ceil(len(functions) / _AT_ONCE)))
        return np.concatenate([self._half_widths(part, level) for part in parts])

    def length_deviation(self, functions: Array) -> float:
        """How long the vector of all errors is, root mean square."""
        return math.sqrt(sum(float(np.trace(part)) for part in self._covariances(functions, self._curved)))

    def length_quantile(self, functions: Array, level: float) -> float:
        """How long the vector of all errors is at most, with that probability: of v'w for each row v of ``functions``.

        Its error's law is drawn: noise and sampling have covariances, and noise the law that it has.
        """
        noise, sampling = self._covariances(functions, self._curved)
        total = float(np.trace(noise + sampling))
        if total == 0.0:
            return 0.0
        again = [sum(map(np.trace, self._covariances(functions, world))) for world in self._worlds]
        ratios = np.array(again or [total]) / total
        lengths = np.concatenate(
            [
                self._error_lengths(functions, noise, sampling, count, seed)
                / np.sqrt(np.resize(ratios, count))
                for seed, count in enumerate(_blocks(level))
            ]
        )
        return float(np.quantile(lengths, level))

    def leaked(self, functions: Array, coefficients: Array) -> Array:
        """What regularization, shrinking these coefficients, moves into each function; 0 without a curvature."""
        if self._curved is None:
            return np.zeros(len(functions))
        return np.asarray(self._ridge * self._curved.solve(functions) @ coefficients)

    def _error_lengths(self, functions: Array, noise: Array, sampling: Array, count: int, seed: int) -> Array:
        """Draws of the errors' length."""
        generator = np.random.default_rng(seed)
        if self._is_normal:
            spread = _squares(_root(noise + sampling))
            return np.asarray(np.sqrt(generator.standard_normal((count, len(spread))) ** 2 @ spread))
        if self._mechanism.noise == "laplace":
            errors = _laplace(functions, self._deviation, generator, count)
        else:
            root = _root(noise)
            errors = _isotropic(self._mechanism.task.dimension, len(root), generator, count) @ root
        root = _root(sampling)
        errors += generator.standard_normal((count, len(root))) @ root
        return np.sqrt(_squares(errors))

    def _covariances(self, functions: Array, curved: Curved | None) -> tuple[Array, Array]:
        """What the noise does to all functions together; and what sampling does, if that is asked for."""
        noise, moved = self._noise_rows(functions, curved)
        gradients = self._sampling(curved)
        sampling = np.zeros((len(functions),) * 2) if gradients is None else moved @ gradients @ moved.T
        return noise @ noise.T, sampling

    def _half_widths(self, functions: Array, level: float) -> Array:
        noise, sampling = self._variances(functions, self._curved)
        variance = noise + sampling
        safe = np.where(variance > 0.0, variance, 1.0)
        again = [sum(self._variances(functions, world)) for world in self._worlds] or [safe]
        ratios = np.where(variance > 0.0, np.array(again) / safe, 1.0)
        errors = np.abs(self._standard_errors(functions, noise / safe))
        inflated = errors / np.sqrt(np.resize(ratios, errors.shape))
        return np.asarray(np.sqrt(variance) * np.quantile(inflated, level, axis=0))

    def _variances(self, functions: Array, curved: Curved | None) -> tuple[Array, Array]:
        """What the noise does to each function; and what sampling does, if that is asked for."""
        noise, moved = self._noise_rows(functions, curved)
        gradients = self._sampling(curved)
        sampling = (
            np.zeros(len(functions)) if gradients is None else np.einsum("ij,ij->i", moved @ gradients, moved)
        )
        return _squares(noise), sampling

    def _noise_rows(self, functions: Array, curved: Curved | None) -> tuple[Array, Array]:
        """Each function's error as one of independent noises of deviation 1; and Hessian^-1 v for each function v."""
        moved = functions / self._ridge if curved is None else curved.solve(functions)
        reach = moved if self._perturbs_objective else functions
        noise = [self._deviation * reach, self._second_deviation * functions]
        if self.bounds_sampling:
            noise.append(self._sampling_bound * functions)
        return np.hstack(noise), moved

    @property
    def _sampling_bound(self) -> float:
        """What sampling adds, at most, to the deviation of a function of length 1 (docs/theory/intervals.md).

        Gradients of a likelihood spread as its Hessian says, up to k: the largest weight, times the rows that a person
        may have (of a person's mean gradient the square is at most the mean of the squares). So along an eigenvector
        whose eigenvalue is h the variance is (s^2 + k h) / (r + h)^2 under objective perturbation, s the noise's
        deviation and r the ridge, and s^2 + k h / (r + h)^2 under output perturbation: largest at a known h.
        """
        task, ridge = self._mechanism.task, self._ridge
        weight = task.weight_bound * task.records_of_a_person
        if not self._perturbs_objective:
            return math.sqrt(weight / (4.0 * ridge))
        noise = self._deviation**2
        if weight * ridge <= 2.0 * noise:
            return 0.0  # largest where the data say nothing
        return math.sqrt(weight**2 / (4.0 * (weight * ridge - noise)) - noise / ridge**2)

    def _sampling(self, curved: Curved | None) -> Array | None:
        """The gradients' spread, if sampling is asked for."""
        return curved.gradients if curved is not None and self.kind == "confidence" else None

    def _standard_errors(self, functions: Array, share: Array) -> Array:
        """Draws of an error over its deviation, one column per function; the noise has that share of its variance."""
        scores = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
        generator = np.random.default_rng(0)
        normal: Array = generator.permutation(scores)[:, np.newaxis]
        if self._is_normal:
            return np.broadcast_to(normal, (DRAWS, len(functions)))
        components = _components(self._mechanism.noise, functions, generator)
        return np.asarray(np.sqrt(share) * components + np.sqrt(1.0 - share) * normal)

    @property
    def _mechanism(self) -> ReleaseMechanism:
        mechanism: Any = self.release.certificate.mechanism
        return mechanism  # type: ignore[no-any-return]

    @property
    def _is_normal(self) -> bool:
        return self._mechanism.noise == "gaussian" or not self._mechanism.guarantee.is_private

    @property
    def _perturbs_objective(self) -> bool:
        return self._mechanism.perturbs == "objective"

    @property
    def _deviation(self) -> float:
        """Of one coordinate of the noise, in the sum of gradients or in the minimiser."""
        return self._coordinate_deviation(self._mechanism.noise_scale)

    @property
    def _second_deviation(self) -> float:
        """Of the noise that objective perturbation adds for the solver's tolerance; 0 elsewhere."""
        if not (self._perturbs_objective and self._mechanism.guarantee.is_private):
            return 0.0
        return self._coordinate_deviation(self._mechanism.noise_scales[1])

    def _coordinate_deviation(self, scale: float) -> float:
        return coordinate_deviation(self._mechanism.noise, scale, self._mechanism.task.dimension)

    @cached_property
    def _curved(self) -> Curved | None:
        """The best estimate; none, and so the ridge alone, where nothing was bought."""
        return None if self.curvature is None else self._estimate(self.curvature)

    def _estimate(self, bought: Curvature) -> Curved:
        plan = bought.certificate.mechanism
        return self._shrunk(plan.hessian_bound * bought.hessian, plan.gradient_bound * bought.gradients)

    @cached_property
    def _worlds(self) -> list[Curved]:
        """What would have been estimated of the estimate, had its noise been drawn again; none where it is not used."""
        if self._curved is None or (self.kind == "privacy" and not self._perturbs_objective):
            return []
        generator, size = np.random.default_rng(1), self._mechanism.task.dimension
        hessian, gradients = self._curved.matrix, self._curved.gradients
        return [
            self._shrunk(
                hessian + symmetric_noise(self._noise_scales[0], size, generator),
                gradients + symmetric_noise(self._noise_scales[1], size, generator),
            )
            for _ in range(WORLDS)
        ]

    @cached_property
    def _noise_scales(self) -> tuple[float, float]:
        """Of the two matrices, in the units of gradients."""
        plan = cast(Curvature, self.curvature).certificate.mechanism
        return plan.hessian_bound * plan.hessian_noise_scale, plan.gradient_bound * plan.gradient_noise_scale

    @property
    def _ridge(self) -> float:
        return float(self._mechanism.task.total * self._mechanism.effective_regularization)

    def _shrunk(self, hessian: Array, gradients: Array) -> Curved:
        """A noisy Hessian without what noise alone would show, and gradients' spread without negative parts.

        Noise of deviation s has eigenvalues up to r = s sqrt(2 d). A true t appears as t + r^2 / (4 t) if t > r / 2,
        and cannot be told from noise otherwise: then it counts as 0, which widens intervals.
        """
        lengths, vectors = np.linalg.eigh(hessian)
        edge = self._noise_scales[0] * math.sqrt(2.0 * len(lengths))
        above = np.sqrt(np.maximum(lengths**2 - edge**2, 0.0))
        kept = np.where(lengths > edge, (lengths + above) / 2.0, 0.0)
        sizes, directions = np.linalg.eigh(gradients)
        return Curved(vectors, kept, self._ridge, (directions * np.maximum(sizes, 0.0)) @ directions.T)

    def _refuse_far_noise(self, lengths: Array) -> None:
        """First order is about small steps: refuse, from released numbers, where the noise makes large ones."""
        task = self._mechanism.task
        if not np.any(lengths > 0.0):
            raise InvalidParameter(
                "no interval is given: the curvature cannot be told from its noise. Buy it with a larger epsilon; or "
                "kind='privacy' without a curvature"
            )
        reach = 1.0 / (self._ridge + lengths) if self._perturbs_objective else np.ones_like(lengths)
        moved = self._deviation * math.sqrt(float(np.sum(lengths * reach**2) / np.sum(lengths)))
        most = FARTHEST * task.loss.lipschitz / task.loss.smoothness
        if moved > most:
            raise InvalidParameter(
                f"no interval is given: the noise moves a usual score by about {moved:.2g}, and the first-order theory "
                f"behind intervals is trusted up to {most:.2g}. More records, a larger epsilon or a larger "
                "regularization would do"
            )


def is_likelihood(release: Release) -> bool:
    """Whether the model's probabilities are what its loss was made of, so that its curvature says how they spread."""
    return release.certificate.task.loss.link in ("logistic", "softmax")


def symmetric_noise(scale: float, size: int, generator: np.random.Generator) -> Array:
    """A draw of what `NoisyCurvature` adds."""
    above = np.triu(generator.normal(0.0, scale * math.sqrt(0.5), (size, size)), 1)
    return np.asarray(above + above.T + np.diag(generator.normal(0.0, scale, size)))


def _components(noise: str, functions: Array, generator: np.random.Generator) -> Array:
    """Draws of a noise vector's component along each function, over its deviation.

    CMS11's law is the same along all; independent Laplace coordinates occur in output perturbation only.
    """
    dimension = functions.shape[1]
    unit = coordinate_deviation(noise, 1.0, dimension)
    if noise == "norm_gamma":
        along = generator.standard_normal((DRAWS, 1))
        across = generator.chisquare(dimension - 1, (DRAWS, 1)) if dimension > 1 else 0.0
        return np.asarray(
            generator.gamma(dimension, size=(DRAWS, 1)) * along / np.sqrt(along**2 + across) / unit
        )
    lengths = np.sqrt(np.maximum(_squares(functions), 1e-300))
    return _laplace(functions / lengths[:, np.newaxis], 1.0, generator, DRAWS)


def _laplace(functions: Array, deviation: float, generator: np.random.Generator, count: int) -> Array:
    """Draws of functions of independent Laplace coordinates."""
    dimension = functions.shape[1]
    if dimension > MOST_COEFFICIENTS:
        raise InvalidParameter(
            f"intervals under Laplace noise are known for at most {MOST_COEFFICIENTS} coefficients: train with "
            "noise='norm_gamma', or with delta > 0"
        )
    draws = generator.laplace(scale=deviation * math.sqrt(0.5), size=(count, dimension))
    return np.asarray(draws @ functions.T)


def _isotropic(dimension: int, size: int, generator: np.random.Generator, count: int) -> Array:
    """Draws of ``size`` coordinates, of all, of CMS11's noise vector, over their deviation."""
    along = generator.standard_normal((count, size))
    across = generator.chisquare(dimension - size, count) if dimension > size else 0.0
    radius = generator.gamma(dimension, size=count) / math.sqrt(dimension + 1.0)
    return np.asarray(along * (radius / np.sqrt(_squares(along) + across))[:, np.newaxis])


def _root(covariance: Array) -> Array:
    """A matrix R with R'R = covariance, its rows orthogonal; as many as it has directions."""
    lengths, vectors = np.linalg.eigh(covariance)
    kept = lengths > 1e-12 * max(float(lengths[-1]), 1e-300)
    return np.asarray(np.sqrt(lengths[kept])[:, np.newaxis] * vectors[:, kept].T)


def _blocks(level: float) -> list[int]:
    """How many draws there are, a part at a time: some twenty beyond the level."""
    wanted = math.ceil(20.0 / max(1.0 - level, 20.0 / _MOST_DRAWS) / DRAWS)
    return [DRAWS] * wanted


def _squares(rows: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
