"""API keys: create, revoke, list and check them.

A key is ``pl_<id>_<secret>``. The secret has 256 random bits, so its SHA-256 reveals nothing and no slow hash is
needed; only the hash is stored, and compared in constant time. Unknown, expired and revoked keys get the same
answer, after the same database access.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, get_args

from sqlalchemy import Connection, Row, insert, select, update

from privlearn.budget.storage import excluding, reading
from privlearn.errors import InvalidParameter
from privlearn.server.refusals import AccessRefused, Conflict, NotFound
from privlearn.server.store.tables import keys
from privlearn.server.timing import as_text, now
from privlearn.server.ttl_cache import TtlCache

HOLDER, MONITOR = "holder", "monitor"
"""Their names in logs, which no person may have."""


PersonRole = Literal["holder", "analyst", "approver", "auditor"]
Role = Literal[PersonRole, "monitor"]
"""An approver decides on requests of others, an auditor reads log, requests and budgets and changes nothing. A monitor
is a program: it reads `/metrics` and nothing else."""

_NAMED = ("analyst", "approver", "auditor")
_LIMITED = ("analyst", "approver")
_MAX_NAME_LENGTH = 200
_WHOSE = "a key needs the role holder or monitor, or the role and name of an analyst, approver or auditor"

LOCK = "keys"
_FORM = re.compile(r"pl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_NO_HASH = "0" * 64  # no known text has this SHA-256
_COLUMNS = [column for column in keys.c if column.name != "secret_hash"]


@dataclass(frozen=True)
class Caller:
    """The authenticated caller of a request.

    ``person``: the owner of the key, or the person signed in at the provider; empty for a key of the holder or of a
    monitor. ``datasets``: the data sets that the key is restricted to; ``None``: all of which the analyst has a
    share, or all.
    """

    key_id: str
    role: Role
    person: str = ""
    datasets: frozenset[str] | None = None

    @property
    def is_holder(self) -> bool:
        return self.role == "holder"

    @property
    def analyst(self) -> str:
        """The analyst whose share is spent; empty for other roles."""
        return self.person if self.role == "analyst" else ""

    @property
    def sees_requests(self) -> bool:
        """Return whether the caller sees the requests and costs of all analysts."""
        return self.role in ("holder", "approver", "auditor")

    @property
    def account(self) -> str:
        """The account whose budget the caller sees: an analyst's share, or everything."""
        return self.analyst or HOLDER

    @property
    def name(self) -> str:
        """The name in the log."""
        return self.person if self.role in _NAMED else self.role


@dataclass(frozen=True)
class KeyInfo:
    """A key without its secret; times are ISO UTC, or empty."""

    caller: Caller
    created: str
    expires: str
    revoked: str

    @property
    def is_valid(self) -> bool:
        return not self.revoked and (not self.expires or as_text(now()) < self.expires)


def create_key(
    store: str,
    role: Role,
    person: str = "",
    datasets: Sequence[str] | None = None,
    expires: datetime | None = None,
) -> str:
    """Create a key and return it; it cannot be shown again.

    ``person``: name of the analyst, approver or auditor. ``datasets``: restricts the key of an analyst or approver to
    these data sets. ``expires``: with a time zone.
    """
    with excluding(store, LOCK) as connection:
        return insert_key(connection, role, person, datasets, expires)


def insert_key(
    connection: Connection,
    role: Role,
    person: str = "",
    datasets: Sequence[str] | None = None,
    expires: datetime | None = None,
    key_id: str = "",
) -> str:
    """Create a key inside a transaction. A given id can be used once."""
    if role not in get_args(Role) or (role in _NAMED) != bool(person) or person in (HOLDER, MONITOR):
        raise InvalidParameter(f"{_WHOSE}. Choose one.")
    if not person.isprintable() or len(person) > _MAX_NAME_LENGTH:
        raise InvalidParameter(f"a name is one line of at most {_MAX_NAME_LENGTH} characters. Shorten it")
    if role not in _LIMITED and datasets is not None:
        raise InvalidParameter(f"a key for the {role} cannot be restricted to data sets. Leave them out.")
    if expires is not None and (expires.tzinfo is None or expires <= now()):
        raise InvalidParameter("expires must be in the future, with a time zone. Give a later time.")
    key_id, secret = key_id or secrets.token_hex(8), secrets.token_urlsafe(32)
    if connection.scalar(select(keys.c.id).where(keys.c.id == key_id)) is not None:
        raise Conflict("this key was already created, and is shown only once. Revoke it, and create another.")
    connection.execute(
        insert(keys).values(
            id=key_id,
            role=role,
            analyst=person,
            datasets=None if datasets is None else sorted(datasets),
            secret_hash=hash_secret(secret),
            created=as_text(now()),
            expires="" if expires is None else as_text(expires.astimezone(now().tzinfo)),
        )
    )
    return f"pl_{key_id}_{secret}"


