"""Public: into how many bins scores and residuals are counted, and where these end."""

from __future__ import annotations

import numpy as np

from privlearn.arrays import Array


def bins_for(records: int, deviation: float) -> int:
    """Public: so many bins that neither their width nor their noise spoils the area under the curve; even.

    Bins lose about 1 / bins^2 of the area, the noise grows like sqrt(bins) deviation / records.
    """
    ratio = records / max(deviation, 1.0)
    return 2 * int(np.clip(round(0.45 * ratio**0.4), 4, 32))


def probability_edges(bins: int) -> Array:
    """Bins on which a probability is equally well known: even in arcsin(sqrt(p)), finer near 0 and 1."""
    edges = np.sin(np.pi / 2.0 * np.arange(bins + 1) / bins) ** 2
    edges[bins // 2], edges[-1] = 0.5, 1.0
    return edges


def even_edges(low: float, high: float, bins: int) -> Array:
    """Bins of one width."""
    return np.linspace(low, high, bins + 1)


def residual_edges(bound: float, records: int, deviation: float) -> Array:
    """Bins of residuals: even around 0, further out in geometric progression; a multiple of 4, none has 0 inside.

    The noise of a mean residual comes from the few outermost bins, so narrow ones around 0 cost nothing. They go down
    to what that noise hides, and neighbours differ by an eighth to a quarter, less where more is to be seen.
    """
    ratio = max(records / max(deviation, 1.0), 10.0)
    scale, step = np.arcsinh(ratio), np.clip(0.9 * ratio**-0.2, 0.14, 0.22)
    half = 2 * int(np.ceil(scale / step / 2.0))
    return np.asarray(bound * np.sinh(scale * np.arange(-half, half + 1) / half) / ratio)
