"""What the HTTP interface and the pages share: callers, bodies, limits, problems, logs and metrics.

Start with `limits` (sizes, times and rates), `callers` (FastAPI dependencies) and `problems` (errors as answers).
`media_types`, `arrow_streams` and `bodies` read what untrusted callers send; `capacity` is shared among them.
`connections` alone depends on uvicorn's internals. These modules may import `server.service` and what is below it.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.http.arrow_streams import write_arrow
    from privlearn.server.http.capacity import FairShare
    from privlearn.server.http.connections import GuardedConnection
    from privlearn.server.http.limits import Limiter
    from privlearn.server.http.logs import JsonLines, QueuedLines
    from privlearn.server.http.media_types import ARROW, CSV, JSON, PlainRows, memory_to_read, read_rows
    from privlearn.server.http.problems import PROBLEM_JSON, Malformed
else:
    __getattr__ = export_late(__name__)
