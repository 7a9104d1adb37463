"""Notices by mail and webhook: a request waits for approval, was decided on, or has ended.

A notice contains ids, names, kinds, costs and a link: no text of an analyst, and nothing private. Each channel sends
from a separate thread, so that no job waits for a slow receiver. Notices are held in memory: those that are not sent
when the server stops are lost, but pages and the audit log show the same events.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import smtplib
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from email.message import EmailMessage
from functools import partial
from queue import Empty, Full, Queue
from typing import Any, Literal

import httpx2

from privlearn.server.holder.external import Mail, Notices, Webhook
from privlearn.server.jobs.requests import Job
from privlearn.server.timing import as_text, now

NoticeEvent = Literal["waits_for_approval", "approved", "declined", "done", "failed"]

_DESCRIPTIONS: dict[NoticeEvent, str] = {
    "waits_for_approval": "waits for approval",
    "approved": "was approved",
    "declined": "was declined",
    "done": "is done",
    "failed": "has failed",
}


@dataclass(frozen=True)
class Notice:
    """One event in the life of a job.

    Attributes
    ----------
    id : str
        Identifier of the notice, by which receivers recognise one that was sent twice.
    happening : str
        The event.
    time : str
        ISO UTC.
    job, analyst, dataset, kind : str
    epsilon, delta : float
    link : str
        The page with the details, for those who may read it.
    """

    id: str
    happening: NoticeEvent
    time: str
    job: str
    analyst: str
    dataset: str
    kind: str
    epsilon: float
    delta: float
    link: str

    @classmethod
    def about(cls, happening: NoticeEvent, job: Job, address: str) -> Notice:
        """Create a notice; ``address`` is where browsers reach the server."""
        page = "approvals" if happening == "waits_for_approval" else "jobs"
        link, cost = f"{address.rstrip('/')}/{page}/{job.id}", job.guarantee
        what = (job.id, job.analyst, job.dataset, job.kind, cost.epsilon, cost.delta)
        return cls(secrets.token_hex(8), happening, as_text(now()), *what, link)

    @property
    def title(self) -> str:
        return f"privlearn: {self.kind} {self.job} on {self.dataset} {_DESCRIPTIONS[self.happening]}"

    @property
    def text(self) -> str:
        delta = f", delta {self.delta:g}" if self.delta else ""
        return (
            f"The request {self.job} of {self.analyst} on {self.dataset} ({self.kind}, epsilon {self.epsilon:g}{delta})"
            f" {_DESCRIPTIONS[self.happening]}.\n\n{self.link}\n"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


_TIMEOUT_SECONDS = 20.0


def send_mail(settings: Mail, notice: Notice) -> None:
    """Send a mail if the receiver's address is known; raise if it cannot be sent."""
    message = build_mail(settings, notice)
    if message is None:
        return
    with _connect(settings) as server:
        if settings.user is not None:
            server.login(settings.user, settings.password())
        server.send_message(message)


def build_mail(settings: Mail, notice: Notice) -> EmailMessage | None:
    if notice.happening == "waits_for_approval":
        receivers = settings.approvers
    else:
        receivers = tuple(settings.analysts[name] for name in (notice.analyst,) if name in settings.analysts)
    if not receivers:
        return None
    message = EmailMessage()
    message["From"] = settings.sender
    message["To"] = ", ".join(receivers)
    message["Subject"] = notice.title
    message["Message-ID"] = f"<{notice.id}@{settings.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"  # suppresses automatic replies
    message.set_content(notice.text)
    return message


def _connect(settings: Mail) -> smtplib.SMTP:
    if settings.encryption == "tls":
        return smtplib.SMTP_SSL(settings.host, settings.port, timeout=_TIMEOUT_SECONDS, context=tls_context())
    server = smtplib.SMTP(settings.host, settings.port, timeout=_TIMEOUT_SECONDS)
    if settings.encryption == "starttls":
        try:
            server.starttls(context=tls_context())  # raises if it cannot: nothing is sent unencrypted
        except BaseException:
            server.close()
            raise
    return server


def tls_context() -> ssl.SSLContext:
    """Return a context that trusts the certificate authorities of this machine."""
    return ssl.create_default_context()


SIGNATURE = "Privlearn-Signature"


def send_webhook(settings: Webhook, notice: Notice) -> None:
    """Post the notice; raise unless the receiver answers with success. Redirects are not followed."""
    body = json.dumps(notice.to_dict(), sort_keys=True).encode()
    headers = {"Content-Type": "application/json", SIGNATURE: signature(settings.secret(), body)}
    secure = settings.url.startswith("https:")  # a proxy of the environment would see a plain request
    with httpx2.Client(timeout=_TIMEOUT_SECONDS, trust_env=secure) as client:
        answer = client.post(settings.url, content=body, headers=headers)
    if not answer.is_success:
        raise ConnectionError(f"it answers with status {answer.status_code}")


def signature(secret: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of the body in the form of the header."""
    return f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"


MAX_WAITING = 1000
PAUSES = (1.0, 5.0, 30.0, 120.0)
"""Seconds between attempts; after the last attempt a notice is dropped."""
_STOPPING_SECONDS = 5.0

_log = logging.getLogger("privlearn.service")


class Outbox:
    """One channel: a queue and the thread that empties it.

    ``name`` is for the log; ``send`` raises an error if the notice was not delivered.
    """

    def __init__(self, name: str, send: Callable[[Notice], None]) -> None:
        self._name = name
        self._send = send
        self._waiting: Queue[Notice] = Queue(MAX_WAITING)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"privlearn-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, notice: Notice) -> None:
        """Queue a notice without waiting; drop it if the queue is full."""
        try:
            self._waiting.put_nowait(notice)
        except Full:
            _log.error(
                "too many notices wait to be sent by %s: the notice of job %s is dropped",
                self._name,
                notice.job,
            )

    def stop(self) -> None:
        """Stop the thread; give the current attempt a few seconds, and do not retry."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOPPING_SECONDS)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            with suppress(Empty):
                self._deliver(self._waiting.get(timeout=0.5))

    def _deliver(self, notice: Notice) -> None:
        problem = ""
        for pause in (0.0, *PAUSES):
            if self._stopping.wait(pause):
                break
            try:
                self._send(notice)
                return
            except Exception as error:  # any failure of the network or the receiver
                problem = type(error).__name__
        _log.error("the notice of job %s could not be sent by %s: %s", notice.job, self._name, problem)


class Outboxes:
    """All channels that the holder has configured."""

    def __init__(self, settings: Notices | None) -> None:
        self._address = "" if settings is None else settings.address
        self._all: list[Outbox] = []
        if settings is not None and settings.mail is not None:
            settings.mail.password()  # reports a missing file when the server starts
            self._all.append(Outbox("mail", partial(send_mail, settings.mail)))
        if settings is not None and settings.webhook is not None:
            settings.webhook.secret()
            self._all.append(Outbox("webhook", partial(send_webhook, settings.webhook)))

    def start(self) -> None:
        for outbox in self._all:
            outbox.start()

    def stop(self) -> None:
        for outbox in self._all:
            outbox.stop()

    def notify(self, happening: NoticeEvent, job: Job) -> None:
        """Send a notice on every channel, unless the job is a trial."""
        if not job.trial:
            for outbox in self._all:
                outbox.put(Notice.about(happening, job, self._address))

    def notify_end(self, job: Job) -> None:
        """Send a notice if the job is done or has failed."""
        if job.state in ("done", "failed"):
            self.notify(job.state, job)
