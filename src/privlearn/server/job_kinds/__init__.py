"""The kinds of job that a server does, one file each, and `JOB_KINDS`, their registry.

Start with `job_kind.JobKind`, the interface, then `describe`, the shortest kind. `training` has releases and sessions,
and calibrates and forecasts them. Kinds may import estimators, statistics, sessions and `server.holder`, and the
values of `server.jobs.requests`; the queue and the HTTP layer use them only through the registry.
"""

from privlearn.server.job_kinds.describe import DESCRIBE
from privlearn.server.job_kinds.evaluate import EVALUATE, Evaluate
from privlearn.server.job_kinds.job_kind import (
    JOB_KINDS,
    AnyJobKind,
    JobContext,
    JobFields,
    JobKind,
    Mechanism,
    job_kind,
    load_job_kinds,
    register_job_kind,
)
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.job_kinds.regression import REGRESSION
from privlearn.server.job_kinds.training import GIVE_OUT_RELEASE, OPEN_SESSION
from privlearn.server.jobs.requests import Result

__all__ = [
    "DESCRIBE", "EVALUATE", "GIVE_OUT_RELEASE", "JOB_KINDS", "OPEN_SESSION", "REGRESSION", "AnyJobKind", "Evaluate",
    "JobContext", "JobFields", "JobKind", "Mechanism", "PersonRows", "Result", "job_kind", "load_job_kinds",
    "register_job_kind",
]  # fmt: skip
