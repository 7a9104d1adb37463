"""Notices reach a real mail server and a real receiver, say nothing that an analyst wrote, and never harm a job."""

from __future__ import annotations

import datetime
import hmac
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from privlearn.client import Client, TrainingFailed
from privlearn.errors import SchemaError
from privlearn.server import notices as mail
from privlearn.server import notices as outbox
from privlearn.server.access import create_key
from privlearn.server.holder import Mail, Owner, Webhook
from privlearn.server.notices import Notice, Outbox, Outboxes, send_mail, send_webhook
from tests.support.ports import free_port
from tests.support.served import serving
from tests.support.service_support import write_clinic

NOTICE = Notice(
    "0f", "done", "2026-11-17T12:00:00", "5f0c", "alice", "clinic", "release", 0.5, 0.0, "https://x.example/jobs/5f0c"
)  # fmt: skip
PASSWORD, SECRET = "the password", "the secret"


class Letters:
    """What a mail server has taken."""

    def __init__(self) -> None:
        self.found: list[str] = []

    async def handle_DATA(self, _: SMTP, __: Session, envelope: Envelope) -> str:  # noqa: N802 - its name there
        assert isinstance(envelope.content, bytes)
        self.found.append(f"to {envelope.rcpt_tos}\n{envelope.content.decode()}")
        return "250 OK"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a self-signed certificate of localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Letters, Mail]]:
    """Run a mail server that requires STARTTLS and a password."""
    files = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
    monkeypatch.setattr(mail, "tls_context", lambda: ssl.create_default_context(cafile=files[0]))
    handler, port = Letters(), free_port()
    server = Controller(
        handler,
        hostname="127.0.0.1",
        port=port,
        tls_context=context,
        require_starttls=True,
        authenticator=lambda *given: AuthResult(
            success=given[-1].password == PASSWORD.encode(), handled=False
        ),
        auth_required=True,
    )
    server.start()
    (tmp_path / "mail.secret").write_text(f"{PASSWORD}\n")
    yield handler, settings_of(tmp_path, port)
    server.stop()


def settings_of(folder: Path, port: int) -> Mail:
    return Mail(
        host="localhost",
        port=port,
        user="privlearn",
        password_file=folder / "mail.secret",
        sender="privlearn@clinic.example",
        approvers=("board@clinic.example", "bea@clinic.example"),
        analysts={"alice": "alice@clinic.example"},
    )


