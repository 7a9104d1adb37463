"""The coordinator's page: the state of a run, to be read on this machine; nothing on it depends on a record.

What a coordinator's screen says is public to it: who signed, who is missing, which sum was opened at what cost. The
page says the same, and takes no command.
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
from privlearn.multiparty.run.checked_plan import checked
from privlearn.multiparty.run.conversation import Tell
from privlearn.multiparty.run.joint_plan import JointPlan

_SECONDS = 2
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;"
    "background:#fff}h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem}"
    "table{border-collapse:collapse}tr{border-top:1px solid #ddd}td,th{padding:.4rem 0;vertical-align:top}"
    "th{text-align:left;padding-right:1.5rem;font-weight:600}tr:last-child td{font-family:ui-monospace,monospace;"
    "font-weight:600}ol{list-style:none;padding:0;font-size:.95rem}"
    "li{display:grid;grid-template-columns:5rem 1fr;padding:.2rem 0}time{color:#666;font-variant-numeric:tabular-nums}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}time{color:#999}tr{border-color:#333}}"
)


class StatePage:
    """A plan and what has been told of its run so far.

    Parameters
    ----------
    plan : JointPlan
    tell : callable
        Is given every line as well: the coordinator's screen.
    """

    def __init__(self, plan: JointPlan, tell: Tell) -> None:
        self._facts = checked(plan)
        self._tell = tell
        self._lines: list[tuple[str, str]] = []

    def tell(self, line: str) -> None:
        """Keep a line with its time, and pass it on."""
        self._lines.append((datetime.now(UTC).strftime("%H:%M:%S"), line))
        self._tell(line)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"plan": self._facts, "run": [{"time": time, "told": line} for time, line in self._lines]}

    def to_html(self) -> str:
        """A page without scripts that asks for itself again every two seconds."""
        facts = "".join(f"<tr><th>{escape(name)}<td>{escape(fact)}" for name, fact in self._facts.items())
        lines = "".join(
            f"<li><time>{time}</time><span>{escape(line)}</span>" for time, line in reversed(self._lines)
        )
        listed = f"<ol>{lines}</ol>" if lines else "<p>Nothing yet."
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="{_SECONDS}">'
            f'<meta name="viewport" content="width=device-width"><title>State of a run</title><style>{_STYLE}</style>'
            f"<h1>State of a run</h1><h2>So far, latest first (UTC)</h2>{listed}"
            f"<h2>Plan</h2><table>{facts}</table></html>"
        )

    @contextmanager
    def serving(self, port: int) -> Iterator[None]:
        """On this machine's own address only, as long as the block lasts."""
        try:
            server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise InvalidParameter(
                f"the page cannot be served on port {port}: {error.strerror}; try another"
            ) from None
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
                told = {"/": ("text/html", page.to_html), "/state.json": ("application/json", page._json)}
                if self.path not in told:
                    self.send_error(404)
                    return
                kind, write = told[self.path]
                content = write().encode()
                self.send_response(200)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Who looked is nobody's concern."""

        return Reader

    def _json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)
