"""A pooler in transaction mode is refused by name; in session mode the sessions have all their settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self, cast

import pytest

from models.db import base, migrate
from models.db.base import StoreUnavailableError
from models.db.sessions import pooler
from models.db.sessions.pooler import PoolerError
from tests.peers.databases import pgbouncer
from tests.peers.databases.pgbouncer import pooling

ROOT: Final = Path(__file__).parents[4]
ASKED: Final = (
    "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('TimeZone')"
)


@pgbouncer.needed
@pytest.mark.parametrize("options", ["ignored", "refused"])
def test_transaction_mode_is_refused_by_name(
    database_url: str, tmp_path: Path, options: Literal["ignored", "refused"]
) -> None:
    with pooling(database_url, "transaction", tmp_path, options=options) as url:
        with pytest.raises(PoolerError, match=r"PgBouncer.*transaction mode"):
            pooler.refuse(url)
        base.connect(url)
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match=r"PgBouncer.*transaction mode"):
                base.one("SELECT 1")
        with pytest.raises(PoolerError):
            migrate.pending(url)
        base.close()


@pgbouncer.needed
@pytest.mark.parametrize("options", ["ignored", "refused"])
def test_session_mode_keeps_timeouts_and_locks(
    database_url: str, tmp_path: Path, options: Literal["ignored", "refused"]
) -> None:
    with pooling(database_url, "session", tmp_path, options=options) as url:
        pooler.refuse(url)
        base.connect(url, statement_timeout_ms=1234)
        assert base.one(ASKED) == ("1234ms", "2s", "UTC")
        assert not base.in_transaction()
        base.one("SELECT pg_advisory_lock(1)")
        assert base.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()") == 1
        base.close()
        assert base.one(ASKED) == ("1234ms", "2s", "UTC"), "the second session, too"
        base.close()


@pgbouncer.needed
@pytest.mark.parametrize(
    "line",
    [
        "gunicorn api.wsgi:app",
        "-m actors.main -Q webhooks -t 1",
        "-m scheduler",
        "-m cli key list",
    ],
)
def test_a_process_ends_at_its_start_with_one_line(
    database_url: str, redis_url: str, tmp_path: Path, line: str
) -> None:
    with pooling(database_url, "transaction", tmp_path, options="ignored") as url:
        environment = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ENVIRONMENT": "development", "DATABASE_URL": url,
            "REDIS_URL": redis_url, "ADDRESS_PUBLIC_KEY": "x", "LOG_FORMAT": "json", "PORT": "1", "LOG_LEVEL": "error",
        }  # fmt: skip
        words = line.split()
        own = [sys.executable] if words[0] == "-m" else [sys.executable, "-m", words.pop(0)]
        done = subprocess.run(
            [*own, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90, check=False
        )

    assert done.returncode == 1, done.stderr
    (reason,) = done.stderr.splitlines()
    shown = reason.removeprefix("sluice: ") if "cli" in line else json.loads(reason)["reason"]
    assert shown == pooler.REASON


def test_a_direct_connection_is_asked_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base.connect(database)
    base.one("SELECT 1")
    monkeypatch.setattr(pooler, "is_between", lambda _session: pytest.fail("asked again"))
    base.close()
    base.one("SELECT 1")


def test_a_server_that_is_away_is_not_refused() -> None:
    pooler.refuse("postgresql://nobody@127.0.0.1:1/nothing")


class Answering:
    """A session that answers with these backends, one a question."""

    def __init__(self, backends: Sequence[int]) -> None:
        self._backends = list(backends)
        self.autocommit = False

    def watch(self, _timeout_ms: int) -> None:
        """Wait for ever."""

    def cursor(self) -> Answering:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None: ...

    def execute(self, _sql: str) -> None: ...

    def fetchall(self) -> list[tuple[int]]:
        return [(self._backends.pop(0),)]

    def rollback(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("first", "second", "is_shared"),
    [
        ([7] * 16, [8] * 8, False),
        ([7], [7], True),
        # Backends take turns.
        ([1, 3], [2], True),
        # Others' traffic took the shared backend at first.
        ([7, 7, 7], [8, 7], True),
    ],
)
def test_a_shared_backend_is_recognised_however_it_is_shared(
    first: list[int], second: list[int], *, is_shared: bool
) -> None:
    sessions = iter([Answering(first), Answering(second)])
    connect = cast("Any", lambda: next(sessions))

    if is_shared:
        with pytest.raises(PoolerError):
            pooler.check(connect)
    else:
        assert pooler.check(connect)
