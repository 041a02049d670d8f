"""Checks that a network's scan has recently read its whole chain; otherwise spends may have left that no row has.

models.spends.signing_stops asks in the transaction that commits signed bytes. If a database and its Redis go back
together, no row shows it. But they cannot hide the start of a process or of the database's server. Therefore only a
head that the scan reached after both counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from datetime import timedelta
from typing import ClassVar, Final, NamedTuple

from models.db.base import rows_as, value
from models.deposits import cursors
from models.deposits.cursors import Look

# The scan reaches its chain's head every few seconds. A head reached longer ago proves nothing about now.
HEAD_MAX_S: Final = 60
# All reasons begin like this.
PREFIX: Final = "the scan "
HALTED: Final = f"{PREFIX}is halted: "
STALE: Final = f"{PREFIX}has not been at the chain's head for a minute"
UNREAD: Final = f"{PREFIX}has not been at the chain's head since the signer or the database was started"

# Of a cursor c. A head in the future was noted before the clock was set back.
_IS_STALE: Final = (
    f"COALESCE(c.head_reached_at NOT BETWEEN app_now() - interval '{HEAD_MAX_S} seconds' AND app_now(), true)"
)
# So was a server's start in the future.
_PRECEDES_SERVER: Final = "c.head_reached_at < pg_postmaster_start_time() AND pg_postmaster_start_time() < now()"
# While a process has just begun, a missing head does not mean that the scan is late.
_IS_YOUNGER: Final = (
    f"%(running)s < interval '{HEAD_MAX_S} seconds' AND COALESCE(c.head_reached_at < app_now() - %(running)s, true)"
)
_REASON: Final = (
    f"CASE WHEN c.halted_reason <> '' THEN '{HALTED}' || c.halted_reason WHEN {_IS_YOUNGER} THEN %(unread)s"
    f" WHEN {_IS_STALE} THEN %(stale)s WHEN {_PRECEDES_SERVER} THEN %(unread)s ELSE '' END"
)


class _Process:
    began_s = time.monotonic()
    # The time of its last look at each network.
    looked_s: ClassVar[dict[str, float]] = {}


def begin() -> None:
    """Count only what the scan reads from now on; called when a process begins."""
    _Process.began_s = time.monotonic()
    _Process.looked_s.clear()


def look(network: str) -> Look | None:
    """Record that the scan looks at its chain now, in the caller's transaction; None before its first scan.

    This process remembers its own previous look, which a restored database cannot change.
    """
    now_s = time.monotonic()
    latest = cursors.look(network, seconds_ago=now_s - _Process.looked_s.get(network, _Process.began_s))
    _Process.looked_s[network] = now_s
    return latest


os.register_at_fork(after_in_child=begin)


def obstacle(network: str) -> str:
    """Return why the rows may lack what has left the network, '' if the scan has read it. For the signer's process."""
    running_s = time.monotonic() - _Process.began_s
    reason: str | None = value(
        f"SELECT {_REASON} FROM chain_cursors c WHERE c.network = %(network)s",
        {"network": network, "stale": STALE, "unread": UNREAD, "running": timedelta(seconds=running_s)},
    )
    if reason is None:
        return UNREAD if running_s < HEAD_MAX_S else STALE
    return reason


class Wait(NamedTuple):
    """A network that is not signed for until its scan has read on, with the age of the last head that it reached."""

    network: str
    reason: str
    age_s: float


def waits(networks: Collection[str]) -> list[Wait]:
    """Return the networks among these that wait for their scan, for any process; without those never scanned."""
    return rows_as(
        Wait,
        f"SELECT * FROM (SELECT c.network, {_REASON} AS reason, GREATEST(0, extract(epoch FROM app_now()"
        "   - COALESCE(c.head_reached_at, c.moved_at)))::float8 AS age_s FROM chain_cursors c"
        "   WHERE c.network = ANY(%(networks)s)) w WHERE reason <> '' ORDER BY network",
        {"networks": list(networks), "stale": STALE, "unread": UNREAD, "running": timedelta(days=36_500)},
    )
