"""Browsers: who has shown a key or come back from the provider has a random token that stands for it.

It is good until the browser signs out, does nothing for too long, or has been signed in too long.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, insert, or_, select, update

from privlearn.service.access.keys import Caller, Role, authenticate, caller_of_key, hashed
from privlearn.service.access.openid import as_caller
from privlearn.service.holder.sign_in import SignIn
from privlearn.service.refusals import AccessRefused
from privlearn.service.store.events import record
from privlearn.service.store.tables import logins
from privlearn.service.timing import TtlCache, as_text, from_text, now
from privlearn.storage import excluding, reading

_SEEN_STEPS = 10
"""A request is noted in so many steps of the idle time: most write nothing."""


@dataclass(frozen=True)
class Login:
    """A browser that is signed in.

    Attributes
    ----------
    key_id : str
        Of the key that was shown; empty if the provider has sent the browser.
    role : Role
    person : str
        As the provider calls them.
    seen, expires : str
        ISO UTC.
    """

    key_id: str
    role: Role
    person: str
    seen: str
    expires: str


def sign_in(store: str, key: str, rules: SignIn) -> str:
    """A token for the browser that shows this key; only its hash is stored."""
    caller = authenticate(store, key)
    if caller.role == "monitor":
        raise AccessRefused("this key is for a program that watches the server: sign in with another")
    token = _new_login(store, rules, key_id=caller.key_id, role=caller.role, person="")
    record(store, caller.name, "signed in", key=caller.key_id)
    return token


def sign_in_person(store: str, role: Role, person: str, rules: SignIn) -> str:
    """A token for the browser of somebody whom the provider has let in."""
    token = _new_login(store, rules, key_id=None, role=role, person=person)
    record(store, as_caller(role, person).name, "signed in", person=person)
    return token


def caller_of_login(store: str, token: str, rules: SignIn) -> Caller:
    """Who signed in, if that is still good; AccessRefused for anything else."""
    return _caller(store, _valid(store, token, rules))


def sign_out(store: str, token: str, rules: SignIn) -> None:
    try:
        found = _valid(store, token, rules)
        caller = _caller(store, found)
    except AccessRefused:  # anybody can say so, and must keep nobody waiting
        return
    with excluding(store, "keys") as connection:
        connection.execute(delete(logins).where(logins.c.token_hash == hashed(token)))
    _LOOKED_UP.forget()
    told = {"key": found.key_id} if found.key_id else {"person": found.person}
    record(store, caller.name, "signed out", **told)


def forget_logins() -> None:
    """After somebody was signed out by others: look again before the next answer."""
    _LOOKED_UP.forget()


def _valid(store: str, token: str, rules: SignIn) -> Login:
    found = _LOOKED_UP.get((store, hashed(token)), lambda: _look_up(store, hashed(token)))
    moment, idle = now(), timedelta(minutes=rules.idle_minutes)
    if found is None or found.expires <= as_text(moment) or from_text(found.seen) + idle <= moment:
        raise AccessRefused("you are not signed in, or no longer: sign in again")
    if from_text(found.seen) + idle / _SEEN_STEPS <= moment:
        _note_seen(store, hashed(token))
    return found


def _caller(store: str, login: Login) -> Caller:
    return caller_of_key(store, login.key_id) if login.key_id else as_caller(login.role, login.person)


def _new_login(store: str, rules: SignIn, **who: str | None) -> str:
    token, moment = secrets.token_urlsafe(32), now()
    too_old = as_text(moment - timedelta(minutes=rules.idle_minutes))
    with excluding(store, "keys") as connection:
        connection.execute(
            delete(logins).where(or_(logins.c.expires < as_text(moment), logins.c.seen < too_old))
        )
        expires = as_text(moment + timedelta(hours=rules.hours))
        connection.execute(
            insert(logins).values(token_hash=hashed(token), seen=as_text(moment), expires=expires, **who)
        )
    return token


def _note_seen(store: str, token_hash: str) -> None:
    with excluding(store, "keys") as connection:
        connection.execute(
            update(logins).where(logins.c.token_hash == token_hash).values(seen=as_text(now()))
        )
    _LOOKED_UP.forget()


def _look_up(store: str, token_hash: str) -> Login | None:
    # Found by its hash: what a comparison's time could tell is a hash, from which nobody finds the token.
    with reading(store) as connection:
        row = connection.execute(select(logins).where(logins.c.token_hash == token_hash)).one_or_none()
    return None if row is None else Login(row.key_id or "", row.role, row.person, row.seen, row.expires)


_LOOKED_UP: TtlCache[tuple[str, str], Login] = TtlCache(seconds=5.0, most=1000)
