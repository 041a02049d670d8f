"""Starts a temporary PostgreSQL for a benchmark that needs no Redis."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measuring.quiet import beside
from devstack.servers.postgres import Postgres
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from models.db import base


@contextlib.contextmanager
def own_database() -> Iterator[str]:
    """Start a server that does not sync to disk, and yield its URL; it ends with the caller."""
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        # Not in a private home: PostgreSQL's own account has to reach it.
        folder.chmod(0o711)
        leash = Leash()
        stack.callback(leash.release)
        server = Postgres(folder, port=free_port(), leash=leash, durable=False)
        stack.callback(server.stop)
        stack.callback(base.close)
        server.start()
        with beside():
            yield server.url
