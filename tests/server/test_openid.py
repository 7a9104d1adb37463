"""Sign-in by a provider: whom its answers let in. The provider as a process: tests/browser/test_browser_provider.py."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

from privlearn.errors import SchemaError
from privlearn.server import AccessRefused
from privlearn.server.access import Attempt, Provider, caller_of_claims
from privlearn.server.access.logins import caller_of_login, sign_in_person
from privlearn.server.holder import OpenId, Owner, SignIn
from privlearn.server.store import open_store
from privlearn.server.timing import as_text, now
from tests.support.raw_store import execute
from tests.support.served import Served, serving
from tests.support.service_support import write_clinic

ISSUER = "https://login.example.org"
SIGNING = RSAKey.generate_key(2048, {"kid": "first"})
ATTEMPT = Attempt("a state", "a nonce", "a verifier", "/desk")
SETTINGS = OpenId(
    issuer=ISSUER,
    client_id="privlearn",
    address="https://learn.example.org",
    name_claim="sub",
    roles_claim="groups",
    roles={"owners": "holder", "researchers": "analyst"},
)


def claims(**changes: Any) -> dict[str, Any]:
    good = {
        "iss": ISSUER,
        "aud": "privlearn",
        "sub": "alice",
        "groups": ["researchers"],
        "nonce": ATTEMPT.nonce,
        "iat": int(time.time()),
        "exp": int(time.time()) + 300,
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def signed(said: dict[str, Any], algorithm: str = "RS256", key: Any = SIGNING) -> str:
    return jwt.encode({"alg": algorithm, "kid": "first"}, said, key, algorithms=[algorithm])


def unsigned(said: dict[str, Any]) -> str:
    parts = ({"alg": "none"}, said)
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def provider_that_sends(token: str, **announced: Any) -> Provider:
    """Return a provider that answers with this token, without a network."""
    provider = Provider(SETTINGS)
    client: Any = provider._client

    async def metadata() -> dict[str, Any]:
        keys = KeySet([SIGNING]).as_dict(private=False)
        return {"issuer": ISSUER, "jwks": keys, "jwks_uri": f"{ISSUER}/keys"} | announced

    async def exchanged(**given: str) -> dict[str, Any]:
        assert given["code_verifier"] == ATTEMPT.verifier
        return {"access_token": "x", "id_token": token}

    async def same_keys(force: bool = False) -> Any:
        return (await metadata())["jwks"]

    client.server_metadata = asyncio.run(metadata())
    client.load_server_metadata = lambda: _returned(client.server_metadata)
    client.fetch_access_token = exchanged
    client.fetch_jwk_set = same_keys
    return provider


async def _returned(value: Any) -> Any:
    return value


def finish(provider: Provider, **answer: str) -> dict[str, Any]:
    return asyncio.run(provider.finish(ATTEMPT, {"code": "a code", "state": ATTEMPT.state} | answer))


def test_a_good_answer() -> None:
    found = finish(provider_that_sends(signed(claims())))
    assert caller_of_claims(SETTINGS, {"alice"}, found).name == "alice"


@pytest.mark.parametrize(
    "token",
    [
        signed(claims(nonce="another's")),
        signed(claims(nonce=None)),
        signed(claims(aud="another client")),
        signed(claims(aud=[])),
        signed(claims(aud=None)),
        signed(claims(iss="https://elsewhere.example.org")),
        signed(claims(exp=int(time.time()) - 600)),
        signed(claims(exp=None)),
        signed(claims(sub=None)),
        signed(claims(), key=RSAKey.generate_key(2048, {"kid": "first"})),
        signed(claims(), "HS256", OctKey.generate_key()),
        unsigned(claims()),
        "no token",
        "",
    ],
)
@pytest.mark.parametrize("algorithms", [None, ["none", "HS256", "RS256"]])
def test_a_token_that_is_not_for_this_attempt_is_refused(token: str, algorithms: list[str] | None) -> None:
    announced = {"id_token_signing_alg_values_supported": algorithms} if algorithms else {}
    with pytest.raises(AccessRefused, match="not valid"):
        finish(provider_that_sends(token, **announced))


def test_metadata_without_an_address_to_sign_in_is_no_defect() -> None:
    with pytest.raises(AccessRefused, match="does not answer correctly"):
        asyncio.run(provider_that_sends("").begin("/desk"))


@pytest.mark.parametrize("error", [RecursionError, AttributeError])
def test_a_token_of_an_odd_form_is_no_defect(error: type[Exception]) -> None:
    """For example a million brackets, or a list where an object belongs."""
    provider = provider_that_sends("")

    async def fail(**_: str) -> None:
        raise error

    provider._client.fetch_access_token = fail
    with pytest.raises(AccessRefused, match="not valid"):
        finish(provider)


def test_an_answer_to_another_attempt_is_refused_before_the_provider_is_asked() -> None:
    for answer in ({"state": "another"}, {"state": ""}, {"state": "é"}):
        with pytest.raises(AccessRefused, match="another attempt"):
            finish(provider_that_sends(""), **answer)


def test_another_issuer_under_the_address_is_refused() -> None:
    with pytest.raises(AccessRefused):
        finish(provider_that_sends(signed(claims()), issuer="https://elsewhere.example.org"))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"groups": ["visitors"]}, "no role"),
        ({"groups": None}, "no role"),
        ({"groups": [["owners"], 1]}, "no role"),
        ({"sub": "carol"}, "no share"),
        ({"sub": "holder"}, "no share"),
        ({"sub": ""}, "sends no name"),
        ({"sub": "a\nb"}, "sends no name"),
        ({"sub": ["alice"]}, "sends no name"),
    ],
)
def test_nobody_else_is_let_in(said: dict[str, Any], why: str) -> None:
    with pytest.raises(AccessRefused, match=why):
        caller_of_claims(SETTINGS, {"alice"}, claims(**said))


@pytest.mark.parametrize("claim", [None, 1, True, {"owners": True}, ["owners", 1]])
def test_roles_are_a_text_or_a_list_of_texts(claim: Any) -> None:
    with pytest.raises(AccessRefused, match="no role"):
        caller_of_claims(SETTINGS, {"alice"}, claims() | {"groups": claim})


def test_of_several_roles_the_first_of_the_file() -> None:
    both = caller_of_claims(SETTINGS, {"alice"}, claims(groups=["researchers", "owners"]))
    assert both.is_holder
    other = SETTINGS.model_copy(update={"roles": {"board": "approver", "revision": "auditor"}})
    for group, role in other.roles.items():
        caller = caller_of_claims(other, set(), claims(groups=group))
        assert (caller.role, caller.person, caller.name, caller.analyst) == (role, "alice", "alice", "")
        with pytest.raises(AccessRefused, match="reserved for the log"):
            caller_of_claims(other, set(), claims(groups=group, sub="holder"))
    assert caller_of_claims(SETTINGS, {"alice"}, claims(groups="researchers")).analyst == "alice"


@pytest.mark.parametrize(
    "cookie", ["", "zz", b"[]".hex(), b'{"state": 1}'.hex(), replace(ATTEMPT, state="é").as_cookie()]
)
def test_a_cookie_that_is_no_attempt(cookie: str) -> None:
    with pytest.raises(AccessRefused, match="another browser"):
        Attempt.from_cookie(cookie)
    assert Attempt.from_cookie(ATTEMPT.as_cookie()) == ATTEMPT


def test_an_idle_browser_is_signed_out_and_a_busy_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(Owner.load(write_clinic(tmp_path)))
    rules = SignIn(idle_minutes=10)
    monkeypatch.setattr("privlearn.server.access.logins._CACHE", _Forgetful())
    token = sign_in_person(store, "analyst", "alice", rules)
    for _ in range(3):
        _last_seen(store, minutes=8)
        assert caller_of_login(store, token, rules).name == "alice"  # noted: it counts from now on
        assert caller_of_login(store, token, rules).name == "alice"
    _last_seen(store, minutes=11)
    with pytest.raises(AccessRefused, match="not signed in"):
        caller_of_login(store, token, rules)


class _Forgetful:
    def get(self, key: Any, look_up: Callable[[], Any]) -> Any:
        return look_up()

    def forget(self) -> None:
        pass


def _last_seen(store: str, minutes: float) -> None:
    execute(store, f"UPDATE logins SET seen = '{as_text(now() - timedelta(minutes=minutes))}'")


OPENID = """
[sign_in.openid]
issuer = "http://localhost:1"
client_id = "privlearn"
address = "http://localhost:8383"
name_claim = "sub"
roles_claim = "groups"
roles = { owners = "holder" }
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    owner = write_clinic(tmp_path)
    owner.write_text(owner.read_text() + OPENID)
    with serving(Owner.load(owner), training=False) as running:
        yield running


