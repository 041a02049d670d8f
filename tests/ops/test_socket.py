"""The web's address stays open while web processes start again, as sluice-web.socket keeps it: callers wait there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENT: Final = {
    "ENVIRONMENT": "development",
    "DATABASE_URL": "postgresql://127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    # The address that systemd keeps replaces this one.
    "BIND": "unix:/nowhere/web.sock",
}
HANDED_OVER: Final = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "api.wsgi:app"])
"""
REQUEST: Final = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LIMIT_S: Final = 60.0


@pytest.fixture
def address(tmp_path: Path) -> Iterator[socket.socket]:
    """An open address, as systemd makes it before the web starts."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "web.sock"))
        listener.listen(2048)
        yield listener


@contextmanager
def web(listener: socket.socket) -> Iterator[None]:
    """Run the web as systemd does: the address is file 3, and LISTEN_PID is the process that takes it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HANDED_OVER, str(listener.fileno())],
        cwd=ROOT,
        env=os.environ | ENVIRONMENT,
        pass_fds=(listener.fileno(),),
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0


def ask(listener: socket.socket, path: bytes) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(LIMIT_S)
    client.connect(listener.getsockname())
    client.sendall(REQUEST % path)
    return client


def status(client: socket.socket) -> int:
    with closing(client):
        return int(client.recv(4096).split()[1])


def test_a_caller_waits_while_the_web_starts_again_and_is_answered(address: socket.socket) -> None:
    early = ask(address, b"/healthz")
    with web(address):
        answered = status(early)
        # Counted by source: the client of a unix socket has one.
        assert status(ask(address, b"/no/such/page")) == 404
    between = [ask(address, b"/healthz") for _ in range(20)]
    with web(address):
        assert [answered, *map(status, between)] == [200] * 21
