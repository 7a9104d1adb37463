"""An extension as a holder writes it: a module that registers a kernel when it is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privlearn.features import LaplacianKernel, register_kernel


@register_kernel
@dataclass(frozen=True)
class ToyKernel(LaplacianKernel):
    """The Laplacian kernel under another name."""

    name: ClassVar[str] = "toy"  # type: ignore[misc]
