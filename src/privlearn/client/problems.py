"""What a server refuses, as the exceptions that it raised on its side.

They are those of `privlearn.errors` and `privlearn.service.refusals`, and two of the client's own:

PrivlearnError
├── Unreachable       no usable answer, however often it was tried
└── TrainingFailed    a training was accepted and ended without a result
"""

from __future__ import annotations

import re
from typing import Any

from privlearn import errors
from privlearn.errors import InvalidParameter, LedgerError, PrivlearnError
from privlearn.service import refusals
from privlearn.service.refusals import AccessRefused, Conflict, Forbidden, NotFound, TooLarge, TooMany


class Unreachable(PrivlearnError):
    """The server gives no usable answer."""


class TrainingFailed(PrivlearnError):
    """A training was accepted, and ended without a result; the message says whether its cost stands."""


_BY_STATUS: dict[int, type[PrivlearnError]] = {
    401: AccessRefused,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    429: TooMany,
    503: LedgerError,
}
_BY_NAME: dict[str, type[PrivlearnError]] = {
    name.lower(): kind
    for module in (errors, refusals)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, PrivlearnError)
}


def problem(status: int, body: Any) -> PrivlearnError:
    """The exception that an RFC 9457 problem stands for: by its type, or else by its status."""
    record = body if isinstance(body, dict) else {}
    name = re.split(r"[/:#]", str(record.get("type", "")))[-1].replace("-", "").lower()
    kind = _BY_NAME.get(name) or _BY_STATUS.get(status, InvalidParameter if status < 500 else Unreachable)
    detail = record.get("detail") or record.get("title") or f"the server answered with status {status}"
    return kind(str(detail))
