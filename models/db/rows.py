"""Declares the tables of the database itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from models.db.table import BY_DATABASE, Table


class AppClock(Table, table="app_clock"):
    """How far the gateway's clock is ahead of the server's."""

    only_row: bool
    ahead: timedelta
    is_real: bool


class ClockMark(Table, table="clock_mark"):
    """The latest time that the workers have read from the database's clock."""

    only_row: bool
    read_at: datetime


class ProcessCounts(Table, table="process_counts"):
    """The counters of one process; with process NIL, those of all ended ones."""

    process: UUID
    series: list[list[Any]]
    noted_at: datetime = BY_DATABASE


class SchemaMigration(Table, table="schema_migrations"):
    """A migration that was applied."""

    name: str
    digest: str
    applied_at: datetime


class WriteMark(Table, table="write_mark"):
    """The time of the last write by which a tick showed that PostgreSQL takes writes."""

    only_row: bool
    written_at: datetime
