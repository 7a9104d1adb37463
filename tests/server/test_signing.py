"""Files that leave bear the server's signature, and its public key can be asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from privlearn.cli import app
from privlearn.client import Unreachable
from privlearn.client.connection import server_key
from privlearn.errors import InvalidParameter
from privlearn.release import verify_bytes
from privlearn.release.signatures import key_hex
from privlearn.server import Service
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = KEY.public_key().public_bytes_raw().hex()


def write_key(path: Path) -> Path:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(KEY.private_bytes(*form))
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("signing")
    owner = load_clinic(folder)
    server = owner.server.model_copy(update={"signing_key": write_key(folder / "server.pem")})
    with serving(owner.model_copy(update={"server": server})) as running:
        yield running


def test_whatever_leaves_is_signed(served: Served) -> None:
    release = served.train("release")
    assert verify_bytes(served.alice.get(f"/v1/results/{release}/content").content).signer == PUBLIC
    for body in ({"kind": "describe"}, {"kind": "evaluate", "release": release}):
        asked = served.alice.post("/v1/jobs", json={"dataset": "clinic", "epsilon": 1.0} | body)
        made = served.finished(asked.json()["id"])["result"]
        assert verify_bytes(served.alice.get(f"/v1/results/{made}/content").content).signer == PUBLIC


def test_the_key_is_at_its_address(served: Served, tmp_path: Path) -> None:
    answer = httpx2.get(f"{served.url}/.well-known/privlearn.pem", trust_env=False)
    assert answer.status_code == 200
    assert "PRIVATE" not in answer.text
    assert key_hex(server_key(served.url)) == PUBLIC


def test_verify_asks_the_server_or_a_file(served: Served, tmp_path: Path) -> None:
    release = served.train("release", trial=True)
    (tmp_path / "a.privlearn").write_bytes(served.alice.get(f"/v1/results/{release}/content").content)
    (tmp_path / "server.pub.pem").write_text(httpx2.get(f"{served.url}/.well-known/privlearn.pem").text)
    other = Ed25519PrivateKey.generate().public_key()
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "other.pem").write_bytes(other.public_bytes(*form))
    for place, code in ((served.url, 0), (tmp_path / "server.pub.pem", 0), (tmp_path / "other.pem", 1)):
        done = CliRunner().invoke(app, ["verify", str(tmp_path / "a.privlearn"), "--server", str(place)])
        assert done.exit_code == code, done.output


def test_a_server_without_a_key_says_so(tmp_path: Path) -> None:
    with serving(load_clinic(tmp_path), training=False) as server:
        assert server.alice.get("/.well-known/privlearn.pem").status_code == 404
        with pytest.raises(Unreachable, match="Ask its holder"):
            server_key(server.url)


def test_the_key_is_not_asked_for_in_the_clear() -> None:
    with pytest.raises(InvalidParameter, match="https"):
        server_key("http://learner.example")


def test_a_server_with_a_key_that_cannot_be_read_does_not_start(tmp_path: Path) -> None:
    owner = load_clinic(tmp_path)
    server = owner.server.model_copy(update={"signing_key": tmp_path / "missing.pem"})
    with pytest.raises(InvalidParameter, match=r"missing\.pem"):
        Service(owner.model_copy(update={"server": server}))
