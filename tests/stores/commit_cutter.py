"""A connection that is lost at its COMMIT."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Cutter:
    """Passes everything on to the server, and cuts the connection at a COMMIT: before it, or before its answer."""

    def __init__(self, port: int, *, is_done: bool) -> None:
        self._to, self._is_done = port, is_done
        self.is_armed = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = [self._listening]
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._open += [client, server]
                cut = threading.Event()
                for way, pair in ((self._forth, (client, server)), (self._back, (server, client))):
                    self._threads.append(threading.Thread(target=way, args=(*pair, cut), daemon=True))
                    self._threads[-1].start()

    def _forth(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self.is_armed and b"COMMIT" in data:
                    cut.set()
                    if not self._is_done:
                        break
                server.sendall(data)
            if not self._is_done or not cut.is_set():
                _hang_up(server)
                _hang_up(client)

    def _back(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while (data := server.recv(1 << 16)) and not cut.is_set():
                client.sendall(data)
            _hang_up(client)

    def close(self) -> None:
        for one in self._open:
            _hang_up(one)  # also wakes the thread that waits for it
        for thread in self._threads:
            thread.join()
        for one in self._open:
            one.close()


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):  # the other side was first
        one.shutdown(socket.SHUT_RDWR)