def test_a_provider_that_is_away_leaves_the_keys(served: Served) -> None:
    with httpx2.Client(base_url=served.url) as client:
        assert "Sign in at localhost:1" in client.get("/").text
        answer = client.get("/sign-in/provider")
        assert answer.status_code == 401
        assert "does not answer" in answer.text
        assert "Your key" in answer.text


def test_nobody_comes_back_who_has_not_left(served: Served) -> None:
    with httpx2.Client(base_url=served.url) as client:
        answer = client.get("/signed-in", params={"code": "x", "state": "y"})
        assert answer.status_code == 401
        assert "another browser" in answer.text
        assert "privlearn=" not in str(answer.headers)


def test_without_a_provider_there_is_none(tmp_path: Path) -> None:
    with serving(Owner.load(write_clinic(tmp_path)), training=False) as running:
        assert "Sign in at" not in httpx2.get(running.url).text
        assert httpx2.get(f"{running.url}/sign-in/provider").status_code == 404


@pytest.mark.parametrize(
    "line", ['issuer = "http://login.example.org"', 'address = "learn.example.org"', 'issuer = "https://x?y"']
)
def test_addresses_that_would_be_overheard_are_refused(tmp_path: Path, line: str) -> None:
    owner, name = write_clinic(tmp_path), line.split()[0]
    lines = [line if old.startswith(name) else old for old in OPENID.splitlines()]
    owner.write_text(owner.read_text() + "\n".join(lines))
    with pytest.raises(SchemaError, match=r"sent unencrypted|without a query"):
        Owner.load(owner)


