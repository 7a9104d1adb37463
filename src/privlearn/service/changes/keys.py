"""Keys: issued with an end, replaced by another after an overlap, revoked.

The holder's own keys are made in the shell alone: a stolen login of the holder's cannot outlive itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, get_args

from sqlalchemy import Connection, select

from privlearn.errors import InvalidParameter
from privlearn.service.access.keys import (
    Caller,
    KeyInfo,
    end_key,
    find_key,
    forget_keys,
    insert_key,
    let_expire,
)
from privlearn.service.changes.analysts import analyst_named
from privlearn.service.changes.change import changing
from privlearn.service.refusals import Conflict, Forbidden
from privlearn.service.service import Service
from privlearn.service.store.tables import events
from privlearn.service.timing import as_text, now
from privlearn.storage import reading

IssuedRole = Literal["analyst", "monitor"]
ISSUED_ROLES: tuple[str, ...] = get_args(IssuedRole)
MOST_OVERLAP_HOURS = 24 * 30
_ROTATED = "rotated a key"
"""In the log."""


def check_new_key(service: Service, role: IssuedRole, analyst: str, datasets: Sequence[str] | None) -> None:
    if role != "analyst":
        return
    found = analyst_named(service, analyst)
    if found.disabled:
        raise Conflict(f"analyst {analyst} is disabled: enable them first")
    for name in datasets or ():
        if name not in found.shares:
            raise InvalidParameter(f"datasets: analyst {analyst} has no share of {name}: give one first")


def issue_key(
    service: Service,
    caller: Caller,
    role: IssuedRole,
    analyst: str = "",
    datasets: Sequence[str] | None = None,
    expires: datetime | None = None,
    key_id: str = "",
) -> str:
    """A new key, which nobody can see again; under an id that is given, once."""
    check_new_key(service, role, analyst, datasets)
    told = {"of": analyst or role, "datasets": sorted(datasets or ()), "expires": _text(expires)}
    with changing(service, caller, "created a key", **told) as connection:
        check_new_key(service, role, analyst, datasets)
        return insert_key(connection, role, analyst, datasets, expires, key_id)


def check_rotation(service: Service, key_id: str, overlap_hours: float) -> KeyInfo:
    """Refuse what cannot be replaced; the key as it is."""
    with reading(service.store) as connection:
        return _check_rotation(connection, service, key_id, overlap_hours)


def _check_rotation(connection: Connection, service: Service, key_id: str, overlap_hours: float) -> KeyInfo:
    """The same inside a transaction."""
    found = find_key(connection, key_id)
    if found.caller.role not in ISSUED_ROLES:
        raise Forbidden("only keys of analysts and monitors are made here: make this one in the shell")
    if not found.is_valid:
        raise Conflict("this key opens nothing any more: issue another instead")
    if _is_rotated(connection, key_id):
        raise Conflict("this key is rotated already, and ends: rotate the one in its place, or issue another")
    if not 0 <= overlap_hours <= MOST_OVERLAP_HOURS:
        raise InvalidParameter(f"overlap: must be 0 to {MOST_OVERLAP_HOURS} hours")
    if found.caller.analyst and analyst_named(service, found.caller.analyst).disabled:
        raise Conflict(f"analyst {found.caller.analyst} is disabled: enable them first")
    return found


def rotate_key(
    service: Service,
    caller: Caller,
    key_id: str,
    overlap_hours: float,
    expires: datetime | None = None,
    new_id: str = "",
) -> str:
    """A new key for the same; the old one ends after the overlap. What it asked for goes on."""
    old, ends = check_rotation(service, key_id, overlap_hours).caller, now() + timedelta(hours=overlap_hours)
    told = {"of": old.name, "key": key_id, "old_ends": _text(ends), "expires": _text(expires)}
    only = None if old.datasets is None else sorted(old.datasets)
    with changing(service, caller, _ROTATED, **told) as connection:
        _check_rotation(connection, service, key_id, overlap_hours)
        made = insert_key(connection, old.role, old.person, only, expires, new_id)
        let_expire(connection, key_id, ends)
    forget_keys()
    return made


def _is_rotated(connection: Connection, key_id: str) -> bool:
    """By the log, of which the longest overlap is enough: after it the key is over."""
    since = as_text(now() - timedelta(hours=MOST_OVERLAP_HOURS))
    rotations = select(events.c.details).where(events.c.action == _ROTATED, events.c.time >= since)
    return any(told["key"] == key_id for told in connection.scalars(rotations))


def end(service: Service, caller: Caller, key_id: str) -> None:
    """Revoke a key; what it asked for and still waits ends, unpaid."""
    if key_id == caller.key_id:
        raise Conflict("this is the key that you ask with: revoke it with another, or in the shell")
    with changing(service, caller, "revoked a key", key=key_id) as connection:
        if find_key(connection, key_id).revoked:
            raise Conflict("this key is revoked already")
        end_key(connection, key_id)
    forget_keys()


def key_of(service: Service, key_id: str) -> KeyInfo:
    with reading(service.store) as connection:
        return find_key(connection, key_id)


def end_of_day(text: str) -> datetime:
    """The end, in UTC, of a day as browsers and programs send it."""
    try:
        day = date.fromisoformat(text)
        return datetime.combine(day, time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise InvalidParameter("expires: this is no day. Write it like 2027-01-31") from None


def _text(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat(timespec="minutes")
