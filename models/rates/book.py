"""Reads the rates of earlier moments, from which the quotes of open invoices are derived; forgets what is too old.

Written by triggers of rates and network_fees: docs/decisions/quotes.md. Called by models.invoices.quoting and by
actors.upkeep.prune.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from models.db.base import execute, one, rows

# A figure that went stale before a moment is not in force then.
KEPT_BEFORE_S: Final = 3_600

Series = tuple[str, str]
"""A coin, and the network whose fee in it is meant; '' for the coin's rate."""
Figures = tuple[int, ...]
"""A figure for each series that was asked for, in their order."""

# One index look-up a series: the last row that began by then. It is looked at no further if that is stale.
_FIGURES_AT: Final = (
    "(SELECT array_agg(CASE WHEN k.stale_at > {at} THEN k.figure END ORDER BY w.place)"
    " FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS w (currency, network, place)"
    " LEFT JOIN LATERAL (SELECT r.figure, r.stale_at FROM kept_rates r WHERE r.currency = w.currency"
    "  AND r.network = w.network AND r.minute <= {at} AND r.starts_at <= {at} ORDER BY r.minute DESC LIMIT 1) k"
    " ON true)"
)
# The rows of a series w between two moments: in this form only the primary key finds them, whatever is expected.
_BETWEEN: Final = (
    "(r.currency, r.network, r.minute) >= (w.currency, w.network, {begin})"
    " AND (r.currency, r.network, r.minute) <= (w.currency, w.network, {end})"
)
# The next row of a series w after a moment.
_NEXT: Final = (
    "(SELECT r.starts_at FROM kept_rates r WHERE {condition} r.starts_at > {at} AND r.stale_at > r.starts_at AND "
    + _BETWEEN.format(begin="date_trunc('minute', {at})", end="timestamptz 'infinity'")
    + " ORDER BY r.currency, r.network, r.minute LIMIT 1)"
)
# The figures of all series at a moment, and the first moment after it at which each that has none has had a row since.
_STATE: Final = (
    "(SELECT array_agg(c.figure ORDER BY w.place) AS figures,"
    "  CASE WHEN bool_and(c.figure IS NOT NULL OR n.starts_at IS NOT NULL) THEN max(n.starts_at) END AS resumes_at"
    " FROM series w LEFT JOIN LATERAL (SELECT CASE WHEN r.stale_at > {at} THEN r.figure END AS figure"
    "  FROM kept_rates r WHERE r.starts_at <= {at} AND "
    + _BETWEEN.format(begin="timestamptz '-infinity'", end="{at}")
    + "  ORDER BY r.currency DESC, r.network DESC, r.minute DESC LIMIT 1) c ON true"
    " LEFT JOIN LATERAL " + _NEXT.format(condition="c.figure IS NULL AND", at="{at}") + " n ON true)"
)


class Entry(NamedTuple):
    """The figures of a moment; None where one of them is not known."""

    at: datetime
    figures: Figures | None


def at_moments(series: Sequence[Series], moments: Sequence[datetime]) -> list[Entry]:
    """Return the figures of some moments, each once, by one statement."""
    entries = rows(
        f"SELECT g.at, {_FIGURES_AT.format(at='g.at')} FROM (SELECT DISTINCT unnest(%s::timestamptz[]) AS at) g",
        (*_named(series), list(moments)),
    )
    return [Entry(at, _complete(figures)) for at, figures in entries]


def next_after(series: Sequence[Series], moment: datetime, *, until: datetime) -> Entry | None:
    """Return the first moment after another one, and at `until` at the latest, at which all figures are known.

    The cost grows with the number of gaps, not with their length: a few index look-ups for each.
    """
    first = _NEXT.format(condition="", at="%s::timestamptz")
    entry = one(
        "WITH RECURSIVE series AS MATERIALIZED (SELECT * FROM unnest(%s::text[], %s::text[])"
        "  WITH ORDINALITY AS o (currency, network, place)),"
        " walk (at, figures, resumes_at) AS (SELECT b.at, f.figures, f.resumes_at FROM"
        f"  (SELECT min(n.starts_at) AS at FROM series w CROSS JOIN LATERAL {first} n) b"
        f"  CROSS JOIN LATERAL {_STATE.format(at='b.at')} f"
        f" UNION ALL SELECT k.resumes_at, f.figures, f.resumes_at FROM walk k"
        f"  CROSS JOIN LATERAL {_STATE.format(at='k.resumes_at')} f"
        "  WHERE array_position(k.figures, NULL) IS NOT NULL AND k.resumes_at <= %s)"
        " SELECT at, figures FROM walk WHERE array_position(figures, NULL) IS NULL AND at <= %s LIMIT 1",
        (*_named(series), moment, moment, until, until),
    )
    return None if entry is None else Entry(entry[0], _complete(entry[1]))


def _named(series: Sequence[Series]) -> tuple[list[str], list[str]]:
    return [currency for currency, _ in series], [network for _, network in series]


def _complete(figures: Sequence[Decimal | int | None]) -> Figures | None:
    # An array's numerics come as Decimal.
    known = tuple(int(figure) for figure in figures if figure is not None)
    return known if len(known) == len(figures) else None


def carry_over(seconds: int) -> None:
    """Let what is in force stay so while the clock is moved forward, in the transaction that moves it."""
    execute(
        "UPDATE kept_rates SET stale_at = stale_at + make_interval(secs => %s) WHERE stale_at > app_now()", (seconds,)
    )


def forget_future() -> int:
    """Forget what was kept for later than now: the clock was set back, and it would be in force again, out of date."""
    return execute("DELETE FROM kept_rates WHERE starts_at > app_now() + interval '1 minute'")


def forget(*, before: datetime, limit: int) -> int:
    """Forget figures that were in force an hour before a moment, or earlier; return how many."""
    return execute(
        "DELETE FROM kept_rates WHERE ctid = ANY (ARRAY(SELECT ctid FROM kept_rates WHERE minute < %s"
        " ORDER BY minute LIMIT %s))",
        (before - timedelta(seconds=KEPT_BEFORE_S), limit),
    )
