"""Whether a network may be signed for: not while the database may have forgotten what was signed before.

A database that was restored, or promoted from a standby that lagged, hands out slots and takes orders a second time.
Asked by actors.signer.spend in the very transaction that commits signed bytes; actors.signer.recovery lifts what it
stopped, once the scan has caught up with the chain and nothing that left is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from models.addresses import reservations
from models.db.base import execute, is_true, one, transaction
from models.db.table import Table, derived
from models.payouts import freezes
from models.payouts.freezes import RECOVERY
from models.spends import rows as spends

log = structlog.get_logger()

# The current timeline stands in the name of the log file that is written now; the control file learns of a promotion
# only with the next checkpoint.
_IDENTITY: Final = (
    "SELECT system_identifier::text AS system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline"
    " FROM pg_control_system()"
)
ANOTHER_DATABASE: Final = "the database is another one than it was signed from: it may lack the last commits"
# No database has this timeline.
_GONE: Final = ""


class Stop(Table, table="signing_stops"):
    """Why a network is not signed for."""

    network: str
    reason: str
    # Whose slots the chain tells more of than we do, '' where that is not the reason.
    sender: str
    # Whether the scan has stood at the chain's head since.
    is_caught_up: bool
    stopped_at: datetime
    age_s: int = derived("extract(epoch FROM app_now() - stopped_at)::bigint")


def obstacle(network: str) -> str:
    """Say why a network may not be signed for, '' if it may. Ask in the transaction that commits the bytes."""
    row = one(
        f"SELECT (SELECT reason FROM signing_stops WHERE network = %s), EXISTS (SELECT 1 FROM ({_IDENTITY}) now"
        " JOIN database_marks m ON (m.system_identifier, m.timeline) = (now.system_identifier, now.timeline)"
        " WHERE m.network = %s)",
        (network, network),
    )
    reason, is_same = row or (None, False)
    return str(reason) if reason is not None else "" if is_same else ANOTHER_DATABASE


def watch(network: str) -> Stop | None:
    """Note which database this is the first time, stop the network if it is another, and return what stops it.

    Not to be called inside a transaction.
    """
    mark = one(f"SELECT m.* IS NOT NULL, (SELECT reason FROM signing_stops WHERE network = %s) IS NOT NULL,"
        f" (m.system_identifier, m.timeline) = (now.system_identifier, now.timeline) FROM ({_IDENTITY}) now"
        " LEFT JOIN database_marks m ON m.network = %s", (network, network))  # fmt: skip
    is_noted, is_stopped, is_same = mark or (False, False, False)
    if not is_noted:
        execute(
            f"INSERT INTO database_marks (network, system_identifier, timeline) SELECT %s, * FROM ({_IDENTITY}) now"
            " ON CONFLICT DO NOTHING",
            (network,),
        )
    elif not is_same and not is_stopped:
        with transaction():
            stop(network, reason=ANOTHER_DATABASE)
    return read(network) if is_stopped or (is_noted and not is_same) else None


@dataclass(frozen=True, slots=True)
class Age:
    """How old a state of which database this is."""

    database: str
    # How often it was counted before.
    looks: int
    # Where its log stands: the same place again means that nothing was written since.
    position: str


def age() -> Age:
    """Return how old this state of the database is."""
    row = one(
        "SELECT now.system_identifier || ':' || now.timeline, looks, pg_current_wal_insert_lsn()::text"
        f" FROM database_looks, ({_IDENTITY}) now"
    )
    if row is None:
        raise LookupError("the database does not tell which one it is")
    return Age(*row)


def count_look() -> int:
    """Count one more look, and return the count: it outlasts every crash. Not to be called inside a transaction."""
    with transaction():
        # The note of it in Redis may never be ahead of what a crash leaves.
        execute("SET LOCAL synchronous_commit = on")
        row = one("UPDATE database_looks SET looks = looks + 1 RETURNING looks")
    if row is None:
        raise LookupError("the database does not count who looks at it")
    return int(row[0])


def distrust() -> None:
    """Take this database for another one, for a reason that it cannot know: it went back to an older state of itself.

    All networks stop until their scan has caught up, and no address is handed out that may have been. Not to be called
    inside a transaction.
    """
    with transaction():
        execute("UPDATE database_marks SET timeline = %s", (_GONE,))
        # A stop that came back with the old state may say that the scan has caught up: it had, then.
        execute("UPDATE signing_stops SET is_caught_up = false WHERE is_caught_up")
        for family in reservations.SEQUENCES:
            execute(
                "INSERT INTO database_marks (network, system_identifier, timeline) VALUES (%s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                (_pool(family), _GONE, _GONE),
            )
    for family in reservations.SEQUENCES:
        renew_pool(family)


def renew_pool(family: str) -> int | None:
    """Skip ahead in a family's addresses if the database may not know which were handed out; return the next.

    That is where it is another one than they were made for, and since the chain knows more of us than our rows do.
    None where nothing of that is new. Not to be called inside a transaction.
    """
    name = _pool(family)
    with transaction():
        execute(
            "INSERT INTO database_marks (network, noted_at, system_identifier, timeline)"
            f" SELECT %s, 'epoch', * FROM ({_IDENTITY}) now ON CONFLICT DO NOTHING",
            (name,),
        )
        is_another = execute(
            "UPDATE database_marks m SET noted_at = app_now(), system_identifier = now.system_identifier,"
            f" timeline = now.timeline FROM ({_IDENTITY}) now WHERE m.network = %s"
            " AND ((m.system_identifier, m.timeline) <> (now.system_identifier, now.timeline) OR EXISTS"
            " (SELECT FROM signing_stops s WHERE s.stopped_at > m.noted_at AND s.reason <> %s))",
            (name, ANOTHER_DATABASE),
        )
        if not is_another:
            return None
        first = reservations.skip_ahead(family)
    log.warning("address_pool.renewed", family=family, first=first)
    return first


def _pool(family: str) -> str:
    return f"pool:{family}"


def stop(network: str, *, reason: str, sender: str = "") -> bool:
    """Let nothing be signed for a network from the caller's commit on; False if that is so already.

    A stop that stands begins anew: the scan has to catch up once more.
    """
    is_new = execute(
        "INSERT INTO signing_stops (network, reason, sender) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        (network, reason, sender),
    )
    if not is_new:
        execute("UPDATE signing_stops SET is_caught_up = false WHERE network = %s AND is_caught_up", (network,))
        return False
    freezes.freeze("network", network, reason=reason, frozen_by=RECOVERY)
    log.critical("signing.stopped", network=network, reason=reason)
    return True


def read(network: str) -> Stop | None:
    """Return what stops a network."""
    return Stop.first("network = %s", (network,))


def listing() -> list[Stop]:
    """Return all networks that are not signed for."""
    return Stop.read("true ORDER BY network")


def note_caught_up(network: str) -> None:
    """Note that the scan stands at the chain's head, told after the stop was seen."""
    execute("UPDATE signing_stops SET is_caught_up = true WHERE network = %s AND NOT is_caught_up", (network,))


