"""Reads the rates of earlier moments, from which the quotes of open invoices are derived; forgets what is too old.

Written by triggers of rates and network_fees: docs/decisions/0088. Called by models.invoices.quoting and by
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


class Entry(NamedTuple):
    """The figures of a moment; None where one of them is not known."""

    at: datetime
    figures: Figures | None


def at_moments(series: Sequence[Series], moments: Sequence[datetime]) -> list[Entry]:
    """Return the figures of some moments, each once, by one statement."""
    found = rows(
        f"SELECT g.at, {_FIGURES_AT.format(at='g.at')} FROM (SELECT DISTINCT unnest(%s::timestamptz[]) AS at) g",
        (*_named(series), list(moments)),
    )
    return [Entry(at, _complete(figures)) for at, figures in found]


def next_after(series: Sequence[Series], moment: datetime, *, until: datetime) -> Entry | None:
    """Return the first moment after another one, and at `until` at the latest, at which all figures are known."""
    found = one(
        f"SELECT * FROM (SELECT m.starts_at, {_FIGURES_AT.format(at='m.starts_at')} AS figures FROM kept_rates m"
        " JOIN unnest(%s::text[], %s::text[]) AS o (currency, network) USING (currency, network)"
        " WHERE m.minute BETWEEN date_trunc('minute', %s::timestamptz) AND %s AND m.starts_at > %s"
        " AND m.starts_at <= %s ORDER BY 1) e WHERE array_position(e.figures, NULL) IS NULL LIMIT 1",
        (*_named(series), *_named(series), moment, until, moment, until),
    )
    return None if found is None else Entry(found[0], _complete(found[1]))


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
