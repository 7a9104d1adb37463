"""Keys: what an analyst, the holder or another person shows to be let in.

A key is ``pl_<id>_<secret>``. The secret has 256 random bits, so that its SHA-256 says nothing about it and no slow
hash is needed; only the hash is stored, and compared in constant time. A key that is unknown, expired or revoked gets
one and the same answer, after the same look into the database.
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

from privlearn.errors import InvalidParameter
from privlearn.service.refusals import AccessRefused, Conflict, NotFound
from privlearn.service.store.tables import keys
from privlearn.service.timing import TtlCache, as_text, now
from privlearn.storage import excluding, reading

HOLDER, MONITOR = "holder", "monitor"
"""Their names in logs; nobody else may have one."""


PersonRole = Literal["holder", "analyst", "approver", "auditor"]
Role = Literal[PersonRole, "monitor"]
"""An approver decides on requests of others, an auditor reads log, requests and budgets and changes nothing. A monitor
is a program: it reads `/metrics` and nothing else."""

_NAMED = ("analyst", "approver", "auditor")
_LIMITED = ("analyst", "approver")
_LONGEST_NAME = 200
_WHOSE = "a key is the holder's, a monitor's, or that of an analyst, approver or auditor whose name is given"

LOCK = "keys"
_FORM = re.compile(r"pl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_NOBODY = "0" * 64  # no SHA-256 that anybody knows an origin of
_SHOWN = [column for column in keys.c if column.name != "secret_hash"]


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes
    ----------
    key_id : str
    role : {"holder", "analyst", "approver", "auditor", "monitor"}
    person : str
        Whom the key was made for, or whom the provider has let in; empty with a key of the holder or of a monitor.
    datasets : frozenset of str or None
        The only data sets that the key is good for; ``None``: all that the analyst has a share of, or that there are.
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
        """Whose share is spent; empty for those who are no analyst, whatever their name."""
        return self.person if self.role == "analyst" else ""

    @property
    def sees_requests(self) -> bool:
        """Whether it sees what everybody has asked for and spent."""
        return self.role in ("holder", "approver", "auditor")

    @property
    def account(self) -> str:
        """Whose part of a budget it looks at: an analyst's own share, or everything."""
        return self.analyst or HOLDER

    @property
    def name(self) -> str:
        """As it stands in the log."""
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
    """A new key, which nobody can see again.

    Parameters
    ----------
    store : str
    role : {"holder", "analyst", "approver", "auditor", "monitor"}
    person : str, optional
        Name of the analyst, approver or auditor.
    datasets : sequence of str, optional
        The only data sets that it is good for; of an analyst's or approver's key alone, the holder's opens everything.
    expires : datetime, optional
        With a time zone.
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
    """The same inside a transaction; whoever gives an id gets one key for it, however often they ask."""
    if role not in get_args(Role) or (role in _NAMED) != bool(person) or person in (HOLDER, MONITOR):
        raise InvalidParameter(f"{_WHOSE}: choose one")
    if not person.isprintable() or len(person) > _LONGEST_NAME:
        raise InvalidParameter(f"a name is one line of at most {_LONGEST_NAME} characters: shorten it")
    if role not in _LIMITED and datasets is not None:
        raise InvalidParameter(f"the {role}'s key is for none in particular: leave out the data sets")
    if expires is not None and (expires.tzinfo is None or expires <= now()):
        raise InvalidParameter("a key expires in the future, at a time with a time zone: give a later one")
    key_id, secret = key_id or secrets.token_hex(8), secrets.token_urlsafe(32)
    if connection.scalar(select(keys.c.id).where(keys.c.id == key_id)) is not None:
        raise Conflict("this key was made already, and is shown once: revoke it, and make another")
    connection.execute(
        insert(keys).values(
            id=key_id,
            role=role,
            analyst=person,
            datasets=None if datasets is None else sorted(datasets),
            secret_hash=hashed(secret),
            created=as_text(now()),
            expires="" if expires is None else as_text(expires.astimezone(now().tzinfo)),
        )
    )
    return f"pl_{key_id}_{secret}"


def revoke_key(store: str, key_id: str) -> None:
    """Make a key useless, here at once and in other server processes within 5 seconds."""
    with excluding(store, LOCK) as connection:
        end_key(connection, key_id)
    forget_keys()


def end_key(connection: Connection, key_id: str) -> None:
    """The same inside a transaction."""
    if not find_key(connection, key_id).revoked:
        connection.execute(update(keys).where(keys.c.id == key_id).values(revoked=as_text(now())))


def let_expire(connection: Connection, key_id: str, at: datetime) -> None:
    """A key ends at this moment, unless it ends before."""
    ends = min(as_text(at), find_key(connection, key_id).expires or "9")
    connection.execute(update(keys).where(keys.c.id == key_id).values(expires=ends))


def find_key(connection: Connection, key_id: str) -> KeyInfo:
    found = connection.execute(select(*_SHOWN).where(keys.c.id == key_id)).one_or_none()
    if found is None:
        raise NotFound(f"there is no key {key_id!r}: `privlearn keys list` shows them")
    return _info(found)


def forget_keys() -> None:
    """After a change: look again before the next answer."""
    _LOOKED_UP.forget()


def list_keys(store: str) -> list[KeyInfo]:
    """All keys that were ever made, oldest first."""
    with reading(store) as connection:
        return [_info(row) for row in connection.execute(select(*_SHOWN).order_by(keys.c.created))]


def authenticate(store: str, text: str) -> Caller:
    """Who shows this key.

    Raises
    ------
    AccessRefused
        For a key that is unknown, expired or revoked, or no key at all: the message does not say which.
    """
    remembered = known_caller(store, text)
    if remembered is not None:
        return remembered
    key_id, secret = _parts(text)
    # Whatever is refused is looked up: for an id that there is it takes as long as for one that there is not.
    found = _look_up(store, key_id)
    caller = _admitted(_shown(found, secret))
    _LOOKED_UP.get((store, key_id), lambda: found)
    return caller


def known_caller(store: str, text: str) -> Caller | None:
    """The same if it needs no look into the database; ``None`` otherwise."""
    key_id, secret = _parts(text)
    remembered = _shown(_LOOKED_UP.get((store, key_id), lambda: None), secret)
    return None if remembered is None else _admitted(remembered)


def caller_of_key(store: str, key_id: str) -> Caller:
    """Who has the key of this id, if it is still valid; for those who have shown the key itself before."""
    found = _LOOKED_UP.get((store, key_id), lambda: _look_up(store, key_id))
    return _admitted(found and found[1])


def _parts(text: str) -> tuple[str, str]:
    """Id and secret."""
    form = _FORM.fullmatch(text)
    return (form[1], form[2]) if form else ("", "")


def _shown(found: tuple[str, KeyInfo] | None, secret: str) -> KeyInfo | None:
    """The key, if this is its secret."""
    expected, info = found or (_NOBODY, None)
    same = hmac.compare_digest(expected, hashed(secret))
    return info if same else None


def hashed(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _admitted(info: KeyInfo | None) -> Caller:
    if info is None or not info.is_valid:
        raise AccessRefused(
            "this key does not open anything: check that it is complete, or ask the data's holder for one"
        )
    return info.caller


def _look_up(store: str, key_id: str) -> tuple[str, KeyInfo] | None:
    with reading(store) as connection:
        row = connection.execute(select(keys).where(keys.c.id == key_id)).one_or_none()
    return None if row is None else (row.secret_hash, _info(row))


def _info(row: Row[Any]) -> KeyInfo:
    only = None if row.datasets is None else frozenset(row.datasets)
    return KeyInfo(Caller(row.id, row.role, row.analyst, only), row.created, row.expires, row.revoked)


_LOOKED_UP: TtlCache[tuple[str, str], tuple[str, KeyInfo]] = TtlCache(seconds=5.0, most=1000)
