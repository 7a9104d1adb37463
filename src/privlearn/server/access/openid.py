"""Sign-in by OpenID Connect: the code flow with PKCE, at any provider, with authlib.

The state of a sign-in (`Attempt`) is stored in the browser's cookie. So several servers can share the work, and an
answer that another browser requested is refused.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from joserfc.errors import JoseError

from privlearn.server.access.keys import HOLDER, MONITOR, Caller, Role
from privlearn.server.holder.external import OpenId
from privlearn.server.refusals import AccessRefused

SECONDS_AT_PROVIDER = 600
OPENID = "openid:"
"""Prefix of a person's name where keys have their id."""
_TIMEOUT = 10.0
_SIGNED = (*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)), "EdDSA", "Ed25519")
"""Accepted signatures of identities: never "none" or a shared secret, even if a provider announces them."""


@dataclass(frozen=True)
class Attempt:
    """A sign-in in progress, known to one browser.

    ``state``, ``nonce`` and ``verifier`` bind the provider's answer, its token and the exchange of its code to this
    attempt; ``next`` is the requested page.
    """

    state: str
    nonce: str
    verifier: str
    next: str

    def as_cookie(self) -> str:
        return json.dumps(asdict(self)).encode().hex()

    @classmethod
    def from_cookie(cls, text: str) -> Attempt:
        try:
            found = cls(**json.loads(bytes.fromhex(text)))
            "".join((found.state, found.nonce, found.verifier)).encode("ascii")
            found.next.encode()
        except (ValueError, TypeError, AttributeError, RecursionError):  # the browser may send anything
            raise _refusal("the sign-in began in another browser, or too long ago") from None
        return found


class Provider:
    """The institution's OpenID provider."""

    def __init__(self, settings: OpenId) -> None:
        self.settings = settings
        address = f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        self._client = OAuth().register(
            "provider",
            client_id=settings.client_id,
            client_secret=settings.secret(),
            server_metadata_url=address,
            client_kwargs={
                "scope": " ".join(settings.scopes),
                "code_challenge_method": "S256",
                "timeout": _TIMEOUT,
            },
        )

    async def begin(self, following: str) -> tuple[str, Attempt]:
        """Return the address to which the browser is sent, and what it must bring back."""
        try:
            await self._load_metadata()
            begun = await self._client.create_authorization_url(self.settings.return_address)
        except _FAILURES as error:
            raise _unreachable(error) from None
        return begun["url"], Attempt(begun["state"], begun["nonce"], begun["code_verifier"], following)

    async def finish(self, attempt: Attempt, answer: Mapping[str, str]) -> dict[str, Any]:
        """Return the provider's claims about the person who comes back with this answer.

        Raises
        ------
        AccessRefused
            If the answer belongs to another attempt, or the provider's token is not valid.
        """
        if not hmac.compare_digest(attempt.state.encode(), answer.get("state", "").encode()):
            raise _refusal("the answer belongs to another attempt")
        if "code" not in answer:
            raise _refusal("the provider has refused the sign-in")
        try:
            await self._load_metadata()
            token = await self._client.fetch_access_token(
                code=answer["code"], code_verifier=attempt.verifier, redirect_uri=self.settings.return_address
            )
            claims = await self._client.parse_id_token(
                token, nonce=attempt.nonce, claims_options=self._claims_options()
            )
            more = await self._more_claims(token, claims)
        except httpx2.HTTPError as error:
            raise _unreachable(error) from None
        except _FAILURES:
            raise _refusal("the provider's token is not valid") from None
        return {**more, **claims}

    async def _more_claims(self, token: Mapping[str, Any], claims: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return claims from the provider's userinfo address, if the token has too few."""
        required = (self.settings.name_claim, self.settings.roles_claim)
        if all(claim in claims for claim in required):
            return {}
        more: Mapping[str, Any] = await self._client.userinfo(token=token)
        if more.get("sub") != claims["sub"]:
            raise ValueError("two people in one answer")
        return more

    def _claims_options(self) -> dict[str, Any]:
        return {
            "iss": {"essential": True, "values": [self.settings.issuer]},
            "aud": {"essential": True, "values": [self.settings.client_id]},
            "exp": {"essential": True},
            "sub": {"essential": True},
            "nonce": {"essential": True},
        }

    async def _load_metadata(self) -> None:
        """Read the provider's metadata, once, and restrict the signature algorithms to the safe ones."""
        metadata = await self._client.load_server_metadata()
        if metadata.get("issuer") != self.settings.issuer:
            raise ValueError("another issuer answers there than owner.toml names")
        announced = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = [name for name in announced if name in _SIGNED]


_FAILURES = (
    httpx2.HTTPError,
    AuthlibBaseError,
    JoseError,
    *(AttributeError, KeyError, RuntimeError, TypeError, ValueError),  # answers of an unexpected form
)


def caller_of_claims(settings: OpenId, analysts: Container[str], claims: Mapping[str, Any]) -> Caller:
    """Return the caller that the provider's claims describe.

    Raises
    ------
    AccessRefused
        If the claims have no name or no role, or give the role analyst to a person without a share.
    """
    if "email" in (settings.name_claim, settings.roles_claim) and claims.get("email_verified") is not True:
        raise _refusal("the provider has not verified your e-mail address, which decides who you are here")
    person = claims.get(settings.name_claim)
    if not isinstance(person, str) or not 0 < len(person) <= 200 or not person.isprintable():
        raise _refusal(f"the provider sends no name: the claim {settings.name_claim!r} is missing")
    values = _texts(claims.get(settings.roles_claim))
    role = next((role for value, role in settings.roles.items() if value in values), None)
    if role is None:
        raise _refusal("the provider gives you no role here. Ask the holder of the data for one")
    if role == "analyst" and person not in analysts:
        raise _refusal("you have no share of any data set. Ask the holder of the data for one")
    if role != "holder" and person in (HOLDER, MONITOR):
        raise _refusal(f"the name {person!r} is reserved for the log")
    return as_caller(role, person)


def _texts(claim: Any) -> list[str]:
    """Return the texts of a claim that is a text or a list of texts; otherwise none."""
    values = [claim] if isinstance(claim, str) else claim
    is_list = isinstance(values, list) and all(isinstance(one, str) for one in values)
    return values if is_list else []


def as_caller(role: Role, person: str) -> Caller:
    """Return a person who has signed in at the provider; the name replaces the key's id in limits and logs."""
    return Caller(f"{OPENID}{person}", role, person)


def _refusal(why: str) -> AccessRefused:
    return AccessRefused(f"{why}. Sign in again.")


def _unreachable(error: Exception) -> AccessRefused:
    return AccessRefused(
        f"the sign-in provider does not answer correctly ({type(error).__name__}). Try again later, or use a key."
    )
