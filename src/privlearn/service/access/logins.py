"""Browsers: a key is shown once, and a random token stands for it until the browser signs out or half a day is over."""

from __future__ import annotations

import secrets
from datetime import timedelta

from sqlalchemy import delete, insert, select

from privlearn.service.access.keys import Caller, authenticate, caller_of_key, hashed
from privlearn.service.refusals import AccessRefused
from privlearn.service.store.events import record
from privlearn.service.store.tables import logins
from privlearn.service.timing import TtlCache, as_text, now
from privlearn.storage import excluding, reading

LOGIN_HOURS = 12


def sign_in(store: str, key: str) -> str:
    """A token for the browser that shows this key; only its hash is stored."""
    caller = authenticate(store, key)
    if caller.role == "monitor":
        raise AccessRefused("this key is for a program that watches the server: sign in with another")
    token = secrets.token_urlsafe(32)
    expires = as_text(now() + timedelta(hours=LOGIN_HOURS))
    with excluding(store, "keys") as connection:
        connection.execute(delete(logins).where(logins.c.expires < as_text(now())))
        connection.execute(
            insert(logins).values(token_hash=hashed(token), key_id=caller.key_id, expires=expires)
        )
    record(store, caller.name, "signed in", key=caller.key_id)
    return token


def caller_of_login(store: str, token: str) -> Caller:
    """Who signed in with a key that is still valid; AccessRefused for anything else."""
    found = _LOOKED_UP.get((store, hashed(token)), lambda: _look_up(store, hashed(token)))
    key_id, expires = found or ("", "")
    if expires <= as_text(now()):
        raise AccessRefused("you are not signed in, or no longer: sign in with your key")
    return caller_of_key(store, key_id)


def sign_out(store: str, token: str) -> None:
    try:
        caller = caller_of_login(store, token)
    except AccessRefused:  # anybody can say so, and must keep nobody waiting
        return
    with excluding(store, "keys") as connection:
        connection.execute(delete(logins).where(logins.c.token_hash == hashed(token)))
    _LOOKED_UP.forget()
    record(store, caller.name, "signed out", key=caller.key_id)


def _look_up(store: str, token_hash: str) -> tuple[str, str] | None:
    # Found by its hash: what a comparison's time could tell is a hash, from which nobody finds the token.
    with reading(store) as connection:
        row = connection.execute(select(logins).where(logins.c.token_hash == token_hash)).one_or_none()
    return None if row is None else (row.key_id, row.expires)


_LOOKED_UP: TtlCache[tuple[str, str], tuple[str, str]] = TtlCache(seconds=5.0, most=1000)
