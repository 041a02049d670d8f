"""Keeps what the sources of rates said last, and which is to be asked next.

Called by actors.rates.refresh, and for health by others.
Answers are kept here rather than in a process, so that restarts and further workers ask no source more often than it
likes, and a daily table is asked for once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Final

from psycopg2.extras import Json

from models.db.base import column, execute
from models.db.clock import FUTURE_MAX_S
from models.rates.rows import RateSourceRow

# A source that fails is asked again after this, then twice as long, up to its ordinary interval or a minute.
RETRY_FIRST_S: Final = 30
RETRY_CEILING_MIN_S: Final = 60
DOUBLINGS_MAX: Final = 12


def lease_due(intervals_s: Mapping[str, int], *, lease_s: int) -> list[str]:
    """Return the sources that are due, leased to the caller alone until the lease is over.

    intervals_s: how often each source is asked. A source that would wait longer than any of its pauses is due as well:
    the database's clock was set back.
    """
    names = sorted(intervals_s)
    execute(
        "INSERT INTO rate_sources (source, ask_at) SELECT name, app_now() FROM unnest(%s) AS name"
        " WHERE name NOT IN (SELECT source FROM rate_sources) ON CONFLICT DO NOTHING",
        (names,),
    )
    pauses_s = [max(intervals_s[name], RETRY_CEILING_MIN_S, lease_s) + FUTURE_MAX_S for name in names]
    leased = column(
        "UPDATE rate_sources SET ask_at = app_now() + make_interval(secs => %s) WHERE source IN"
        " (SELECT s.source FROM rate_sources s JOIN unnest(%s::text[], %s::int[]) AS w (name, pause_s)"
        "   ON w.name = s.source WHERE s.ask_at <= app_now() OR s.ask_at > app_now() + make_interval(secs => w.pause_s)"
        "  ORDER BY s.source FOR UPDATE OF s SKIP LOCKED) RETURNING source",
        (lease_s, names, pauses_s),
    )
    return sorted(leased)


def lock_all() -> dict[str, RateSourceRow]:
    """Return every source's row, locked in one order, so that a later process settles on what it sees here."""
    return _read("FOR UPDATE")


def all_sources() -> dict[str, RateSourceRow]:
    """Return every source's row: for health."""
    return _read("")


def record_answer(source: str, quotes: Mapping[str, Decimal], *, every_s: int) -> None:
    """Keep a good answer in place of the last one."""
    execute(
        "UPDATE rate_sources SET quotes = %s, answered_at = app_now(), failures = 0, problem = '',"
        " ask_at = app_now() + make_interval(secs => %s) WHERE source = %s",
        (Json({currency: str(price) for currency, price in quotes.items()}), every_s, source),
    )


def remember_unknown(source: str, symbols: Collection[str]) -> None:
    """Keep the symbols that a source does not know, as of now."""
    execute("UPDATE rate_sources SET unknown = %s, unknown_at = app_now() WHERE source = %s", (sorted(symbols), source))


def record_failure(source: str, problem: str, *, every_s: int) -> None:
    """Note a failure; the last good answer stays for as long as it counts."""
    execute(
        "UPDATE rate_sources SET failures = failures + 1, problem = %s,"
        " ask_at = app_now() + make_interval(secs => least(%s, %s * 2 ^ least(failures, %s))) WHERE source = %s",
        (problem, max(every_s, RETRY_CEILING_MIN_S), RETRY_FIRST_S, DOUBLINGS_MAX, source),
    )


def _read(lock: str) -> dict[str, RateSourceRow]:
    return {
        row.source: row.but(quotes={currency: Decimal(price) for currency, price in row.quotes.items()})
        for row in RateSourceRow.read(f"true ORDER BY source {lock}")
    }
