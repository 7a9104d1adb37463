"""Keys: whoever has one is let in, whoever has not learns nothing from being refused."""

from __future__ import annotations

import asyncio
import hmac
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privlearn.errors import InvalidParameter, LedgerError
from privlearn.server import AccessRefused, NotFound
from privlearn.server.access import Caller, authenticate, create_key, keys, list_keys, logins, revoke_key
from privlearn.server.access.keys import look_up_caller
from privlearn.server.access.logins import caller_of_login, sign_in, sign_out
from privlearn.server.holder import Limits, SignIn
from privlearn.server.http import callers
from privlearn.server.http.capacity import Shared
from privlearn.server.store import open_store
from privlearn.server.ttl_cache import TtlCache
from tests.support.raw_store import execute
from tests.support.service_support import load_clinic

A_DAY = timedelta(days=1)
RULES = SignIn()


@pytest.fixture
def place(tmp_path: Path, store: str) -> str:
    return open_store(load_clinic(tmp_path, store=store))


@pytest.fixture
def file(tmp_path: Path) -> str:
    return open_store(load_clinic(tmp_path))


def _refusal(store: str, key: str) -> str:
    with pytest.raises(AccessRefused) as refused:
        authenticate(store, key)
    return str(refused.value)


def _later(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    for module in (keys, logins):
        monkeypatch.setattr(module, "now", lambda: datetime.now(UTC) + by)


def test_a_key_says_who_asks(place: str) -> None:
    of_alice = create_key(place, "analyst", "alice", ["clinic"], datetime.now(UTC) + A_DAY)
    of_holder = create_key(place, "holder")
    caller = authenticate(place, of_alice)
    assert (caller.role, caller.analyst, caller.name) == ("analyst", "alice", "alice")
    assert caller.datasets == frozenset({"clinic"})
    holder = authenticate(place, of_holder)
    assert (holder.is_holder, holder.name, holder.datasets) == (True, "holder", None)
    assert caller == authenticate(place, of_alice)


def test_secrets_are_not_stored(place: str) -> None:
    key = create_key(place, "holder")
    token = sign_in(place, key, RULES)
    kept = repr(execute(place, "SELECT * FROM keys") + execute(place, "SELECT * FROM logins"))
    assert key.split("_", 2)[2] not in kept
    assert token not in kept
    assert key.split("_", 2)[2] not in repr(list_keys(place))


def test_refusals_do_not_say_why(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short, revoked, other = (
        create_key(place, "analyst", "alice", expires=datetime.now(UTC) + A_DAY),
        create_key(place, "holder"),
        create_key(place, "holder"),
    )
    authenticate(place, revoked)
    revoke_key(place, revoked.split("_")[1])
    mixed = "_".join([*other.split("_")[:2], short.split("_", 2)[2]])
    unknown = f"pl_{'0' * 16}_{other.split('_', 2)[2]}"
    refusals = {
        _refusal(place, key) for key in (revoked, mixed, unknown, "", "Bearer", other + "x", other[:-1])
    }
    assert authenticate(place, short).analyst == "alice"
    _later(monkeypatch, 2 * A_DAY)
    refusals.add(_refusal(place, short))
    assert len(refusals) == 1


def test_every_key_costs_the_same_comparisons(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    really = hmac.compare_digest

    def compare(expected: str, given: str) -> bool:
        compared.append((len(expected), len(given)))
        return really(expected, given)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    key = create_key(file, "holder")
    authenticate(file, key)
    for wrong in ("", f"pl_{'0' * 16}_{'a' * 43}", key[:-1] + ("A" if key[-1] != "A" else "B")):
        _refusal(file, wrong)
    assert compared == [(64, 64)] * 8  # with what is remembered, and with what the store says


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(text=st.text(max_size=80) | st.from_regex(r"pl_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", fullmatch=True))
def test_nothing_else_opens(file: str, text: str) -> None:
    assert "this key is not valid" in _refusal(file, text)
    with pytest.raises(AccessRefused):
        caller_of_login(file, text, RULES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(place=st.integers(0, 62), letter=st.sampled_from("Aa0_-"))
def test_every_letter_of_a_key_counts(file: str, place: int, letter: str) -> None:
    key = create_key(file, "holder")
    changed = key[:place] + letter + key[place + 1 :]
    if changed == key:
        assert authenticate(file, key).is_holder
    else:
        _refusal(file, changed)


@pytest.mark.parametrize(
    ("role", "analyst", "expires"),
    [
        ("holder", "alice", None),
        ("analyst", "", None),
        ("guest", "alice", None),
        ("holder", "", datetime(2020, 1, 1, tzinfo=UTC)),
        ("holder", "", datetime(2100, 1, 1)),
    ],
    ids=["holder with a name", "analyst without", "unknown role", "past", "no time zone"],
)
def test_keys_that_make_no_sense(file: str, role: str, analyst: str, expires: datetime | None) -> None:
    with pytest.raises(InvalidParameter):
        create_key(file, role, analyst, expires=expires)  # type: ignore[arg-type]
    assert list_keys(file) == []


def test_what_is_listed(place: str) -> None:
    first, second = create_key(place, "analyst", "bob"), create_key(place, "holder")
    revoke_key(place, second.split("_")[1])
    revoke_key(place, second.split("_")[1])
    listed = list_keys(place)
    assert [info.caller.key_id for info in listed] == [key.split("_")[1] for key in (first, second)]
    assert [info.is_valid for info in listed] == [True, False]
    with pytest.raises(NotFound):
        revoke_key(place, "ffff")


def test_a_browser_signs_in_and_out(place: str) -> None:
    token = sign_in(place, create_key(place, "analyst", "alice"), RULES)
    assert caller_of_login(place, token, RULES).name == "alice"
    sign_out(place, token, RULES)
    with pytest.raises(AccessRefused, match="signed in"):
        caller_of_login(place, token, RULES)
    with pytest.raises(AccessRefused):
        sign_in(place, f"pl_{'0' * 16}_{'a' * 43}", RULES)


def test_strangers_who_sign_out_do_not_write(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take the lock that every payment waits for."""

    def refuse(*_: object) -> None:
        raise AssertionError("a transaction that writes")

    monkeypatch.setattr(logins, "excluding", refuse)
    sign_out(file, "x" * 43, RULES)


def test_the_holders_key_is_for_everything(file: str) -> None:
    with pytest.raises(InvalidParameter, match="cannot be restricted"):
        create_key(file, "holder", datasets=["clinic"])


def test_a_login_ends_with_its_key(place: str) -> None:
    key = create_key(place, "analyst", "alice")
    token = sign_in(place, key, RULES)
    assert caller_of_login(place, token, RULES).name == "alice"
    revoke_key(place, key.split("_")[1])
    with pytest.raises(AccessRefused):
        caller_of_login(place, token, RULES)


def test_a_login_ends_after_half_a_day(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key, busy = create_key(file, "holder"), SignIn(idle_minutes=24 * 60)
    token = sign_in(file, key, busy)
    _later(monkeypatch, timedelta(hours=11.9))
    assert caller_of_login(file, token, busy).is_holder
    _later(monkeypatch, timedelta(hours=12.1))
    with pytest.raises(AccessRefused):
        caller_of_login(file, token, busy)
    sign_in(file, key, busy)
    assert execute(file, "SELECT count(*) FROM logins") == [(1,)]  # the old one was swept out


def test_a_store_that_is_gone_lets_nobody_in(file: str) -> None:
    key = create_key(file, "holder")
    Path(file).unlink()
    with pytest.raises(LedgerError):
        authenticate(file, key)


def test_what_is_remembered_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("privlearn.server.ttl_cache.time.monotonic", lambda: clock[0])
    remembered: TtlCache[str, int] = TtlCache(seconds=5.0, max_entries=2)
    assert remembered.get("a", lambda: 1) == 1
    clock[0] += 4.9
    assert remembered.get("a", lambda: 2) == 1
    clock[0] += 0.2
    assert remembered.get("a", lambda: 3) == 3
    assert remembered.get("b", lambda: None) is None
    assert remembered.get("b", lambda: 5) == 5
    remembered.get("c", lambda: 6)  # one too many
    assert remembered.get("a", lambda: 7) == 7
    remembered.forget()
    assert remembered.get("a", lambda: 8) == 8


def test_one_caller_looks_a_value_up_before_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("privlearn.server.ttl_cache.time.monotonic", lambda: clock[0])
    remembered: TtlCache[str, int] = TtlCache(seconds=5.0, max_entries=2)
    assert not remembered.claim("a")
    remembered.get("a", lambda: 1)
    clock[0] += 2.0
    assert not remembered.claim("a")
    clock[0] += 1.0
    assert [remembered.claim("a") for _ in range(3)] == [True, False, False]
    assert remembered.peek("a") == 1
    assert remembered.refresh("a", lambda: 2) == 2
    clock[0] += 4.9
    assert remembered.peek("a") == 2
    assert remembered.claim("a")
    clock[0] += 0.2
    assert remembered.peek("a") is None  # whoever claimed it may have failed
    assert remembered.get("a", lambda: 3) == 3
    assert not remembered.claim("a")


def test_what_was_read_before_a_change_is_not_remembered() -> None:
    """A key that is revoked while another thread looks it up opens nothing afterwards."""
    remembered: TtlCache[str, int] = TtlCache(seconds=5.0, max_entries=2)

    def look_up_during_a_change() -> int:
        remembered.forget()
        return 1

    assert remembered.get("a", look_up_during_a_change) == 1
    assert remembered.peek("a") is None


def test_a_look_up_that_is_under_way_opens_nothing_after_the_key_is_revoked(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = create_key(file, "holder")
    has_read, may_go = Event(), Event()

    def read_and_wait(store: str, text: str) -> Caller:
        caller = look_up_caller(store, text)
        has_read.set()
        assert may_go.wait(10.0)
        return caller

    async def ask() -> tuple[Any, Any]:
        shared, limiter = Shared(Limits()), SimpleNamespace(count=id, count_failure=id)
        state = SimpleNamespace(shared=shared, limiter=limiter, service=SimpleNamespace(store=file))
        request: Any = SimpleNamespace(
            app=SimpleNamespace(state=state), scope={"privlearn.line": {}}, client=None
        )
        monkeypatch.setattr(callers, "look_up_caller", read_and_wait)
        first = asyncio.create_task(callers.caller_with_key(request, key))
        await asyncio.to_thread(has_read.wait, 10.0)
        revoke_key(file, key.split("_")[1])
        monkeypatch.setattr(callers, "look_up_caller", look_up_caller)
        second = asyncio.create_task(callers.caller_with_key(request, key))
        await asyncio.sleep(0.05)
        may_go.set()
        return await asyncio.gather(first, second, return_exceptions=True)

    first, second = asyncio.run(ask())
    assert first.is_holder  # it asked before
    assert isinstance(second, AccessRefused)
