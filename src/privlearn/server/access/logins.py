"""Browser logins: a random token stands for a key that was shown, or for a person signed in at the OpenID provider.

A token ends when the browser signs out, is idle for too long, or has been signed in for too long.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, insert, select, update

from privlearn.budget.storage import excluding, reading
from privlearn.server.access.keys import Caller, Role, authenticate, caller_of_key, hash_secret
from privlearn.server.access.openid import as_caller
from privlearn.server.holder.external import SignIn
from privlearn.server.refusals import AccessRefused
from privlearn.server.store.events import record
from privlearn.server.store.tables import logins
from privlearn.server.timing import as_text, from_text, now
from privlearn.server.ttl_cache import TtlCache

_SEEN_STEPS = 10
"""Fraction of the idle time after which activity is recorded: most requests write nothing."""


@dataclass(frozen=True)
class Login:
    """A browser that is signed in.

    ``key_id``: id of the key that was shown; empty for a login at the provider. ``person``: name at the provider.
    ``seen`` and ``expires``: ISO UTC.
    """

    key_id: str
    role: Role
    person: str
    seen: str
    expires: str


def sign_in(store: str, key: str, rules: SignIn) -> str:
    """Return a token for the browser that shows this key; only its hash is stored."""
    caller = authenticate(store, key)
    if caller.role == "monitor":
        raise AccessRefused("a monitor's key cannot sign in. Use another key.")
    token = _new_login(store, rules, key_id=caller.key_id, role=caller.role, person="")
    record(store, caller.name, "signed in", key=caller.key_id)
    return token


def sign_in_person(store: str, role: Role, person: str, rules: SignIn) -> str:
    """Return a token for the browser of a person whom the provider has authenticated."""
    token = _new_login(store, rules, key_id=None, role=role, person=person)
    record(store, as_caller(role, person).name, "signed in", person=person)
    return token


def caller_of_login(store: str, token: str, rules: SignIn) -> Caller:
    """Return the caller of a valid token; raise AccessRefused for anything else."""
    return _caller(store, _valid(store, token, rules))


def sign_out(store: str, token: str, rules: SignIn) -> None:
    """End a login; do nothing if it is not valid."""
    try:
        login = _valid(store, token, rules)
        caller = _caller(store, login)
    except AccessRefused:  # not authenticated: take no lock
        return
    with excluding(store, "keys") as connection:
        connection.execute(delete(logins).where(logins.c.token_hash == hash_secret(token)))
    _CACHE.forget()
    details = {"key": login.key_id} if login.key_id else {"person": login.person}
    record(store, caller.name, "signed out", **details)


def forget_logins() -> None:
    """Empty the cache of logins after a change by others."""
    _CACHE.forget()


def _valid(store: str, token: str, rules: SignIn) -> Login:
    found = _CACHE.get((store, hash_secret(token)), lambda: _look_up(store, hash_secret(token)))
    moment, idle = now(), timedelta(minutes=rules.idle_minutes)
    if found is None or found.expires <= as_text(moment) or from_text(found.seen) + idle <= moment:
        raise AccessRefused("you are not signed in. Sign in again.")
    if from_text(found.seen) + idle / _SEEN_STEPS <= moment:
        _note_seen(store, hash_secret(token))
    return found


def _caller(store: str, login: Login) -> Caller:
    return caller_of_key(store, login.key_id) if login.key_id else as_caller(login.role, login.person)


def _new_login(store: str, rules: SignIn, **who: str | None) -> str:
    token, moment = secrets.token_urlsafe(32), now()
    too_old = as_text(moment - timedelta(minutes=rules.idle_minutes))
    with excluding(store, "keys") as connection:
        connection.execute(
            delete(logins).where((logins.c.expires < as_text(moment)) | (logins.c.seen < too_old))
        )
        expires = as_text(moment + timedelta(hours=rules.hours))
        connection.execute(
            insert(logins).values(token_hash=hash_secret(token), seen=as_text(moment), expires=expires, **who)
        )
    return token


def _note_seen(store: str, digest: str) -> None:
    with excluding(store, "keys") as connection:
        connection.execute(update(logins).where(logins.c.token_hash == digest).values(seen=as_text(now())))
    _CACHE.forget()


def _look_up(store: str, token_hash: str) -> Login | None:
    # Looked up by its hash: timing could reveal the hash only, from which the token cannot be computed.
    with reading(store) as connection:
        row = connection.execute(select(logins).where(logins.c.token_hash == token_hash)).one_or_none()
    return None if row is None else Login(row.key_id or "", row.role, row.person, row.seen, row.expires)


_CACHE: TtlCache[tuple[str, str], Login] = TtlCache(seconds=5.0, max_entries=1000)
