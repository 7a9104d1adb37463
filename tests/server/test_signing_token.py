"""A server may sign with a key that never leaves its token."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from privlearn.cli import app
from privlearn.errors import InvalidParameter, SchemaError
from privlearn.release import verify_bytes
from privlearn.release.signatures import P256, check_record, key_hex, signature_by
from privlearn.server import Service
from privlearn.server.holder import PIN_VARIABLE, Owner, SigningToken, TokenKey, TokenUnusable
from tests.support.served import serving
from tests.support.service_support import write_clinic
from tests.support.soft_token import PIN, soft_token


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> str:
    return soft_token(tmp_path_factory.mktemp("token"))


def _owner(folder: Path, module: str, key: str) -> Owner:
    (folder / "pin").write_text(f"{PIN}\n")
    named = f'module = "{module}", token = "clinic", key = "{key}", pin_file = "pin"'
    return Owner.load(write_clinic(folder, server=f"signing_token = {{ {named} }}"))


def _token(module: str, **changes: str) -> SigningToken:
    return SigningToken.model_validate({"module": module, "token": "clinic", "key": "p256"} | changes)


def test_what_a_server_gives_out_is_signed_by_its_token(module: str, tmp_path: Path) -> None:
    with serving(_owner(tmp_path, module, "p256")) as served:
        release = served.train("release", trial=True)
        content = served.alice.get(f"/v1/results/{release}/content").content
        pem = httpx2.get(f"{served.url}/.well-known/privlearn.pem", trust_env=False).text
    (tmp_path / "a.privlearn").write_bytes(content)
    (tmp_path / "server.pem").write_text(pem)
    done = CliRunner().invoke(
        app, ["verify", str(tmp_path / "a.privlearn"), "--server", str(tmp_path / "server.pem")]
    )
    assert done.exit_code == 0, done.output
    signer = verify_bytes(content).signer
    assert signer is not None
    assert len(signer) == 66
    assert f'"algorithm": "{P256}"'.encode() in content


@pytest.mark.parametrize("key", ["p256", "ed25519"])
def test_keys_of_both_kinds_sign(module: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PIN_VARIABLE, PIN)
    token = TokenKey(_token(module, key=key))
    for _ in range(4):  # half of all signatures of P-256 have to be turned into their twin
        record = signature_by(token, b"content")
        check_record(record, b"content")
    assert record["public_key"] == key_hex(token.public_key())
    assert record.get("algorithm") == (P256 if key == "p256" else None)


def test_a_token_that_cannot_sign_is_noticed_when_the_server_starts(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, error, why in (
        ("p384", InvalidParameter, "neither an Ed25519"),
        ("missing", TokenUnusable, "'missing'"),
        ("half", TokenUnusable, "'half'"),
    ):
        with pytest.raises(error, match=why):
            Service(_owner(tmp_path, module, key))
    with pytest.raises(InvalidParameter, match=f"the PIN is missing. .*{PIN_VARIABLE}"):
        TokenKey(_token(module))
    monkeypatch.setenv(PIN_VARIABLE, "wrong-horse")
    with pytest.raises(InvalidParameter, match="refuses the PIN") as refused:
        TokenKey(_token(module))
    assert "wrong-horse" not in str(refused.value)
    monkeypatch.setenv(PIN_VARIABLE, PIN)
    with pytest.raises(TokenUnusable, match="'elsewhere'"):
        TokenKey(_token(module, token="elsewhere"))
    with pytest.raises(TokenUnusable, match="module"):
        TokenKey(_token(str(tmp_path / "no-module.so")))


def test_a_file_has_one_signature(tmp_path: Path) -> None:
    server = 'signing_key = "a.pem"\nsigning_token = { module = "m.so", token = "t", key = "k" }'
    with pytest.raises(SchemaError, match="signing_key or signing_token"):
        Owner.load(write_clinic(tmp_path, server=server))
