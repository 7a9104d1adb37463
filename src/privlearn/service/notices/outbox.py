"""Notices on their way, in threads of their own: nobody waits for them, and a receiver who is away harms no job.

They are kept in memory. What is not sent when the server ends is lost; pages and the audit log have everything.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, Full, Queue

from privlearn.service.holder.notices import Notices
from privlearn.service.jobs.requests import Job
from privlearn.service.notices.mail import send_mail
from privlearn.service.notices.notice import Happening, Notice
from privlearn.service.notices.webhook import send_webhook

MOST_WAITING = 1000
PAUSES = (1.0, 5.0, 30.0, 120.0)
"""Seconds between attempts; after the last one a notice is given up."""
_STOPPING_SECONDS = 5.0

_log = logging.getLogger("privlearn.service")


class Outbox:
    """One way out: a queue and the thread that empties it.

    Parameters
    ----------
    name : str
        For the log.
    send : callable
        Raises if the notice was not taken.
    """

    def __init__(self, name: str, send: Callable[[Notice], None]) -> None:
        self._name = name
        self._send = send
        self._waiting: Queue[Notice] = Queue(MOST_WAITING)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"privlearn-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, notice: Notice) -> None:
        """At once; if too many wait, it is dropped."""
        try:
            self._waiting.put_nowait(notice)
        except Full:
            _log.error(
                "too many notices wait to be sent by %s: that of job %s is dropped", self._name, notice.job
            )

    def stop(self) -> None:
        """What is being sent is finished if that is quick; nothing is tried again."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOPPING_SECONDS)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            with suppress(Empty):
                self._deliver(self._waiting.get(timeout=0.5))

    def _deliver(self, notice: Notice) -> None:
        trouble = ""
        for pause in (0.0, *PAUSES):
            if self._stopping.wait(pause):
                break
            try:
                self._send(notice)
                return
            except Exception as error:  # whatever the network or the receiver did
                trouble = type(error).__name__
        _log.error("the notice of job %s could not be sent by %s: %s", notice.job, self._name, trouble)


class Outboxes:
    """Every way out that the holder has named."""

    def __init__(self, settings: Notices | None) -> None:
        self._address = "" if settings is None else settings.address
        self._all: list[Outbox] = []
        if settings is not None and settings.mail is not None:
            settings.mail.password()  # so that a missing file is noticed at the start
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

    def tell(self, happening: Happening, job: Job) -> None:
        """Of trials, which are about nobody, nothing is told."""
        if not job.trial:
            for outbox in self._all:
                outbox.put(Notice.about(happening, job, self._address))

    def tell_end(self, job: Job) -> None:
        """Of a job that may be over."""
        if job.state in ("done", "failed"):
            self.tell(job.state, job)
