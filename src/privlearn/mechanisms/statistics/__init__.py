"""Noisy counts, means, quantiles and Hessians, one file per theorem.

Start with `counts.py`, the simplest. `discovery.py` estimates bounds and lists of a schema from `quantile.py` and
`tail_counts.py`; `statistic.py`, `centring.py`, `locations.py`, `curvature.py` and `score_counts.py`
serve one model each. May import `mechanisms` and `accounting`; layouts and files of results are in the package
`statistics`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.mechanisms.statistics.centring import Centre, Centres, Centring
    from privlearn.mechanisms.statistics.discovery import (
        Discovery,
        frequent,
        rare_probability,
        rare_threshold,
    )
    from privlearn.mechanisms.statistics.locations import Grid, Locations, location_of
    from privlearn.mechanisms.statistics.score_counts import log_odds_at, log_odds_from_counts
    from privlearn.mechanisms.statistics.statistic import ClassCounts, count, scale_of_cost
else:
    __getattr__ = export_late(__name__)
