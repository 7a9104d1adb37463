"""StatePage: the coordinator's view of a run, for a browser on the same machine; it accepts no commands.

It shows the lines of the coordinator's screen: signatures, missing parties, and the cost of each opened sum. Nothing on
it depends on a record beyond those sums.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from privlearn.errors import InvalidParameter
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.conversation import Report
from privlearn.release.html import page, property_table

_SECONDS = 2
_CSS = """
th, td { text-align: left; vertical-align: top; white-space: normal; } ol { list-style: none; padding: 0; }
tr:last-child td { font-family: ui-monospace, monospace; }
li { display: grid; grid-template-columns: 5rem 1fr; padding: .2rem 0; }
time { color: var(--muted); font-variant-numeric: tabular-nums; }
"""


class StatePage:
    """The summary of an agreement and the lines reported in its run so far.

    ``report``: called with every line too: the coordinator's screen.
    """

    def __init__(self, agreement: Agreement, report: Report) -> None:
        self._summary = agreement.summary()
        self._report = report
        self._lines: list[tuple[str, str]] = []

    def report(self, line: str) -> None:
        """Store a line with its time, and pass it on."""
        self._lines.append((datetime.now(UTC).strftime("%H:%M:%S"), line))
        self._report(line)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"plan": self._summary, "run": [{"time": time, "message": line} for time, line in self._lines]}

    def to_html(self) -> str:
        """Return a page without scripts that reloads itself every two seconds."""
        lines = "".join(
            f"<li><time>{time}</time><span>{escape(line)}</span></li>" for time, line in reversed(self._lines)
        )
        progress = f"<ol>{lines}</ol>" if lines else "<p>Nothing yet.</p>"
        agreement = f"<h2>Agreement</h2>{property_table(self._summary)}"
        body = f"<h2>So far, latest first (UTC)</h2>{progress}{agreement}"
        refresh = f'<meta http-equiv="refresh" content="{_SECONDS}">'
        return page("State of a run", body, css=_CSS, head=refresh)

    @contextmanager
    def serving(self, port: int) -> Iterator[None]:
        """Serve the page on 127.0.0.1 only, until the end of the block."""
        try:
            server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise InvalidParameter(f"cannot serve on port {port}: {error.strerror}. Try another") from None
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self

        class Reader(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pages = {"/": ("text/html", page.to_html), "/state.json": ("application/json", page._json)}
                if self.path not in pages:
                    self.send_error(404)
                    return
                kind, write = pages[self.path]
                content = write().encode()
                self.send_response(200)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing: requests do not belong on the coordinator's screen."""

        return Reader

    def _json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)