def revoke_key(store: str, key_id: str) -> None:
    """Make a key useless: here at once, in other server processes within 5 seconds."""
    with excluding(store, LOCK) as connection:
        end_key(connection, key_id)
    forget_keys()


def end_key(connection: Connection, key_id: str) -> None:
    """Revoke a key inside a transaction."""
    if not find_key(connection, key_id).revoked:
        connection.execute(update(keys).where(keys.c.id == key_id).values(revoked=as_text(now())))


def shorten_expiry(connection: Connection, key_id: str, at: datetime) -> None:
    """Let a key expire at this moment, unless it expires earlier."""
    ends = min(as_text(at), find_key(connection, key_id).expires or "9")
    connection.execute(update(keys).where(keys.c.id == key_id).values(expires=ends))


def find_key(connection: Connection, key_id: str) -> KeyInfo:
    """Return a key without its secret."""
    found = connection.execute(select(*_COLUMNS).where(keys.c.id == key_id)).one_or_none()
    if found is None:
        raise NotFound(f"there is no key {key_id!r}. List the keys with `privlearn keys list`.")
    return _info(found)


def forget_keys() -> None:
    """Empty the cache of keys after a change."""
    _CACHE.forget()


def key_changes() -> int:
    """Return how often keys were changed in this process; what was read at a lower number may be out of date."""
    return _CACHE.changes


def list_keys(store: str) -> list[KeyInfo]:
    """Return all keys that were ever created, oldest first."""
    with reading(store) as connection:
        return [_info(row) for row in connection.execute(select(*_COLUMNS).order_by(keys.c.created))]


def authenticate(store: str, text: str) -> Caller:
    """Return the caller whose key this is.

    Raises
    ------
    AccessRefused
        If the key is unknown, malformed, expired or revoked; the message does not tell which.
    """
    return cached_caller(store, text) or look_up_caller(store, text)


def look_up_caller(store: str, text: str) -> Caller:
    """Return the caller whose key this is, as `authenticate` does, from the database."""
    key_id, secret = _parts(text)
    callers: list[Caller] = []

    def look_up() -> tuple[str, KeyInfo]:
        # Refused keys are always looked up, so that existing and unknown ids take the same time.
        found = _look_up(store, key_id)
        callers.append(_require_valid(_check_secret(found, secret)))
        assert found is not None  # else it was refused
        return found

    _CACHE.refresh((store, key_id), look_up)
    return callers[0]


def cached_caller(store: str, text: str) -> Caller | None:
    """Return the caller without a database access; ``None`` if the key is to be looked up."""
    key_id, secret = _parts(text)
    cached = _check_secret(_CACHE.peek((store, key_id)), secret)
    return None if cached is None or _CACHE.claim((store, key_id)) else _require_valid(cached)


def caller_of_key(store: str, key_id: str) -> Caller:
    """Return the caller with this key id, if the key is still valid; the key itself was shown earlier."""
    found = _CACHE.get((store, key_id), lambda: _look_up(store, key_id))
    return _require_valid(found and found[1])


def _parts(text: str) -> tuple[str, str]:
    """Return the id and the secret of a key."""
    form = _FORM.fullmatch(text)
    return (form[1], form[2]) if form else ("", "")


def _check_secret(found: tuple[str, KeyInfo] | None, secret: str) -> KeyInfo | None:
    """Return the key if the secret is right."""
    expected, info = found or (_NO_HASH, None)
    same = hmac.compare_digest(expected, hash_secret(secret))
    return info if same else None


def hash_secret(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _require_valid(info: KeyInfo | None) -> Caller:
    if info is None or not info.is_valid:
        raise AccessRefused("this key is not valid. Check that it is complete, or ask the holder for one.")
    return info.caller


def _look_up(store: str, key_id: str) -> tuple[str, KeyInfo] | None:
    with reading(store) as connection:
        row = connection.execute(select(keys).where(keys.c.id == key_id)).one_or_none()
    return None if row is None else (row.secret_hash, _info(row))


def _info(row: Row[Any]) -> KeyInfo:
    only = None if row.datasets is None else frozenset(row.datasets)
    return KeyInfo(Caller(row.id, row.role, row.analyst, only), row.created, row.expires, row.revoked)


_CACHE: TtlCache[tuple[str, str], tuple[str, KeyInfo]] = TtlCache(seconds=5.0, max_entries=1000)