class Receiver(HTTPServer):
    """Keeps what it is sent; answers the first requests with these statuses."""

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Receiving)
        self.statuses, self.found = list(statuses), []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    found: list[tuple[dict[str, Any], str]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Receiving(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        expected = hmac.digest(SECRET.encode(), body, "sha256").hex()
        assert self.headers["Privlearn-Signature"] == f"sha256={expected}"
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        if status == 204:
            self.server.found.append((json.loads(body), body.decode()))
        self.send_response(status)
        self.send_header("Location", self.server.url)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    running = Receiver()
    yield running
    running.shutdown()
    running.server_close()


def webhook(folder: Path, url: str) -> Webhook:
    (folder / "hook.secret").write_text(SECRET)
    return Webhook(url=url, secret_file=folder / "hook.secret")


def test_mail_goes_to_whom_it_concerns(letters: tuple[Letters, Mail]) -> None:
    handler, settings = letters
    send_mail(settings, NOTICE)
    (letter,) = handler.found
    assert "to ['alice@clinic.example']" in letter
    assert "Subject: privlearn: release 5f0c on clinic is done" in letter
    assert "epsilon 0.5" in letter
    assert "https://x.example/jobs/5f0c" in letter
    stranger = Notice(**(NOTICE.to_dict() | {"analyst": "bob"}))
    send_mail(settings, stranger)
    assert len(handler.found) == 1


def test_a_wrong_password_or_a_stranger_as_the_server_is_an_error(
    letters: tuple[Letters, Mail], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, settings = letters
    assert settings.password_file is not None
    settings.password_file.write_text("another")
    with pytest.raises(Exception, match="535"):
        send_mail(settings, NOTICE)
    monkeypatch.setattr(mail, "tls_context", ssl.create_default_context)
    with pytest.raises(ssl.SSLError):
        send_mail(settings, NOTICE)
    assert handler.found == []


def test_a_webhook_that_redirects_or_fails_has_not_taken_it(tmp_path: Path) -> None:
    receiver = Receiver(307, 500)
    for status in (307, 500):
        with pytest.raises(ConnectionError, match=str(status)):
            send_webhook(webhook(tmp_path, receiver.url), NOTICE)
    assert receiver.found == []
    send_webhook(webhook(tmp_path, receiver.url), NOTICE)
    assert receiver.found[0][0] == NOTICE.to_dict()
    receiver.shutdown()
    receiver.server_close()


def test_what_fails_is_tried_again_and_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "PAUSES", (0.01, 0.01))
    tries: list[str] = []

    def send(notice: Notice) -> None:
        tries.append(notice.job)
        if notice.job == "never" or len(tries) < 3:
            raise ConnectionError("the secret is in here")

    box = Outbox("mail", send)
    with caplog.at_level(logging.ERROR):
        for job in ("at last", "never", "at once"):
            box.put(Notice(**(NOTICE.to_dict() | {"job": job})))
        box.start()
        while "at once" not in tries:
            time.sleep(0.01)
        box.stop()
    assert tries == ["at last"] * 3 + ["never"] * 3 + ["at once"]
    assert [record.getMessage() for record in caplog.records] == [
        "the notice of job never could not be sent by mail: ConnectionError"
    ]


def test_too_many_are_dropped(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(outbox, "MAX_WAITING", 2)
    box = Outbox("webhook", lambda notice: None)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            box.put(NOTICE)
    assert "too many notices" in caplog.text


ADDRESS = 'address = "https://l.example"'
MAIL = 'host = "m.example"\nsender = "a@b.example"'


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('address = "http://learn.example"', "unencrypted"),
        (f'{ADDRESS}\n[notices.webhook]\nurl = "http://h.example"\nsecret_file = "s"', "unencrypted"),
        (f'{ADDRESS}\n[notices.mail]\n{MAIL}\nencryption = "none"', "encryption"),
        (f'{ADDRESS}\n[notices.mail]\n{MAIL}\napprovers = ["nobody"]', "one address"),
        (f'{ADDRESS}\n[notices.mail]\n{MAIL}\nuser = "x"', "go together"),
    ],
)
def test_settings_that_would_be_overheard_or_make_no_sense(tmp_path: Path, lines: str, why: str) -> None:
    owner = write_clinic(tmp_path)
    owner.write_text(f"{owner.read_text()}\n[notices]\n{lines}\n")
    with pytest.raises(SchemaError, match=why):
        Owner.load(owner)


def test_a_missing_secret_is_noticed_at_the_start(tmp_path: Path) -> None:
    owner = Owner.load(with_notices(tmp_path, "http://127.0.0.1:1/"))
    (tmp_path / "hook.secret").unlink()
    with pytest.raises(SchemaError, match="secret_file"):
        Outboxes(owner.notices)


def with_notices(folder: Path, url: str) -> Path:
    owner = write_clinic(folder, dataset="approval = { above = 0.4 }")
    (folder / "hook.secret").write_text(SECRET)
    channels = f'[notices.webhook]\nurl = "{url}"\nsecret_file = "hook.secret"\n'
    channels += '[notices.mail]\nhost = "localhost"\nport = 1\nencryption = "none"\nsender = "p@c.example"\n'
    channels += 'approvers = ["b@c.example"]\n'
    owner.write_text(f'{owner.read_text()}\n[notices]\naddress = "https://l.example/"\n{channels}')
    return owner


def test_what_is_told_of_jobs(tmp_path: Path, receiver: Receiver) -> None:
    """From the request to the result, while the mail server is away."""
    words: dict[str, Any] = {"purpose": "a purpose that is nobody's business", "legal_basis": "consent"}
    with serving(Owner.load(with_notices(tmp_path, receiver.url))) as served:
        keys = [create_key(served.store, "analyst", "alice"), create_key(served.store, "approver", "bea")]
        with Client(served.url, keys[0]) as alice, Client(served.url, keys[1]) as bea:
            done, declined = (alice.ask("release", "clinic", epsilon=0.5, **words) for _ in range(2))
            alice.train("clinic", "release", epsilon=0.1, trial=True)
            bea.decide(done.id, "approve", "a reason that is nobody's business")
            bea.decide(declined.id, "decline", "a reason that is nobody's business")
            done.wait()
            with pytest.raises(TrainingFailed):
                declined.wait()
            deadline = time.monotonic() + 60
            while len(receiver.found) < 5 and time.monotonic() < deadline:
                time.sleep(0.05)
    told = [(body["happening"], body["job"]) for body, _ in receiver.found]
    waits = "waits_for_approval"
    assert sorted(told) == sorted(
        [(waits, done.id), (waits, declined.id), ("approved", done.id), ("declined", declined.id), ("done", done.id)]
    )  # fmt: skip
    assert receiver.found[0][0]["link"] == f"https://l.example/approvals/{done.id}"
    assert not any("business" in text or "consent" in text for _, text in receiver.found)
