"""Keeps the rows of a long story and puts them back into an emptied database: cheaper than to play it for each test."""

from __future__ import annotations

import io

from psycopg2 import sql
from psycopg2.extensions import cursor

from tests.peers.databases.worker_database import SEQUENCES, TABLES


class KeptRows:
    """All rows and sequences of a database at one moment."""

    def __init__(self, at: cursor) -> None:
        at.execute(TABLES)
        self._tables = {sql.Identifier(*row).as_string(at): io.BytesIO() for row in at.fetchall()}
        for table, copy in self._tables.items():
            at.copy_expert(f"COPY {table} TO STDOUT (FORMAT binary)", copy)
        at.execute(SEQUENCES)
        self._sequences = [(sql.Identifier(*row[:2]).as_string(at), row[3]) for row in at.fetchall() if row[3]]

    def restore(self, at: cursor) -> None:
        """Replace all rows by the kept ones, past the triggers and the foreign keys."""
        at.execute("SET session_replication_role = replica")
        at.execute("; ".join(f"DELETE FROM {table}" for table in self._tables))
        for table, copy in self._tables.items():
            copy.seek(0)
            at.copy_expert(f"COPY {table} FROM STDIN (FORMAT binary)", copy)
        for named in self._sequences:
            at.execute("SELECT setval(%s, %s)", named)
        at.execute("SET session_replication_role = origin")