def resume(stopped: Stop, slots: Mapping[str, int]) -> bool:
    """Sign again, from slots that are at least these by sender; False if something came between.

    The database of now is the one that is signed from. Not to be called inside a transaction.
    """
    with transaction():
        found = one("SELECT is_caught_up FROM signing_stops WHERE network = %s FOR UPDATE", (stopped.network,))
        if found is None or not found[0] or has_unknown(stopped.network):
            return False
        for sender, slot in slots.items():
            spends.raise_slot(stopped.network, sender, slot)
        execute(
            "INSERT INTO database_marks AS m (network, system_identifier, timeline)"
            f" SELECT %s, * FROM ({_IDENTITY}) now ON CONFLICT (network) DO UPDATE SET noted_at = app_now(),"
            " system_identifier = EXCLUDED.system_identifier, timeline = EXCLUDED.timeline",
            (stopped.network,),
        )
        execute("DELETE FROM signing_stops WHERE network = %s", (stopped.network,))
        freezes.unfreeze("network", stopped.network, frozen_by=RECOVERY)
        execute(
            "UPDATE payouts SET due_at = app_now(), wait_reason = '' WHERE network = %s AND status = 'approved'"
            " AND wait_reason = %s",
            (stopped.network, waiting_reason(stopped.reason)),
        )
    log.warning("signing.resumed", network=stopped.network, reason=stopped.reason)
    return True


def has_unknown(network: str) -> bool:
    """Whether a departure of unknown purpose is open on the network."""
    return is_true("SELECT 1 FROM unknown_spends WHERE network = %s AND status = 'open' LIMIT 1", (network,))


def waiting_reason(reason: str) -> str:
    """Return what an approved payout says while its network is not signed for."""
    return f"signing is stopped: {reason}"[:200]


def tell_payouts(stopped: Stop) -> None:
    """Let the approved payouts of a stopped network say why they wait."""
    reason = waiting_reason(stopped.reason)
    execute(
        "UPDATE payouts SET wait_reason = %s WHERE network = %s AND status = 'approved' AND wait_reason <> %s",
        (reason, stopped.network, reason),
    )
