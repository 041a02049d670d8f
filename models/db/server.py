"""Reads how the PostgreSQL server is: whether it takes writes, and how many connections it has left.

Used by api.health and `sluice doctor`. A tick writes one row every few seconds; the row's age shows that writes work,
at no cost to those who ask.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import peewee
import psycopg2

from models.db.base import execute, one, part, pgcode, rows, transaction, value

# actors.upkeep.clock writes every ten seconds.
WRITE_AGE_MAX_S: Final = 30.0
TEMP_FILE_LIMIT: Final = "53400"
# More than a session holds in SPACE_MEMORY, so that the server writes a file, as large as some pages of a table.
SPACE_ROWS: Final = 20_000
SPACE_MEMORY: Final = "64kB"


class Writing(NamedTuple):
    """Whether the server refuses all writes, the age of the row that a tick writes, and whether we may write it."""

    is_read_only: bool
    age_s: float
    is_allowed: bool


def writing() -> Writing:
    """Return whether the server takes writes, by its own word and by the last write."""
    row = one(
        "SELECT current_setting('transaction_read_only') = 'on',"
        " GREATEST(0, extract(epoch FROM clock_timestamp() - written_at))::float8,"
        " has_column_privilege('write_mark', 'written_at', 'UPDATE') FROM write_mark"
    )
    return Writing(*row) if row is not None else Writing(is_read_only=False, age_s=float("inf"), is_allowed=True)


def note_write() -> None:
    """Write the row whose age shows that writes work. Raises PostgreSQL's refusal.

    An update needs no new page of its table, so a full tablespace could take it: a temporary file asks for space there.
    """
    with transaction():
        value(f"SELECT set_config('work_mem', '{SPACE_MEMORY}', true), set_config('temp_tablespaces', '', true)")
        take_space()
        execute("UPDATE write_mark SET written_at = clock_timestamp()")


def take_space() -> None:
    """Have the server write a temporary file, in the caller's transaction; does nothing if a limit forbids such."""
    try:
        with part():
            value(f"SELECT count(*) FROM generate_series(1, {SPACE_ROWS})")
    except psycopg2.Error as error:
        if pgcode(error) != TEMP_FILE_LIMIT:
            raise


def refusal() -> str:
    """Return the reason why PostgreSQL takes no write; '' if it takes them, or if this login cannot try.

    Tries a write if the last one is old.
    """
    state = writing()
    if state.is_read_only:
        return "PostgreSQL is read-only"
    try:
        if state.is_allowed and state.age_s > WRITE_AGE_MAX_S:
            note_write()
    except (psycopg2.Error, peewee.PeeweeException) as error:
        (reason, *_) = str(error).splitlines() or [type(error).__name__]
        return f"PostgreSQL refuses a write: {reason}"
    return ""


class Places(NamedTuple):
    """The connections in use, and the most that there may be, by the limit that is nearest."""

    used: int
    limit: int

    @property
    def left(self) -> int:
        """Return the number of connections that may still be opened."""
        return self.limit - self.used


# The server's limit, the database's and the login's, where they have one. Every login may read these.
_PLACES: Final = """
    SELECT used, most, is_shared FROM (VALUES
        ((SELECT sum(numbackends) FROM pg_stat_database)::int,
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - COALESCE(NULLIF(current_setting('reserved_connections', true), ''), '0')::int, true),
        ((SELECT numbackends FROM pg_stat_database WHERE datname = current_database()),
            (SELECT NULLIF(datconnlimit, -1) FROM pg_database WHERE datname = current_database()), true),
        ((SELECT count(*) FROM pg_stat_activity WHERE usename = session_user)::int,
            (SELECT NULLIF(rolconnlimit, -1) FROM pg_roles WHERE rolname = session_user), false)
    ) AS limits (used, most, is_shared) WHERE most IS NOT NULL
"""


def places() -> tuple[Places, int]:
    """Return the connections by the nearest limit, and the limit that all processes share."""
    limits = [(Places(used, most), is_shared) for used, most, is_shared in rows(_PLACES)]
    nearest = min((each for each, _ in limits), key=lambda each: each.left)
    return nearest, min(each.limit for each, is_shared in limits if is_shared)
