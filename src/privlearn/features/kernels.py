"""The one list of kernels, and how a name or a dictionary becomes a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privlearn.errors import InvalidParameter, shown
from privlearn.features.kernel import Function, Kernel, PrecomputedKernel
from privlearn.features.vector_kernels import (
    CauchyKernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
)

KERNELS: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        LinearKernel,
        PolynomialKernel,
        RBFKernel,
        LaplacianKernel,
        CauchyKernel,
        PrecomputedKernel,
    )
}


def kernel_from_name(
    kernel: str | Kernel | Function,
    *,
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
    bound: float | None = None,
) -> Kernel:
    """The kernel that an estimator's parameters mean; each kernel takes the parameters that it has.

    Parameters
    ----------
    kernel : a name in KERNELS, a Kernel, or a function of (X, Z)
    gamma, degree, coef0
        As in scikit-learn, but always numbers: gamma="scale" would read the data's variance.
    bound : float, optional
        Of k(x, x), for "precomputed" and functions, which cannot know it.

    Examples
    --------
    >>> kernel_from_name("polynomial", gamma=0.5, degree=2).bound
    2.25
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Kernel.from_callable(kernel, bound=_declared(bound))
    kind = KERNELS.get(kernel) if isinstance(kernel, str) else None
    if kind is None:
        raise InvalidParameter(
            f"kernel must be one of {', '.join(KERNELS)} or a function, not {shown(kernel)}"
        )
    given: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0}
    if "bound" in kind.settings:
        given["bound"] = _declared(bound)
    elif bound is not None:
        raise InvalidParameter(f"the kernel {kernel!r} knows its bound: leave kernel_bound out")
    made: Kernel = kind(**{setting: given[setting] for setting in kind.settings})
    return made


def kernel_from_dict(content: Mapping[str, Any], function: Function | None = None) -> Kernel:
    """The kernel that ``to_dict`` described; the function of a user's own kernel has to be given again."""
    settings = dict(content) if isinstance(content, Mapping) else {}
    name = settings.pop("kernel", None)
    if name == "callable" and set(settings) == {"name", "bound"}:
        if function is None:
            raise InvalidParameter(f"the kernel {settings['name']!r} is a function: give function=...")
        return Kernel.from_callable(function, **settings)
    kind = KERNELS.get(str(name))
    if kind is None or set(settings) != set(kind.settings):
        raise InvalidParameter("this does not describe a kernel: take what Kernel.to_dict() returns")
    made: Kernel = kind(**settings)
    return made


def _declared(bound: float | None) -> float:
    if bound is None:
        raise InvalidParameter(
            "say how large k(x, x) can be, from public knowledge: kernel_bound=1.0 for a kernel with k(x, x) = 1"
        )
    return bound
