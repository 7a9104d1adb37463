"""What a session needs from the trusted side."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.mechanisms.kernel_task import KernelTask

Array = NDArray[np.float64]


class Learner(Protocol):
    """Functions in a kernel's space, found or to be found, such as `privlearn.estimators.kernel_learner.KernelLearner`.

    The public half may be shown to anyone, the private half to the session alone.
    """

    def facts(self, neighbours: str) -> KernelTask:
        """Public: what the mechanisms are calibrated by; a problem is a function."""

    def describe(self) -> dict[str, Any]:
        """Public: encoding, kernel, and labels or bounds of what is predicted, as plain JSON values."""

    def encode(self, data: Any) -> Array:
        """Public: points as rows of norm at most 1; refuses points beyond the kernel's bound."""

    def similarity(self, points: Array, others: Array) -> Array:
        """Public: the kernel, divided by its bound."""

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Public: the labels or numbers that scores stand for; a row a point, a column a function."""

    def values(self, points: Array) -> Array:
        """PRIVATE: the functions at encoded points; a row a point, a column a function."""

    def solve(self) -> None:
        """PRIVATE: find the functions, unless they are known."""

    def function_bytes(self) -> bytes:
        """PRIVATE: the functions' coefficients."""

    def training_digest(self) -> str:
        """PRIVATE: a digest of the training rows and labels."""

    def restore_function(self, content: bytes) -> None:
        """Take these coefficients instead of one's own."""
