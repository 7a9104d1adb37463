"""The kernels with a name: linear, polynomial, RBF, Laplacian, Cauchy and precomputed, and their registry."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from privlearn.arrays import Array, is_sparse
from privlearn.errors import DataError, InvalidParameter, did_you_mean, preview
from privlearn.features.kernel import (
    UNIT_ROUNDOFF,
    CallableKernel,
    Function,
    Kernel,
    Points,
    PrecomputedKernel,
    as_points,
    finite,
    inner_products,
    is_finite,
    positive,
    row_squares,
)
from privlearn.imports import look_up, register, sparse, special

IN_CACHE = 16  # rows of a Gram matrix that stay in the cache from one step to the next

Term = Callable[[Array], Array]


def coordinate_sums(X: Points, Z: Points, term: Term) -> Array:
    """Return ``sum_j term(x_j - z_j)`` for every x of X and z of Z.

    Parameters
    ----------
    X, Z : dense or CSR matrices with the same number of columns
    term : function of an array
        With ``term(0) = 0``, so that only different coordinates count.
    """
    if is_sparse(X) or is_sparse(Z):
        return _sparse_sums(sparse.csr_array(X), sparse.csr_array(Z), term)
    sums = np.zeros((len(X), len(Z)))
    for left, right in zip(X.T, Z.T, strict=True):
        sums += term(np.subtract.outer(left, right))
    return sums


def _sparse_sums(X: sparse.csr_array, Z: sparse.csr_array, term: Term) -> Array:
    """Return the sums for x = 0, corrected at the entries of x: needs memory only for the entries of X."""
    owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    sums = np.empty((X.shape[0], Z.shape[0]))
    point = np.zeros(Z.shape[1])
    for row in range(Z.shape[0]):
        entries = slice(Z.indptr[row], Z.indptr[row + 1])
        columns, values = Z.indices[entries], Z.data[entries]
        point[columns] = values
        matching = point[X.indices]
        corrections = term(X.data - matching) - term(-matching)
        sums[:, row] = np.bincount(owner, corrections, minlength=X.shape[0]) + term(-values).sum()
        point[columns] = 0.0
    return sums


class VectorKernel(Kernel):
    """A kernel on vectors; subclasses write it for checked matrices."""

    is_row_local = True  # in blocks of equal size, which `in_equal_blocks` makes

    def __call__(self, X: Any, Z: Any) -> Array:
        return self.towards(Z)(X)

    def towards(self, Z: Any) -> Callable[[Any], Array]:
        right = as_points(Z)
        gram = self._gram_towards(right)

        def values(X: Any) -> Array:
            left = as_points(X)
            if left.shape[1] != right.shape[1]:
                raise DataError(
                    f"the points have {left.shape[1]} and {right.shape[1]} columns. Pass both with the same columns."
                )
            with np.errstate(over="ignore", invalid="ignore"):
                return finite(gram(left), self.name)

        return values

    def _gram_towards(self, Z: Points) -> Callable[[Points], Array]:
        return lambda X: self._gram(X, Z)

    @abstractmethod
    def _gram(self, X: Points, Z: Points) -> Array: ...


KERNELS: dict[str, type[Any]] = {}

Kind = TypeVar("Kind", bound=type[Kernel])


def register_kernel(kind: Kind) -> Kind:
    """Register a kernel under its name, for estimators, releases and the shell."""
    register(KERNELS, getattr(kind, "name", kind.__name__), kind, "kernel", ("name", "bound"))
    return kind


class ProductKernel(VectorKernel):
    """A non-decreasing function of <x, z>, so that its bound on the unit ball is its value at 1.

    The error of an inner product of d terms is at most d u, with the unit roundoff u. `product_rounding` is twice that
    for d + 4 terms, to cover a few more steps.
    """

    @staticmethod
    def product_rounding(dimension: int) -> float:
        return 2.0 * (dimension + 4) * UNIT_ROUNDOFF

    def diagonal(self, X: Any) -> Array:
        with np.errstate(over="ignore"):
            return self._check_bound(self._of_products(row_squares(as_points(X))))

    def _gram(self, X: Points, Z: Points) -> Array:
        return self._of_products(inner_products(X, Z))

    @abstractmethod
    def _of_products(self, products: Array) -> Array: ...


@register_kernel
@dataclass(frozen=True)
class LinearKernel(ProductKernel):
    """<x, z>.

    Examples
    --------
    >>> LinearKernel()([[0.6, 0.8]], [[1.0, 0.0], [0.6, 0.8]]).round(4).tolist()
    [[0.6, 1.0]]
    """

    name = "linear"
    bound = 1.0

    def rounding(self, dimension: int) -> float:
        return self.product_rounding(dimension)

    def _of_products(self, products: Array) -> Array:
        return products


@register_kernel
@dataclass(frozen=True)
class PolynomialKernel(ProductKernel):
    """(gamma <x, z> + coef0)^degree; positive semidefinite because no coefficient is negative.

    Examples
    --------
    >>> PolynomialKernel(degree=2)([[0.6, 0.8]], [[1.0, 0.0], [0.6, 0.8]]).round(4).tolist()
    [[2.56, 4.0]]
    """

    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0
    bound: float = field(init=False, repr=False)
    name = "polynomial"
    settings = ("gamma", "degree", "coef0")

    def __post_init__(self) -> None:
        if not isinstance(self.degree, numbers.Integral) or isinstance(self.degree, bool) or self.degree < 1:
            raise InvalidParameter(f"degree must be a whole number, at least 1, not {preview(self.degree)}")
        if not is_finite(self.coef0) or self.coef0 < 0:
            raise InvalidParameter(f"coef0 must be a finite number, at least 0, not {preview(self.coef0)}")
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "coef0", float(self.coef0))
        with np.errstate(over="ignore"):
            object.__setattr__(self, "bound", float(self._of_products(np.ones(1))[0]))
        positive("(gamma + coef0)^degree", self.bound)

    def rounding(self, dimension: int) -> float:
        return self.degree * self.product_rounding(dimension)

    def _of_products(self, products: Array) -> Array:
        products *= self.gamma
        products += self.coef0
        power = products.copy()
        for _ in range(self.degree - 1):  # several times faster than ** for the degrees in use
            power *= products
        return power


@dataclass(frozen=True)
class ShiftInvariantKernel(VectorKernel):
    """A function of x - z that is 1 at 0; every such kernel has random Fourier features.

    Rounding, with the unit roundoff u: a sum s over the d coordinates of dense rows has no negative term, so its error
    is at most (d + 2) u s + d u. The error of exp(-s) is then at most (2 d + 2) u, because s exp(-s) < 1. `rounding` is
    more than twice that.
    """

    gamma: float = 1.0
    bound = 1.0
    settings = ("gamma",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))

    def diagonal(self, X: Any) -> Array:
        return np.ones(as_points(X).shape[0])

    def rounding(self, dimension: int) -> float:
        return 4.0 * (dimension + 4) * UNIT_ROUNDOFF

    @abstractmethod
    def frequencies(self, uniform: Array) -> Array:
        """Return quantiles of the distribution whose characteristic function is one coordinate of the kernel."""


@register_kernel
@dataclass(frozen=True)
class RBFKernel(ShiftInvariantKernel):
    """exp(-gamma |x - z|^2). Rounding: a squared distance errs by (4 d + 12) u, doubled.

    Examples
    --------
    >>> RBFKernel(gamma=2.0)([[0.6, 0.8]], [[1.0, 0.0], [0.6, 0.8]]).round(4).tolist()
    [[0.2019, 1.0]]
    """

    name = "rbf"

    def rounding(self, dimension: int) -> float:
        return 8.0 * (self.gamma + 1.0) * (dimension + 4) * UNIT_ROUNDOFF

    def frequencies(self, uniform: Array) -> Array:
        quantiles: Array = math.sqrt(2.0 * self.gamma) * special.ndtri(uniform)
        return quantiles

    def _gram_towards(self, Z: Points) -> Callable[[Points], Array]:
        squares = row_squares(Z)
        return lambda X: self._of_squares(X, Z, squares)

    def _gram(self, X: Points, Z: Points) -> Array:
        return self._gram_towards(Z)(X)

    def _of_squares(self, X: Points, Z: Points, right: Array) -> Array:
        values, left = inner_products(X, Z), row_squares(X)[:, np.newaxis]
        for start in range(0, len(values), IN_CACHE):
            rows = values[start : start + IN_CACHE]
            rows *= -2.0
            rows += left[start : start + IN_CACHE]
            rows += right
            np.maximum(rows, 0.0, out=rows)  # rounding can leave a distance just below 0; NaN stays NaN
            rows *= -self.gamma
            np.exp(rows, out=rows)
        return values


@register_kernel
@dataclass(frozen=True)
class LaplacianKernel(ShiftInvariantKernel):
    """exp(-gamma |x - z|_1).

    Examples
    --------
    >>> LaplacianKernel(gamma=2.0)([[0.6, 0.8]], [[1.0, 0.0], [0.6, 0.8]]).round(4).tolist()
    [[0.0907, 1.0]]
    """

    name = "laplacian"

    def frequencies(self, uniform: Array) -> Array:
        quantiles: Array = self.gamma * np.tan(np.pi * (uniform - 0.5))
        return quantiles

    def _gram(self, X: Points, Z: Points) -> Array:
        return np.exp(-self.gamma * coordinate_sums(X, Z, np.abs))


@register_kernel
@dataclass(frozen=True)
class CauchyKernel(ShiftInvariantKernel):
    """The product over coordinates of 1 / (1 + gamma^2 (x_j - z_j)^2).

    Examples
    --------
    >>> CauchyKernel(gamma=2.0)([[0.6, 0.8]], [[1.0, 0.0], [0.6, 0.8]]).round(4).tolist()
    [[0.1713, 1.0]]
    """

    name = "cauchy"

    def frequencies(self, uniform: Array) -> Array:
        size = -np.log(1.0 - np.abs(2.0 * uniform - 1.0))
        quantiles: Array = self.gamma * np.sign(uniform - 0.5) * size
        return quantiles

    def _gram(self, X: Points, Z: Points) -> Array:
        return np.exp(-coordinate_sums(X, Z, self._negative_log))

    def _negative_log(self, differences: Array) -> Array:
        scaled = self.gamma * differences
        return np.log(1.0 + scaled * scaled)


register_kernel(PrecomputedKernel)


def kernel_names(family: Any = Kernel) -> list[str]:
    """Return the names of the registered kernels of a family that need no bound from the caller."""
    return [
        name for name, kind in KERNELS.items() if issubclass(kind, family) and "bound" not in kind.settings
    ]


def check_kernel_name(name: str) -> str:
    """Return the name of a kernel that has only numbers as settings; refuse other names."""
    if name not in kernel_names():
        known = kernel_names()
        hint = did_you_mean(name, known)
        raise InvalidParameter(f"must be one of {', '.join(known)}, not {preview(name)}{hint}")
    return name


def kernel_from_name(
    kernel: str | Kernel | Function,
    *,
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
    bound: float | None = None,
) -> Kernel:
    """Return the kernel for an estimator's parameters; parameters that it does not have are ignored.

    Parameters
    ----------
    kernel : a name in KERNELS, a Kernel, or a function of (X, Z)
    gamma, degree, coef0
        As in scikit-learn, but always numbers: gamma="scale" would read the data's variance.
    bound : float, optional
        Bound of k(x, x), for "precomputed" and functions, which do not have one.

    Examples
    --------
    >>> kernel_from_name("polynomial", gamma=0.5, degree=2).bound
    2.25
    """
    if isinstance(kernel, Kernel):
        if not isinstance(kernel, CallableKernel) and KERNELS.get(kernel.name) is not type(kernel):
            raise InvalidParameter(
                f"the kernel {kernel.name!r} is not registered, and a release with it could not be read. Call "
                "register_kernel with its class first."
            )
        return kernel
    if callable(kernel):
        return Kernel.from_callable(kernel, bound=_require_bound(bound))
    kind = KERNELS.get("polynomial" if kernel == "poly" else kernel) if isinstance(kernel, str) else None
    if kind is None:
        raise InvalidParameter(
            f"kernel must be one of {', '.join(KERNELS)} or a function, not {preview(kernel)}"
            f"{did_you_mean(kernel, KERNELS)}"
        )
    parameters: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0}
    if "bound" in kind.settings:
        parameters["bound"] = _require_bound(bound)
    elif bound is not None:
        raise InvalidParameter(f"the kernel {kernel!r} has a known bound. Omit kernel_bound.")
    own = [setting for setting in kind.settings if setting not in parameters]
    if own:
        raise InvalidParameter(
            f"the kernel {kernel!r} has further settings, {', '.join(own)}. Pass a kernel object instead."
        )
    result: Kernel = kind(**{setting: parameters[setting] for setting in kind.settings})
    return result


def kernel_from_dict(content: Mapping[str, Any], function: Function | None = None) -> Kernel:
    """Return the kernel that ``to_dict`` described; the function of a custom kernel has to be passed again."""
    settings = dict(content) if isinstance(content, Mapping) else {}
    name = settings.pop("kernel", None)
    if name == "callable" and set(settings) == {"name", "bound"}:
        if function is None:
            raise InvalidParameter(f"the kernel {settings['name']!r} is a function. Pass function=...")
        return Kernel.from_callable(function, **settings)
    kind = look_up(KERNELS, name, "kernel") if isinstance(name, str) else None
    if kind is None or set(settings) != set(kind.settings):
        raise InvalidParameter("this does not describe a kernel. Pass what Kernel.to_dict() returns.")
    result: Kernel = kind(**settings)
    return result


def _require_bound(bound: float | None) -> float:
    if bound is None:
        raise InvalidParameter(
            "state the maximum of k(x, x), from public knowledge: kernel_bound=1.0 for a kernel with k(x, x) = 1"
        )
    return bound
