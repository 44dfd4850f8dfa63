"""A time by which one exchange with a server must be over, whatever the server does."""

from __future__ import annotations

import http.client
import socket
import threading
from contextlib import suppress


class Deadline:
    """Ends a connection from outside when its time is up: a server may drip bytes for ever."""

    def __init__(self, connection: http.client.HTTPConnection, seconds: float) -> None:
        self._connection = connection
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self.has_passed = False

    def _end(self) -> None:
        self.has_passed = True
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