@pytest.mark.parametrize(
    "found",
    [
        {"state": "a", "nonce": "b", "verifier": "c", "next": 5},
        {"state": "a", "nonce": "b", "verifier": "c", "next": "/\ud800"},
        {"state": [], "nonce": "b", "verifier": "c", "next": ""},
        {"state": "\u00e9", "nonce": "b", "verifier": "c", "next": ""},
        {"state": "a"},
        5,
    ],
)
def test_a_forged_cookie_is_refused(found: Any) -> None:
    with pytest.raises(AccessRefused, match="another browser"):
        Attempt.from_cookie(json.dumps(found).encode().hex())


def test_a_deep_cookie_is_refused() -> None:
    with pytest.raises(AccessRefused, match="another browser"):
        Attempt.from_cookie((b"[" * 100_000).hex())


@pytest.mark.parametrize("claim", ["name_claim", "roles_claim"])
@pytest.mark.parametrize("verified", [None, False, "true", 1])
def test_an_address_that_nobody_verified_decides_nothing(claim: str, verified: Any) -> None:
    settings = SETTINGS.model_copy(
        update={claim: "email", "roles": {"a@b.example": "analyst", "x": "analyst"}}
    )
    said = claims(email="a@b.example", groups=["x"], sub="a@b.example", email_verified=verified)
    with pytest.raises(AccessRefused, match="not verified"):
        caller_of_claims(settings, {"a@b.example"}, said)
    assert caller_of_claims(settings, {"a@b.example"}, said | {"email_verified": True}).person
