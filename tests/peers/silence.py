"""Ways in which a server is silent without being dead: frozen whole, or behind a network that swallows."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop a server with all its children. Its kernel goes on accepting connections and acknowledging bytes."""
    stopped: list[int] = []
    try:
        # Its parent first, so that none is started meanwhile.
        for one in (pid, *_children(pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
                stopped.append(one)
        yield
    finally:
        for one in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)


def _children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


class SwallowingProxy:
    """A TCP proxy on loopback that passes everything on until a test makes it swallow all."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.swallows = threading.Event()
        self.accepted = 0
        self._sockets: list[socket.socket] = [self._listener]
        self._is_over = False
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            far = socket.create_connection(self._target)
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                if not self.swallows.is_set():
                    sink.sendall(chunk)
            if not self.swallows.is_set():
                sink.shutdown(socket.SHUT_WR)


class Mute:
    """A server that lets its kernel accept connections and never says a word."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
