"""Changes of keys: issue them with an end, rotate them with an overlap, revoke them.

The holder's own keys are created only in the shell, so that a stolen login of the holder cannot create a lasting key.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, get_args

from sqlalchemy import Connection, select

from privlearn.budget.storage import reading
from privlearn.errors import InvalidParameter
from privlearn.server.access.keys import (
    Caller,
    KeyInfo,
    end_key,
    find_key,
    forget_keys,
    insert_key,
    shorten_expiry,
)
from privlearn.server.changes.analysts import find_analyst
from privlearn.server.changes.change import change_transaction
from privlearn.server.refusals import Conflict, Forbidden
from privlearn.server.service import Service
from privlearn.server.store.tables import events
from privlearn.server.timing import as_text, now

IssuedRole = Literal["analyst", "monitor"]
ISSUED_ROLES: tuple[str, ...] = get_args(IssuedRole)
MAX_OVERLAP_HOURS = 24 * 30
_ROTATED = "rotated a key"
"""The action in the log."""


def check_new_key(service: Service, role: IssuedRole, analyst: str, datasets: Sequence[str] | None) -> None:
    if role != "analyst":
        return
    found = find_analyst(service, analyst)
    if found.disabled:
        raise Conflict(f"analyst {analyst} is disabled. Enable them first")
    for name in datasets or ():
        if name not in found.shares:
            raise InvalidParameter(f"datasets: analyst {analyst} has no share of {name}. Give one first")


def issue_key(
    service: Service,
    caller: Caller,
    role: IssuedRole,
    analyst: str = "",
    datasets: Sequence[str] | None = None,
    expires: datetime | None = None,
    key_id: str = "",
) -> str:
    """Return a new key, which cannot be shown again; an id that is given can be used once."""
    check_new_key(service, role, analyst, datasets)
    details = {"of": analyst or role, "datasets": sorted(datasets or ()), "expires": _text(expires)}
    with change_transaction(service, caller, "created a key", **details) as connection:
        check_new_key(service, role, analyst, datasets)
        return insert_key(connection, role, analyst, datasets, expires, key_id)


def check_rotation(service: Service, key_id: str, overlap_hours: float) -> KeyInfo:
    """Return the key; refuse one that cannot be replaced."""
    with reading(service.store) as connection:
        return _check_rotation(connection, service, key_id, overlap_hours)


def _check_rotation(connection: Connection, service: Service, key_id: str, overlap_hours: float) -> KeyInfo:
    """Return the key, inside a transaction; refuse one that cannot be replaced."""
    found = find_key(connection, key_id)
    if found.caller.role not in ISSUED_ROLES:
        raise Forbidden("only keys of analysts and monitors can be created here. Use the shell for this one")
    if not found.is_valid:
        raise Conflict("this key is no longer valid. Issue a new one")
    if _is_rotated(connection, key_id):
        raise Conflict("this key was already rotated. Rotate the key that replaced it, or issue another")
    if not 0 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise InvalidParameter(f"overlap: must be 0 to {MAX_OVERLAP_HOURS} hours")
    if found.caller.analyst and find_analyst(service, found.caller.analyst).disabled:
        raise Conflict(f"analyst {found.caller.analyst} is disabled. Enable them first")
    return found


def rotate_key(
    service: Service,
    caller: Caller,
    key_id: str,
    overlap_hours: float,
    expires: datetime | None = None,
    new_id: str = "",
) -> str:
    """Return a new key for the same caller; the old one ends after the overlap. Its requests continue."""
    old, ends = check_rotation(service, key_id, overlap_hours).caller, now() + timedelta(hours=overlap_hours)
    details = {"of": old.name, "key": key_id, "old_ends": _text(ends), "expires": _text(expires)}
    only = None if old.datasets is None else sorted(old.datasets)
    with change_transaction(service, caller, _ROTATED, **details) as connection:
        _check_rotation(connection, service, key_id, overlap_hours)
        new_key = insert_key(connection, old.role, old.person, only, expires, new_id)
        shorten_expiry(connection, key_id, ends)
    forget_keys()
    return new_key


def _is_rotated(connection: Connection, key_id: str) -> bool:
    """Return whether the log has a rotation of this key; after the longest overlap the key has ended anyway."""
    since = as_text(now() - timedelta(hours=MAX_OVERLAP_HOURS))
    rotations = select(events.c.details).where(events.c.action == _ROTATED, events.c.time >= since)
    return any(details["key"] == key_id for details in connection.scalars(rotations))


def revoke_key(service: Service, caller: Caller, key_id: str) -> None:
    """Revoke a key; its waiting jobs end, unpaid."""
    if key_id == caller.key_id:
        raise Conflict("this is the key of your own request. Revoke it with another key, or in the shell")
    with change_transaction(service, caller, "revoked a key", key=key_id) as connection:
        if find_key(connection, key_id).revoked:
            raise Conflict("this key is revoked already")
        end_key(connection, key_id)
    forget_keys()


def find_key_info(service: Service, key_id: str) -> KeyInfo:
    with reading(service.store) as connection:
        return find_key(connection, key_id)


def end_of_day(text: str) -> datetime:
    """Return the end, in UTC, of a day such as 2027-01-31."""
    try:
        day = date.fromisoformat(text)
        return datetime.combine(day, time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise InvalidParameter("expires: this is not a date. Write it like 2027-01-31") from None


def _text(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat(timespec="minutes")
