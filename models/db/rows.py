"""Declares the tables of the database itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from models.db.table import Table


class AppClock(Table, table="app_clock"):
    """How far the gateway's clock is ahead of the server's."""

    only_row: bool
    ahead: timedelta
    is_real: bool


class ClockMark(Table, table="clock_mark"):
    """The latest time that the workers have read from the database's clock."""

    only_row: bool
    read_at: datetime


class SchemaMigration(Table, table="schema_migrations"):
    """A migration that was applied."""

    name: str
    digest: str
    applied_at: datetime


class WriteMark(Table, table="write_mark"):
    """The time of the last write by which a tick showed that PostgreSQL takes writes."""

    only_row: bool
    written_at: datetime
