"""One list of kernels and one of feature maps; the contract tests run over both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.features import (
    FeatureMap,
    FourierFeatures,
    Kernel,
    LandmarkFeatures,
    ShiftInvariantKernel,
    UnitLandmarkFeatures,
    kernel_from_name,
)

COLUMNS = 5
VECTOR_KERNELS = [
    kernel_from_name("linear"),
    kernel_from_name("polynomial"),
    kernel_from_name("polynomial", gamma=0.3, degree=2, coef0=0.0),
    kernel_from_name("polynomial", gamma=2.0, degree=7, coef0=0.5),
    kernel_from_name("rbf", gamma=2.0),
    kernel_from_name("laplacian", gamma=0.7),
    kernel_from_name("cauchy", gamma=1.5),
]
SHIFT_INVARIANT = [kernel for kernel in VECTOR_KERNELS if isinstance(kernel, ShiftInvariantKernel)]
WORDS = ["anemia", "angina", "asthma", "fever", "anaemia", "", "a", "anginal pain", "fever and asthma"]


def spectrum(texts: Sequence[str], others: Sequence[str]) -> NDArray[np.float64]:
    """Return the share of letter pairs that two texts have in common: cosine of their counts, k(x, x) <= 1."""

    def profile(text: str) -> dict[str, float]:
        counts = Counter(a + b for a, b in pairwise(text))
        norm = sum(count**2 for count in counts.values()) ** 0.5
        return {pair: count / norm for pair, count in counts.items()}

    left, right = [profile(text) for text in texts], [profile(text) for text in others]
    return np.array([[sum(x[pair] * z.get(pair, 0.0) for pair in x) for z in right] for x in left])


def ball(count: int, seed: int = 0, columns: int = COLUMNS) -> NDArray[np.float64]:
    """Points of norm at most 1, half of them on the sphere."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(count, columns))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points[::2] *= random.random((len(points[::2]), 1))
    return points


def maps() -> list[tuple[str, FeatureMap, Any]]:
    """Return a name, a map and points for each kind of map."""
    text_kernel = Kernel.from_callable(spectrum, bound=1.0)
    gram = kernel_from_name("rbf")(ball(40), ball(40))
    return [
        *[(f"fourier {k.name}", FourierFeatures(k, COLUMNS, 37, 1), ball(40)) for k in SHIFT_INVARIANT],
        *[(f"landmarks {k}", LandmarkFeatures(k, ball(15, 1)), ball(40)) for k in VECTOR_KERNELS],
        ("landmarks on texts", LandmarkFeatures(text_kernel, WORDS[:6]), WORDS * 4),
        (
            "landmarks precomputed",
            LandmarkFeatures(kernel_from_name("precomputed", bound=1.0), gram[:12, :12]),
            gram[:, :12],
        ),
        *[
            (f"unit landmarks {k}", UnitLandmarkFeatures(LandmarkFeatures(k, ball(15, 1))), ball(40))
            for k in VECTOR_KERNELS
        ],
        (
            "unit landmarks on texts",
            UnitLandmarkFeatures(LandmarkFeatures(text_kernel, WORDS[:6])),
            WORDS * 4,
        ),
    ]


def exact_squares(rows: NDArray[Any]) -> list[Fraction]:
    """Squared norms without any rounding."""
    return [sum((Fraction(float(value)) ** 2 for value in row), Fraction(0)) for row in rows]
