"""Canaille, a provider of OpenID Connect, with a few people in memory: a script for an environment that has it."""

import json
import sys
from typing import Any

from canaille import create_app  # type: ignore[import-not-found]
from canaille.app import models  # type: ignore[import-not-found]
from canaille.backends import Backend  # type: ignore[import-not-found]
from joserfc.jwk import RSAKey
from werkzeug.serving import run_simple


def serve(told: dict[str, Any]) -> None:
    signing = RSAKey.generate_key(2048, {"kid": "first", "alg": "RS256", "use": "sig"})
    settings = {
        "SECRET_KEY": "of no use",
        "SERVER_NAME": f"localhost:{told['port']}",
        "PREFERRED_URL_SCHEME": "http",
        "CANAILLE": {"DATABASE": "memory"},
        "CANAILLE_OIDC": {"ACTIVE_JWKS": [signing.as_dict(private=True)]},
    }
    app = create_app(settings)
    with app.app_context():
        for name, group in told["people"].items():
            _add_person(name, group, told["password"])
        _add_client(told["return"], told["secret"])
    run_simple("localhost", told["port"], app, threaded=True)


def _add_person(name: str, group: str, password: str) -> None:
    person = models.User(
        user_name=name,
        family_name=name,
        formatted_name=name.title(),
        emails=[f"{name}@example.org"],
        password=password,
    )
    Backend.instance.save(person)
    Backend.instance.save(models.Group(display_name=group, members=[person]))


def _add_client(return_address: str, secret: str) -> None:
    client = models.Client(
        client_id="privlearn",
        client_secret=secret,
        client_name="privlearn",
        client_uri="http://localhost",
        redirect_uris=[return_address],
        grant_types=["authorization_code"],
        response_types=["code"],
        scope=["openid", "profile", "email", "groups"],
        token_endpoint_auth_method="client_secret_basic",
    )
    Backend.instance.save(client)
    client.audience = [client]
    Backend.instance.save(client)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
