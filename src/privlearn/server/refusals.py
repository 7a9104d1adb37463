"""Errors of the service in addition to those of `privlearn.errors`; each is one kind of HTTP problem.

PrivlearnError
└── Refusal
    ├── AccessRefused   no key, or an unknown, expired or revoked one: the message does not tell which
    ├── Forbidden       a valid key without the right to do this
    ├── NotFound        nothing with this name, or nothing that this key may see: the message does not tell which
    ├── Conflict        contradicts an earlier action
    ├── TooLarge        exceeds the holder's limits of size
    ├── TooMany         exceeds the holder's limits of frequency
    └── Busy            others use the capacity at the moment
"""

from __future__ import annotations

from privlearn.errors import PrivlearnError


class Refusal(PrivlearnError):
    """A request that is refused and costs nothing."""


class AccessRefused(Refusal):
    """The caller has no valid key."""


class Forbidden(Refusal):
    """The caller's key is valid, but not for this."""


class NotFound(Refusal):
    """There is nothing of that name that the caller may see."""


class Conflict(Refusal):
    """The request contradicts an earlier action."""


class TooLarge(Refusal):
    """The request is larger than the holder's limits allow."""


class TooMany(Refusal):
    """Requests come more often than the holder's limits allow."""


class Busy(Refusal):
    """The capacity that this needs is in use; it will be free again."""
