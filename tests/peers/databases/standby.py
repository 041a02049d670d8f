"""A real standby: a base backup that streams what its primary writes, until it is cut off and promoted."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2

from devstack.servers.postgres import Postgres
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from tests.devstack.waiting import wait_for


class Standby(Postgres):
    """Made from a primary that runs, at its first start."""

    mode: tuple[str, ...] = ("--write-recovery-conf",)

    def __init__(self, folder: Path, primary: Postgres, leash: Leash) -> None:
        super().__init__(folder, port=free_port(), leash=leash, durable=False)
        self._primary = primary

    def _initialise(self) -> None:
        argv = [str(self._programs / "pg_basebackup"), f"--pgdata={self._data}", f"--dbname={self._primary.url}"]
        argv += ["--checkpoint=fast", "--wal-method=stream", "--no-sync", *self.mode]
        subprocess.run(argv, check=True, capture_output=True, env={"LC_ALL": "C"}, timeout=60)
        for path in (self._data, *self._data.rglob("*")) if self._account is not None else ():
            shutil.chown(path, self._account.uid, self._account.gid)
        # It has the primary's accounts, and their passwords.
        password = urlsplit(self._primary.url).password or ""
        self._password_file.write_text(password, encoding="ascii")

    def follow(self) -> None:
        """Return once it has everything that the primary has committed so far."""
        # Its commits need not be written yet: a record that is written at once lies behind all of them.
        [written] = ask(self._primary, "SELECT pg_logical_emit_message(false, 'test', '', true)")
        wait_for(lambda: ask(self, "SELECT pg_last_wal_replay_lsn() >= %s", written) == (True,))

    def cut_off(self) -> None:
        """Cut the standby off from its primary."""
        ask(self, "ALTER SYSTEM SET primary_conninfo = ''")
        ask(self, "SELECT pg_reload_conf()")
        wait_for(lambda: ask(self, "SELECT count(*) FROM pg_stat_wal_receiver") == (0,))

    def promote(self) -> None:
        """Make it a primary of its own, as an operator does."""
        assert ask(self, "SELECT pg_promote(wait => true)") == (True,)


class Snapshot(Standby):
    """A disk image of the primary at that moment, started by itself on the same timeline."""

    mode = ()


def ask(server: Postgres, sql: str, *params: Any) -> tuple[Any, ...]:
    """Return the first row of an answer, asked outside of any transaction."""
    with closing(psycopg2.connect(server.url)) as session:
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute(sql, params or None)
            return (cursor.fetchone() or ()) if cursor.description else ()
