"""A stack's folder as a supervisor keeps it, without the stack."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from devstack.running import state

ENV = {
    "ENVIRONMENT": "development",
    "DATABASE_URL": "postgresql://sluice:pw@127.0.0.1:21000/postgres",
    "REDIS_URL": "redis://:pw@127.0.0.1:21001/0",
    "BASE_URL": "http://127.0.0.1:8000",
    "PAY_URL": "http://127.0.0.1:8000",
    "DEVELOPMENT_DESK_URL": "http://127.0.0.1:21002/secret",
    "ETHEREUM_RPC_URLS": "http://127.0.0.1:21003",
}


class Folder:
    """The files of a running stack; `end` stops it as a kill does, with the file left behind."""

    def __init__(self, path: Path, env: Mapping[str, str]) -> None:
        self.path = path
        path.mkdir()
        self.ready: dict[str, Any] = {
            "base_url": env["BASE_URL"], "pay_url": env["PAY_URL"], "public_id": "pk_1", "secret": "sk_1",
            "rpc": {"ethereum": env["ETHEREUM_RPC_URLS"]}, "env": dict(env),
        }  # fmt: skip
        self.write()
        self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def write(self) -> None:
        (self.path / state.FILE_NAME).write_text(json.dumps(self.ready), encoding="utf-8")

    def end(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "stack", ENV)
    yield made
    made.end()
