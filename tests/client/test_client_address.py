"""Where the client sends a key, and where not."""

from __future__ import annotations

import pytest

from privlearn.client import Client
from privlearn.client.connection import key_or_default, validate_url
from privlearn.errors import InvalidParameter


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8383", "http://localhost", "http://[::1]:1/", "https://learner.example/"]
)
def test_addresses_that_keep_a_key(url: str) -> None:
    assert validate_url(url, plain_http=False) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://learner.example",
        "http://10.0.0.1:8383",
        "http://localhost.example",
        "http://127.0.0.1.example",
    ],
)
def test_plain_http_to_another_machine_is_refused(url: str) -> None:
    with pytest.raises(InvalidParameter, match="Use https://"):
        validate_url(url, plain_http=False)
    assert validate_url(url, plain_http=True) == url


@pytest.mark.parametrize(
    "url",
    [
        "learner.example",
        "ftp://x",
        "https://",
        "https://me:secret@x",
        "https://x?key=secret",
        "https://x#secret",
    ],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        validate_url(url, plain_http=True)
    assert "secret" not in str(refused.value)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVLEARN_KEY", "pl_a_b\n")
    assert key_or_default(None) == "pl_a_b"
    assert key_or_default("pl_c_d") == "pl_c_d"
    monkeypatch.delenv("PRIVLEARN_KEY")
    with pytest.raises(InvalidParameter, match="PRIVLEARN_KEY"):
        key_or_default(None)


@pytest.mark.parametrize("key", ["pl_a b", "pl_ä", "pl_a\r\nX-Evil: 1"])
def test_what_is_no_key_is_not_repeated(key: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        key_or_default(key)
    assert key not in str(refused.value)


def test_an_authority_that_cannot_be_read(tmp_path: pytest.TempPathFactory) -> None:
    with pytest.raises(InvalidParameter, match="PEM"):
        Client("https://learner.example", "pl_a_b", verify=f"{tmp_path}/none.pem")
