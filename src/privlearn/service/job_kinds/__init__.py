"""The kinds of job that a server does, one file each, and the one list of them."""

from privlearn.service.job_kinds.describe import DESCRIBE
from privlearn.service.job_kinds.evaluate import EVALUATE
from privlearn.service.job_kinds.job_kind import (
    JOB_KINDS,
    AnyJobKind,
    Asked,
    JobFields,
    JobKind,
    Plan,
    job_kind,
    load_job_kinds,
    register_job_kind,
)
from privlearn.service.job_kinds.release import GIVE_OUT_RELEASE
from privlearn.service.job_kinds.session import OPEN_SESSION
from privlearn.service.jobs.requests import Result

__all__ = [
    "DESCRIBE",
    "EVALUATE",
    "GIVE_OUT_RELEASE",
    "JOB_KINDS",
    "OPEN_SESSION",
    "AnyJobKind",
    "Asked",
    "JobFields",
    "JobKind",
    "Plan",
    "Result",
    "job_kind",
    "load_job_kinds",
    "register_job_kind",
]
