"""A collector of OpenTelemetry traces: takes OTLP over HTTP, and writes each span down as a line of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.support.ports import free_port


class Received:
    """What a collector has got by now."""

    def __init__(self, url: str, file: Path) -> None:
        self.url, self._file = url, file

    def text(self) -> str:
        return self._file.read_text(encoding="utf-8")

    def spans(self) -> list[dict[str, Any]]:
        complete_lines = self.text().rpartition("\n")[0]
        return [json.loads(line) for line in complete_lines.splitlines()]


@contextmanager
def receiving(folder: Path) -> Iterator[Received]:
    """Run a collector in a separate process for the length of a block."""
    port, file = free_port(), folder / "spans.jsonl"
    command = [sys.executable, "-m", "tests.support.otlp_receiver", str(port), str(file)]
    with subprocess.Popen(command) as process:
        try:
            for _ in range(600):
                if file.exists():
                    break
                assert process.poll() is None, "the collector has ended"
                time.sleep(0.1)
            yield Received(f"http://127.0.0.1:{port}/v1/traces", file)
        finally:
            process.kill()


def _serve(port: int, file: Path) -> None:
    import gzip

    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            with file.open("a", encoding="utf-8") as out:
                for group in MessageToDict(ExportTraceServiceRequest.FromString(body))["resourceSpans"]:
                    for scope in group["scopeSpans"]:
                        for span in scope["spans"]:
                            out.write(json.dumps(span | {"resource": group["resource"]}) + "\n")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", port), Collector)
    file.touch()
    server.serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]))
