"""A proxy that tunnels TLS, as firewalls have it: it sees host names and ciphertext, and counts its tunnels."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class ConnectProxy:
    """Serves HTTP CONNECT and nothing else."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.asked_for: list[str] = []

    @contextmanager
    def serving(self) -> Iterator[None]:
        threading.Thread(target=self._serve, daemon=True).start()
        try:
            yield
        finally:
            self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1)
            method, target, _ = head.decode().split(" ", 2)
            assert method == "CONNECT"
            self.asked_for.append(target)
            host, port = target.rsplit(":", 1)
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
