"""Jobs from the request to the result: queue, approval, worker processes, and results.

Start with `requests`, the values; then `admission`, what is refused, `queue`, the states of a job in the store, and
`running`, the order in which a job is charged, computed and shown. `approvals` and `sessions` serve the other roles.
These modules may import `server.store`, `server.holder` and `server.job_kinds`, and nothing of HTTP except its log.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.jobs.requests import (
        Job,
        JobRequest,
        Predictions,
        ResultInfo,
        join_predictions,
        points_from_bytes,
    )
    from privlearn.server.jobs.running import run_job
else:
    __getattr__ = export_late(__name__)
