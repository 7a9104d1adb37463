"""gamma="auto": the width of the RBF kernel from how rows are encoded, never from the rows (docs/theory/fourier.md)."""

from __future__ import annotations

from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.release.encoders import RawEncoder

_WITHIN_RANGES = 0.5  # about the best of 0.25 to 32 on five tables, epsilon 0.1, 1 and 10
_OVER_COLUMNS = 24.0


def public_gamma(rows: RawEncoder | None) -> float:
    """Public: gamma of the RBF kernel.

    Rows under a schema or column_bounds have norm 1 and differ in most of their columns. Rows under a norm_bound crowd
    well within it if they have few columns, and fill it if they have many: 1 + 24 / columns. Of objects nothing is
    known: 1.
    """
    if isinstance(rows, ArrayEncoder):
        return 1.0 + _OVER_COLUMNS / rows.n_features
    return 1.0 if rows is None else _WITHIN_RANGES
