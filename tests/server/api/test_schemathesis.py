"""Requests made up from the OpenAPI description, right and wrong ones: never a 5xx, and every answer as described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.checks import positive_data_acceptance
from sqlalchemy import insert

from privlearn.budget.storage import excluding
from privlearn.server import bare_app
from privlearn.server.access.keys import hash_secret
from privlearn.server.holder import Owner
from privlearn.server.holder.demo import write_demo
from privlearn.server.http import ARROW, Limiter
from privlearn.server.store.tables import keys
from tests.support.served import Served, serving

description = schemathesis.openapi.from_dict(bare_app().openapi())
ID, SECRET = "0" * 16, "A" * 43  # requests are made up before there is a server that could make a key


@description.auth(refresh_interval=None, retry_on=[])
class Keys:
    """Schemathesis has to know the key, so that it can leave it out."""

    def get(self, *_: Any) -> str:
        return f"Bearer pl_{ID}_{SECRET}"

    def set(self, case: schemathesis.Case[Any], data: str, _: Any) -> None:
        case.headers["Authorization"] = data


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    owner = Owner.load(write_demo(tmp_path_factory.mktemp("demo")))
    with serving(owner, training=False) as running:
        running.app.state.limiter = Limiter(1e9, 1e9)
        with excluding(running.store, "keys") as connection:
            connection.execute(insert(keys).values(id=ID, role="holder", secret_hash=hash_secret(SECRET)))
        yield running


@description.parametrize()
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_every_operation(case: schemathesis.Case[Any], server: Served) -> None:
    # What a description can say of rows and of release files is not enough for all that fits it to be accepted.
    case.call_and_validate(base_url=server.url, timeout=60, excluded_checks=[positive_data_acceptance])


schemathesis.openapi.media_type(ARROW, st.binary(max_size=200))
