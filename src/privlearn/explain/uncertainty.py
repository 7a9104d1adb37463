"""`Uncertainty`: the error of linear functions of released coefficients, to first order.

Public: uses a release and its private curvature, no record. The argument: docs/theory/intervals.md.
Functions are arrays of shape (functions, coefficients), one linear function per row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.special import ndtri

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, preview
from privlearn.explain.simulated_errors import (
    BOOTSTRAPS,
    DRAWS,
    block_sizes,
    draw_components,
    draw_isotropic,
    draw_laplace,
    root_of,
    squares,
    symmetric_noise,
)
from privlearn.explain.worst_case import MinimiserShift
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.mechanisms.statistics.curvature import MAX_COEFFICIENTS, explain_refusal, noise_refusal
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature
from privlearn.release.encoders import KernelEncoder, reads_columns

Kind = Literal["privacy", "confidence"]

_BLOCK = 256  # functions at once, to limit memory

MAX_SHIFT = 0.5
"""In units of the width over which the loss's derivative changes: if noise moves a typical score farther, first order
fails."""


@dataclass(frozen=True, eq=False)
class Hessian:
    """A Hessian, and the covariance of the gradients.

    ``vectors`` and ``eigenvalues`` decompose the data's part of the Hessian; the ridge is added to each eigenvalue.
    ``gradients`` is the covariance.
    """

    vectors: Array
    eigenvalues: Array
    ridge: float
    gradients: Array

    def solve(self, functions: Array) -> Array:
        """Return Hessian^-1 v for each row v."""
        return (functions @ self.vectors / (self.ridge + self.eigenvalues)) @ self.vectors.T

    @property
    def matrix(self) -> Array:
        """Return the data's part of the Hessian."""
        return (self.vectors * self.eigenvalues) @ self.vectors.T


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The errors of linear functions of a release's coefficients.

    Parameters
    ----------
    release : Release
    curvature : Curvature, optional
        Without it a privacy interval under objective perturbation holds on every table (`worst_case.MinimiserShift`).
    kind : {"privacy", "confidence"}
        ``privacy`` measures errors from the minimiser on these records, ``confidence`` from that of the population.
    bounds_sampling : bool, default=False
        Without a curvature: whether intervals cover sampling too; for likelihoods only, to first order, assuming that
        the model's probabilities are nowhere more certain than the population's.
    """

    release: Release
    curvature: Curvature | None
    kind: Kind
    bounds_sampling: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidParameter(f"kind must be 'privacy' or 'confidence', not {preview(self.kind)}")
        refusal = noise_refusal if self.curvature is None and self.kind == "privacy" else explain_refusal
        reason = refusal(self.release.certificate.mechanism)
        if isinstance(self.release.model.encoder, KernelEncoder):
            reason = "its coefficients belong to a kernel's public points"
        if self.release.refinement is not None:
            reason = "it was refined, and the noise is known for its origin only: use release.origin"
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
            raise InvalidParameter(
                "this curvature belongs to another release. Run privlearn.curvature on this one"
            )
        if self._hessian is not None and (self.kind == "confidence" or self._perturbs_objective):
            self._refuse_far_noise(self._hessian.eigenvalues)

    @property
    def is_bound(self) -> bool:
        """Return whether intervals hold on every table, for lack of a curvature."""
        return self.curvature is None and (self._perturbs_objective or self.bounds_sampling)

    @property
    def covers_sampling(self) -> bool:
        """Return whether intervals cover sampling as well as noise."""
        return self.kind == "confidence" or self.bounds_sampling

    def half_widths(self, functions: Array, level: float) -> Array:
        """Return, for each row v of ``functions``, a bound on the error of v'w that holds with this probability."""
        if self._shift is not None:
            return np.sqrt(squares(functions)) * self._shift.half_width(level)
        parts = np.array_split(functions, max(1, math.ceil(len(functions) / _BLOCK)))
        return np.concatenate([self._half_widths(part, level) for part in parts])

    def length_deviation(self, functions: Array) -> float:
        """Return the root mean square length of the vector of all errors."""
        if self._shift is not None:
            return self._shift.length_deviation(functions)
        return math.sqrt(sum(float(np.trace(part)) for part in self._covariances(functions, self._hessian)))

    def length_quantile(self, functions: Array, level: float) -> float:
        """Return the bound on the length of the vector of all errors that holds with probability ``level``.

        The errors are simulated: sampling errors as normal ones, noise by its own distribution.
        """
        if self._shift is not None:
            return self._shift.length_quantile(functions, level)
        noise, sampling = self._covariances(functions, self._hessian)
        total = float(np.trace(noise + sampling))
        if total == 0.0:
            return 0.0
        totals = [
            sum(map(np.trace, self._covariances(functions, resample)))
            for resample in self._bootstrap_hessians
        ]
        ratios = np.array(totals or [total]) / total
        lengths = np.concatenate(
            [
                self._error_lengths(functions, noise, sampling, count, seed)
                / np.sqrt(np.resize(ratios, count))
                for seed, count in enumerate(block_sizes(level))
            ]
        )
        return float(np.quantile(lengths, level) + np.linalg.norm(self._bias(functions), 2))

    def shrinkage(self, functions: Array, coefficients: Array) -> Array:
        """Return what regularization, shrinking these coefficients, moves into each function; 0 without a curvature."""
        if self._hessian is None:
            return np.zeros(len(functions))
        return np.asarray(self._ridge * self._hessian.solve(functions) @ coefficients)

    def _error_lengths(self, functions: Array, noise: Array, sampling: Array, count: int, seed: int) -> Array:
        """Draw the length of the vector of errors ``count`` times."""
        generator = np.random.default_rng(seed)
        if self._is_normal:
            variances = squares(root_of(noise + sampling))
            return np.asarray(np.sqrt(generator.standard_normal((count, len(variances))) ** 2 @ variances))
        if self._mechanism.noise == "laplace":
            errors = draw_laplace(functions, self._deviation, generator, count)
        else:
            root = root_of(noise)
            errors = draw_isotropic(self._mechanism.task.dimension, len(root), generator, count) @ root
        root = root_of(sampling)
        errors += generator.standard_normal((count, len(root))) @ root
        return np.sqrt(squares(errors))

    def _covariances(self, functions: Array, hessian: Hessian | None) -> tuple[Array, Array]:
        """Return the covariances of all functions due to noise, and due to sampling where intervals cover it."""
        noise, shifts = self._noise_rows(functions, hessian)
        gradients = self._sampling(hessian)
        sampling = np.zeros((len(functions),) * 2) if gradients is None else shifts @ gradients @ shifts.T
        return noise @ noise.T, sampling

    def _half_widths(self, functions: Array, level: float) -> Array:
        noise, sampling = self._variances(functions, self._hessian)
        variance = noise + sampling
        safe = np.where(variance > 0.0, variance, 1.0)
        variances = [sum(self._variances(functions, resample)) for resample in self._bootstrap_hessians] or [
            safe
        ]
        ratios = np.where(variance > 0.0, np.array(variances) / safe, 1.0)
        errors = np.abs(self._standard_errors(functions, noise / safe))
        inflated = errors / np.sqrt(np.resize(ratios, errors.shape))
        return np.asarray(
            np.sqrt(variance) * np.quantile(inflated, level, axis=0) + np.sqrt(squares(self._bias(functions)))
        )

    def _bias(self, functions: Array) -> Array:
        """Return a row for each function, whose length bounds the mean error of second order.

        With the data's part A of the Hessian H it is (s^2 k / 2) sqrt(tr(A H^-4)) A^(1/2) H^-1 v, s the noise's
        deviation and k the loss's self-concordance (docs/theory/intervals.md). It is not known for losses without one.
        """
        hessian, concordance = self._hessian, self._mechanism.task.loss.self_concordance
        if hessian is None or not self._perturbs_objective or not math.isfinite(concordance):
            return np.zeros((len(functions), 1))
        data, whole = hessian.eigenvalues, hessian.ridge + hessian.eigenvalues
        size = 0.5 * concordance * self._deviation**2 * math.sqrt(float(np.sum(data / whole**4)))
        return np.asarray(size * (functions @ hessian.vectors) * np.sqrt(data) / whole)

    def _variances(self, functions: Array, hessian: Hessian | None) -> tuple[Array, Array]:
        """Return the variances of each function due to noise, and due to sampling where intervals cover it."""
        noise, shifts = self._noise_rows(functions, hessian)
        gradients = self._sampling(hessian)
        sampling = (
            np.zeros(len(functions))
            if gradients is None
            else np.einsum("ij,ij->i", shifts @ gradients, shifts)
        )
        return squares(noise), sampling

    def _noise_rows(self, functions: Array, hessian: Hessian | None) -> tuple[Array, Array]:
        """Return each function's error over independent noises of deviation 1; and Hessian^-1 v for each function v."""
        shifts = functions if hessian is None else hessian.solve(functions)
        reach = shifts if self._perturbs_objective else functions
        noise = [self._deviation * reach, self._second_deviation * functions]
        if self.bounds_sampling:
            noise.append(self._sampling_bound * functions)
        return np.hstack(noise), shifts

    @cached_property
    def _shift(self) -> MinimiserShift | None:
        """Return the bound on the effect of noise in the objective on any table; used without a curvature."""
        if self.curvature is not None or not self._perturbs_objective:
            return None
        mechanism = self._mechanism
        first, second = mechanism.noise_scales if mechanism.guarantee.is_private else (0.0, 0.0)
        return MinimiserShift(
            mechanism.noise,
            first,
            second,
            mechanism.task.dimension,
            self._ridge,
            mechanism.task.loss.self_concordance,
            self._sampling_bound if self.bounds_sampling else 0.0,
        )

    @property
    def _sampling_bound(self) -> float:
        """Return a bound on the deviation of a function of length 1 due to sampling (docs/theory/intervals.md).

        Assumes that the gradients' second moment is at most k times the data's part of the Hessian: k is the largest
        weight, times the rows that a person may have. So along an eigenvector whose eigenvalue is h the variance is at
        most k h / (r + h)^2 with the ridge r, which is at most k / (4 r).
        """
        task = self._mechanism.task
        return math.sqrt(task.max_weight * task.records_of_a_person / (4.0 * self._ridge))

    def _sampling(self, hessian: Hessian | None) -> Array | None:
        """Return the gradients' covariance, if intervals cover sampling."""
        return hessian.gradients if hessian is not None and self.kind == "confidence" else None

    def _standard_errors(self, functions: Array, share: Array) -> Array:
        """Draw standardized errors, one column per function; the noise has ``share`` of the variance."""
        scores = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
        generator = np.random.default_rng(0)
        normal: Array = generator.permutation(scores)[:, np.newaxis]
        if self._is_normal:
            return np.broadcast_to(normal, (DRAWS, len(functions)))
        components = draw_components(self._mechanism.noise, functions, generator)
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
        """Return the deviation of one coordinate of the noise, in the sum of gradients or in the minimiser."""
        return self._coordinate_deviation(self._mechanism.noise_scale)

    @property
    def _second_deviation(self) -> float:
        """Return the deviation of objective perturbation's second noise, for the solver's tolerance; 0 without one."""
        if not (self._perturbs_objective and self._mechanism.guarantee.is_private):
            return 0.0
        return self._coordinate_deviation(self._mechanism.noise_scales[1])

    def _coordinate_deviation(self, scale: float) -> float:
        return coordinate_deviation(self._mechanism.noise, scale, self._mechanism.task.dimension)

    @cached_property
    def _hessian(self) -> Hessian | None:
        """Return the best estimate of the Hessian; ``None``, for the ridge alone, without a curvature."""
        if self.curvature is None:
            return None
        mechanism = self.curvature.certificate.mechanism
        return self._denoise(
            mechanism.hessian_bound * self.curvature.hessian,
            mechanism.gradient_bound * self.curvature.gradients,
        )

    @cached_property
    def _bootstrap_hessians(self) -> list[Hessian]:
        """Return Hessians estimated from the estimate plus fresh noise (parametric bootstrap); none where unused."""
        if self._hessian is None or (self.kind == "privacy" and not self._perturbs_objective):
            return []
        generator, size = np.random.default_rng(1), self._mechanism.task.dimension
        hessian, gradients = self._hessian.matrix, self._hessian.gradients
        return [
            self._denoise(
                hessian + symmetric_noise(self._noise_scales[0], size, generator),
                gradients + symmetric_noise(self._noise_scales[1], size, generator),
            )
            for _ in range(BOOTSTRAPS)
        ]

    @cached_property
    def _noise_scales(self) -> tuple[float, float]:
        """Return the noise scales of the two matrices, in the units of gradients."""
        mechanism = cast(Curvature, self.curvature).certificate.mechanism
        return (
            mechanism.hessian_bound * mechanism.hessian_noise_scale,
            mechanism.gradient_bound * mechanism.gradient_noise_scale,
        )

    @property
    def _ridge(self) -> float:
        return float(self._mechanism.task.total * self._mechanism.effective_regularization)

    def _denoise(self, hessian: Array, gradients: Array) -> Hessian:
        """Return a noisy Hessian without eigenvalues due to noise, and gradients' covariance without negative ones.

        Noise of deviation s has eigenvalues up to r = s sqrt(2 d). A true t appears as t + r^2 / (4 t) if t > r / 2,
        and cannot be distinguished from noise below that: then it counts as 0, which widens intervals.
        """
        eigenvalues, vectors = np.linalg.eigh(hessian)
        edge = self._noise_scales[0] * math.sqrt(2.0 * len(eigenvalues))
        above = np.sqrt(np.maximum(eigenvalues**2 - edge**2, 0.0))
        denoised = np.where(eigenvalues > edge, (eigenvalues + above) / 2.0, 0.0)
        sizes, directions = np.linalg.eigh(gradients)
        return Hessian(vectors, denoised, self._ridge, (directions * np.maximum(sizes, 0.0)) @ directions.T)

    def _refuse_far_noise(self, eigenvalues: Array) -> None:
        """Raise InvalidParameter where, by released numbers, the noise is too large for first-order theory."""
        task = self._mechanism.task
        if not np.any(eigenvalues > 0.0):
            raise InvalidParameter(
                "no interval is available: the curvature is below its noise. Estimate it with a larger epsilon, or use "
                "kind='privacy' without a curvature"
            )
        response = (
            1.0 / (self._ridge + eigenvalues) if self._perturbs_objective else np.ones_like(eigenvalues)
        )
        score_shift = self._deviation * math.sqrt(
            float(np.sum(eigenvalues * response**2) / np.sum(eigenvalues))
        )
        limit = MAX_SHIFT * task.loss.lipschitz / task.loss.smoothness
        if score_shift > limit:
            raise InvalidParameter(
                f"no interval is available: the noise moves a typical score by about {score_shift:.2g}, and the "
                f"first-order theory behind intervals is valid up to {limit:.2g}. Use more records, a larger epsilon "
                "or a larger regularization"
            )


def explain_missing_curvature(release: Release) -> str | None:
    """Public: return why a release can have no private curvature; ``None`` if it can."""
    if release.refinement is not None:
        return "it was refined: use its origin"
    if not reads_columns(release.model.encoder):
        return "it has a kernel or a feature map"
    if reason := explain_refusal(release.certificate.mechanism):
        return str(reason)
    dimension = release.certificate.task.dimension
    if dimension > MAX_COEFFICIENTS:
        return f"it has {dimension} coefficients, more than {MAX_COEFFICIENTS}, and noise would dominate them"
    return None


def is_likelihood(release: Release) -> bool:
    """Return whether the loss is a likelihood, whose Hessian is also the gradients' covariance."""
    return release.certificate.task.loss.link in ("logistic", "softmax")
