"""Kernels on the rows of dense or CSR matrices, with scikit-learn's parameter names."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privlearn.errors import DataError, InvalidParameter, shown
from privlearn.features.kernel import Kernel, finite, is_finite, positive
from privlearn.features.points import Array, Points, as_points, inner_products, row_squares
from privlearn.features.separable import coordinate_sums


class VectorKernel(Kernel):
    """A kernel on vectors; subclasses write it for checked matrices."""

    def __call__(self, X: Any, Z: Any) -> Array:
        left, right = as_points(X), as_points(Z)
        if left.shape[1] != right.shape[1]:
            raise DataError(
                f"the points have {left.shape[1]} and {right.shape[1]} columns: give both the same"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(self._gram(left, right), self.name)

    @abstractmethod
    def _gram(self, X: Points, Z: Points) -> Array: ...


class ProductKernel(VectorKernel):
    """A non-decreasing function of <x, z>, so that its bound on the unit ball is its value at 1."""

    def diagonal(self, X: Any) -> Array:
        with np.errstate(over="ignore"):
            return self._bounded(self._of_products(row_squares(as_points(X))))

    def _gram(self, X: Points, Z: Points) -> Array:
        return self._of_products(inner_products(X, Z))

    @abstractmethod
    def _of_products(self, products: Array) -> Array: ...


@dataclass(frozen=True)
class LinearKernel(ProductKernel):
    """<x, z>."""

    name = "linear"
    bound = 1.0

    def _of_products(self, products: Array) -> Array:
        return products


@dataclass(frozen=True)
class PolynomialKernel(ProductKernel):
    """(gamma <x, z> + coef0)^degree; positive semidefinite because no coefficient is negative."""

    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0
    bound: float = field(init=False, repr=False)
    name = "polynomial"
    settings = ("gamma", "degree", "coef0")

    def __post_init__(self) -> None:
        if not isinstance(self.degree, numbers.Integral) or isinstance(self.degree, bool) or self.degree < 1:
            raise InvalidParameter(f"degree must be a whole number, at least 1, not {shown(self.degree)}")
        if not is_finite(self.coef0) or self.coef0 < 0:
            raise InvalidParameter(f"coef0 must be a finite number, at least 0, not {shown(self.coef0)}")
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "coef0", float(self.coef0))
        with np.errstate(over="ignore"):
            object.__setattr__(self, "bound", float(self._of_products(np.ones(1))[0]))
        positive("(gamma + coef0)^degree", self.bound)

    def _of_products(self, products: Array) -> Array:
        products *= self.gamma
        products += self.coef0
        power = products.copy()
        for _ in range(self.degree - 1):  # several times faster than ** for the degrees in use
            power *= products
        return power


@dataclass(frozen=True)
class ShiftInvariantKernel(VectorKernel):
    """A function of x - z that is 1 at 0; each of them has random Fourier features."""

    gamma: float = 1.0
    bound = 1.0
    settings = ("gamma",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))

    def diagonal(self, X: Any) -> Array:
        return np.ones(as_points(X).shape[0])


@dataclass(frozen=True)
class RBFKernel(ShiftInvariantKernel):
    """exp(-gamma |x - z|^2)."""

    name = "rbf"

    def _gram(self, X: Points, Z: Points) -> Array:
        squares = inner_products(X, Z)
        squares *= -2.0
        squares += row_squares(X)[:, np.newaxis]
        squares += row_squares(Z)
        np.maximum(squares, 0.0, out=squares)  # rounding can leave a distance just below 0; NaN stays NaN
        squares *= -self.gamma
        return np.exp(squares, out=squares)


@dataclass(frozen=True)
class LaplacianKernel(ShiftInvariantKernel):
    """exp(-gamma |x - z|_1)."""

    name = "laplacian"

    def _gram(self, X: Points, Z: Points) -> Array:
        return np.exp(-self.gamma * coordinate_sums(X, Z, np.abs))


@dataclass(frozen=True)
class CauchyKernel(ShiftInvariantKernel):
    """The product over coordinates of 1 / (1 + gamma^2 (x_j - z_j)^2)."""

    name = "cauchy"

    def _gram(self, X: Points, Z: Points) -> Array:
        return np.exp(-coordinate_sums(X, Z, self._negative_log))

    def _negative_log(self, differences: Array) -> Array:
        scaled = self.gamma * differences
        return np.log(1.0 + scaled * scaled)
