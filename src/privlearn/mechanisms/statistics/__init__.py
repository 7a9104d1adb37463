"""Noisy counts, means, quantiles and Hessians, one file per theorem.

Start with `counts.py`, the simplest. `discovery.py` estimates bounds and lists of a schema from `quantile.py`,
`histogram.py` and `tail_counts.py`; `centring.py`, `curvature.py`, `score_counts.py` and `score_odds.py` serve one
model each. May import `mechanisms` and `accounting`; layouts and files of results are in the package `statistics`.
"""
