"""Rows that stay on the workers of a Dask cluster: only sums over them come back.

`rows.py` is what estimators take, `oracle.py` what mechanisms query; `remote_rows.py` is the caller's side and
`partition.py` the worker's; `sources.py` divides files and data frames; `workers.py` refuses unsafe clusters.
Imports estimators' rows and oracle, never an estimator. Start at `ClusterRows.training_rows`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.estimators.cluster.remote_rows import RemoteRows
    from privlearn.estimators.cluster.rows import ClusterRows, FeaturesOnCluster
else:
    __getattr__ = export_late(__name__)
