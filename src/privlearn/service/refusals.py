"""What the service says no to, beside the errors of `privlearn.errors`: each is one kind of answer over HTTP.

PrivlearnError
└── Refusal
    ├── AccessRefused   no key, or one that is unknown, expired or revoked: which of these is not said
    ├── Forbidden       a key that may not do this
    ├── NotFound        nothing of that name, or nothing that this key may see: which of these is not said
    ├── Conflict        not now, or not again
    ├── TooLarge        more than the holder's limits allow
    ├── TooMany         more often than the holder's limits allow
    └── Busy            nobody's fault: others use what there is
"""

from __future__ import annotations

from privlearn.errors import PrivlearnError


class Refusal(PrivlearnError):
    """A request that is refused and costs nothing."""


class AccessRefused(Refusal):
    """The caller has not shown a valid key."""


class Forbidden(Refusal):
    """The caller's key is valid, but not for this."""


class NotFound(Refusal):
    """There is nothing of that name that the caller may see."""


class Conflict(Refusal):
    """The request contradicts what was done before."""


class TooLarge(Refusal):
    """The request is larger than the holder's limits allow."""


class TooMany(Refusal):
    """Requests come more often than the holder's limits allow."""


class Busy(Refusal):
    """Others use what this needs; it will be free again."""
