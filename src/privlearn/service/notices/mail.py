"""Notices by mail: to approvers what waits, to an analyst what became of a request."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage

from privlearn.service.holder.notices import Mail
from privlearn.service.notices.notice import Notice

SECONDS = 20.0


def send_mail(settings: Mail, notice: Notice) -> None:
    """Raises whatever goes wrong; whom nobody gave an address for is sent nothing."""
    message = mail_of(settings, notice)
    if message is None:
        return
    with _connected(settings) as server:
        if settings.user is not None:
            server.login(settings.user, settings.password())
        server.send_message(message)


def mail_of(settings: Mail, notice: Notice) -> EmailMessage | None:
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
    message["Auto-Submitted"] = "auto-generated"  # so that nobody's absence is answered
    message.set_content(notice.text)
    return message


def _connected(settings: Mail) -> smtplib.SMTP:
    if settings.encryption == "tls":
        return smtplib.SMTP_SSL(settings.host, settings.port, timeout=SECONDS, context=trusted())
    server = smtplib.SMTP(settings.host, settings.port, timeout=SECONDS)
    if settings.encryption == "starttls":
        try:
            server.starttls(context=trusted())  # raises if the server cannot: nothing is sent in the clear
        except BaseException:
            server.close()
            raise
    return server


def trusted() -> ssl.SSLContext:
    """The authorities of this machine."""
    return ssl.create_default_context()
