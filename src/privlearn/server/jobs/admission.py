"""What a request must satisfy before it is priced and becomes a job, and its line in the log."""

from __future__ import annotations

import json
import unicodedata
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from privlearn.errors import InvalidParameter
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.job_kinds.job_kind import AnyJobKind, JobContext, job_kind
from privlearn.server.jobs.requests import Job, JobRequest
from privlearn.server.refusals import TooLarge
from privlearn.server.store import events

MAX_TEXT_LENGTHS = {"note": 200, "purpose": 500, "legal_basis": 200}
"""Maximum length of each text of a request, which must be one line."""
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that are invisible."""
MAX_FIELD_BYTES = 16 * 1024
"""Size of a request's fields as JSON: they are stored, logged and listed with every job."""


def check_request(kind: AnyJobKind, request: JobRequest) -> None:
    """Refuse points that the kind does not take, and fields and texts that are too long."""
    if request.points is not None and not kind.takes_points:
        raise InvalidParameter(f"{kind.title} takes no public points. Omit them.")
    if len(json.dumps(dict(request.fields))) > MAX_FIELD_BYTES:
        raise TooLarge(f"the fields are longer than {MAX_FIELD_BYTES} bytes as JSON. Send shorter ones.")
    for name, length in MAX_TEXT_LENGTHS.items():
        text = getattr(request, name)
        if len(text) > length or not text.isprintable():
            raise InvalidParameter(f"{name} must be one line of at most {length} characters. Shorten it.")


def check_guarantee(context: JobContext[Any]) -> None:
    """Check a guarantee against the rules for every kind of job."""
    if context.offered.settings.retired:
        raise InvalidParameter(
            f"data set {context.offered.name!r} is retired. It takes no new requests; its results remain."
        )
    if not context.guarantee.is_private:
        raise InvalidParameter("epsilon must be finite. The server gives out private results only.")
    minimum = context.offered.settings.least_epsilon
    if context.guarantee.epsilon < minimum:
        raise InvalidParameter(f"epsilon must be at least {minimum:g}, the data set's minimum. Request more.")


def check_not_weak(context: JobContext[Any]) -> None:
    """Refuse a guarantee that hardly protects anyone, unless the holder allows it."""
    weak = context.offered.weakness(context.guarantee)
    if weak and not context.offered.settings.accept_weak_privacy:
        raise InvalidParameter(
            f"this guarantee is {weak}. The holder does not allow that. Use a smaller epsilon or delta."
        )


def time_to_approve(offered: OfferedDataSet, request: JobRequest) -> timedelta | None:
    """Return the time in which the request must be approved; ``None`` if it needs no approval."""
    approval = offered.settings.approval
    if request.trial or approval is None or not approval.is_needed(request.kind, request.epsilon):
        return None
    absent = [name for name in ("purpose", "legal_basis") if not _is_visible(getattr(request, name))]
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        raise InvalidParameter(
            f"{' and '.join(absent)} {verb} required. A second person must approve this request, and reads them."
        )
    return approval.timeout


def _is_visible(text: str) -> bool:
    """Return whether a text has anything to read: more than marks, spaces and fillers."""
    return any(letter not in _FILLERS and unicodedata.category(letter)[0] in "LNPS" for letter in text)


def record_request(store: str, request: JobRequest, version: int, connection: Connection, job: Job) -> None:
    """Write the log's line about a new job."""
    details = {**request.fields, "job": job.id, "trial": request.trial}
    details |= {"epsilon": request.epsilon, "delta": request.delta}
    details |= {name: getattr(request, name) for name in MAX_TEXT_LENGTHS if getattr(request, name)}
    details |= {"needs_approval_by": job.decide_by} if job.decide_by else {}
    details |= {"version": version} if version > 1 else {}
    action = f"asked for {job_kind(request.kind).title}"
    events.record_with(connection, store, job.analyst, action, request.dataset, **details)
