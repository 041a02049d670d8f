"""Keeps py-evm's keys and values in a file, so that its chain survives SIGKILL. Used by cli.embedded.pyevm_chain."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from eth.db.backends.base import BaseDB

if TYPE_CHECKING:
    from pathlib import Path


class FileStore(BaseDB):
    """A dictionary on disk. What was set since the last commit is lost in a kill. One thread at a time."""

    def __init__(self, path: Path) -> None:
        # Whoever uses it holds the chain's lock, whichever thread that is.
        self._database = sqlite3.connect(path, check_same_thread=False)
        # Commits reach the kernel, which outlives us; only a power cut could take them.
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE IF NOT EXISTS store (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def commit(self) -> None:
        """Keep everything that was set."""
        self._database.commit()

    def close(self) -> None:
        """Let the file go."""
        self._database.close()

    def __getitem__(self, key: bytes) -> bytes:
        row = self._database.execute("SELECT value FROM store WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise KeyError(key)
        return bytes(row[0])

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._database.execute("INSERT OR REPLACE INTO store (key, value) VALUES (?, ?)", (key, value))

    def __delitem__(self, key: bytes) -> None:
        if not self._database.execute("DELETE FROM store WHERE key = ?", (key,)).rowcount:
            raise KeyError(key)

    def _exists(self, key: bytes) -> bool:
        return self._database.execute("SELECT 1 FROM store WHERE key = ?", (key,)).fetchone() is not None
