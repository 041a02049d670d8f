"""A PgBouncer on loopback before a test's database. Without the program its tests are skipped, except in CI."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pytest
from psycopg2.extensions import parse_dsn

from devstack.supervise.ports import free_port
from devstack.supervise.unprivileged import ACCOUNT

Mode = Literal["session", "transaction"]

PROGRAM: Final = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
STARTS_WITHIN_S: Final = 20
needed: Final = pytest.mark.skipif(PROGRAM is None and not os.environ.get("CI"), reason="PgBouncer is not installed")


@contextlib.contextmanager
def pooling(database_url: str, mode: Mode, folder: Path, *, options: Literal["ignored", "refused"]) -> Iterator[str]:
    """Run a PgBouncer before a database and yield its URL. options: those that a session begins with."""
    dsn, port = parse_dsn(database_url), free_port()
    settings = folder / f"{mode}-{options}.ini"
    place = f"host={dsn['host']} port={dsn['port']} user={dsn['user']} password={dsn['password']}"
    ignored = "ignore_startup_parameters = options\n" if options == "ignored" else ""
    settings.write_text(
        f"[databases]\n* = {place}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = any\npool_mode = {mode}\n{ignored}",
        encoding="ascii",
    )
    drop = ["-u", ACCOUNT] if os.geteuid() == 0 else []
    assert PROGRAM is not None
    program = subprocess.Popen([PROGRAM, "-q", *drop, settings], stderr=subprocess.DEVNULL)
    try:
        _wait(port)
        yield f"postgresql://{dsn['user']}@127.0.0.1:{port}/{dsn['dbname']}"
    finally:
        program.kill()
        program.wait()


def _wait(port: int) -> None:
    """Return once a port accepts connections."""
    ends_at = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < ends_at:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    pytest.fail("PgBouncer did not start")
