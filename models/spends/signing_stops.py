"""Stops the signing for a network while the database may lack spends that were signed before.

A database that was restored, or promoted from a standby that lagged, hands out slots and takes orders a second time.
actors.signer.sign asks in the same transaction that commits signed bytes. actors.recovery.resume lifts a stop once the
scan has caught up with the chain and no departure is unexplained.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from core.catalogue.catalogue import Catalogue
from models.addresses import reservations
from models.db.after_commit import Bell, ring
from models.db.base import column, execute, is_true, one_as, touched, transaction, value
from models.db.table import BY_DATABASE, Big, Table, derived
from models.deposits import cursors
from models.payouts import freezes, waiting
from models.payouts.freezes import RECOVERY
from models.spends import freshness
from models.spends import rows as spends

log = structlog.get_logger()

# The name of the current log file contains the current timeline; the control file has a promotion's only after the next
# checkpoint.
_IDENTITY: Final = (
    "SELECT system_identifier::text AS system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline"
    " FROM pg_control_system()"
)
_NOTE: Final = f"INSERT INTO database_marks (network, system_identifier, timeline) SELECT %s, * FROM ({_IDENTITY}) now"
ANOTHER_DATABASE: Final = "the database is another one than it was signed from: it may lack the last commits"
AFTER_GAP: Final = "the scan had paused, or its notes are older than it is: the database may have gone back"
OF_RESTORE: Final = (ANOTHER_DATABASE, AFTER_GAP)
"""Reasons of stops after which rows may be missing."""

# Sets a stop that begins now.
_BEGUN_AGAIN: Final = "is_caught_up = false, stopped_at = app_now(), counted_from = NULL"
# A stop restored with a backup does not cover what the database lost since, and has the wrong time.
_AGAIN: Final = (
    f"UPDATE signing_stops s SET reason = %s, {_BEGUN_AGAIN} WHERE s.network = %s"
    " AND s.reason <> %s AND EXISTS (SELECT FROM database_marks m WHERE m.network = s.network"
    f"   AND (m.system_identifier, m.timeline) NOT IN ({_IDENTITY}))"
)
# No database has this timeline.
_GONE: Final = ""


class DatabaseMark(Table, table="database_marks"):
    """The database that a network was last signed from."""

    network: str
    system_identifier: str
    timeline: str
    noted_at: datetime = BY_DATABASE


class DatabaseLooks(Table, table="database_looks"):
    """The number of times that the signer checked the database's identity; one row."""

    is_only: bool
    looks: Big


class Stop(Table, table="signing_stops"):
    """A stop of the signing for a network."""

    network: str
    reason: str
    # The sender for whom the chain has more used slots than our rows; '' if the reason is another one.
    sender: str
    # True if the scan has reached the chain's head since.
    is_caught_up: bool = BY_DATABASE
    stopped_at: datetime = BY_DATABASE
    # The chain's own count of blocks at the first head that the scan reached since; None where windows are no blocks.
    counted_from: Big | None = BY_DATABASE
    age_s: int = derived("extract(epoch FROM app_now() - stopped_at)::bigint")


def obstacle(network: str) -> str:
    """Return why a network may not be signed for, '' if it may. Ask in the transaction that commits the bytes.

    Only for the signer's process: counts what the scan has read since that process began.
    """
    return _stopped_for(network) or freshness.obstacle(network)


def look(network: str) -> datetime | None:
    """Record that the scan looks at its chain now; return the moment, None before the first scan.

    Stops the network if its database may have gone back since the previous look. If the database and Redis go back
    together, neither shows it, and what was signed may still wait for a block. Not to be called inside a transaction.
    """
    with transaction():
        latest = freshness.look(network)
        if latest is not None and latest.is_after_gap:
            _doubt(network)
    return None if latest is None else latest.began_at


def _doubt(network: str) -> None:
    """Stop a network until the scan has caught up and the windows of earlier signed bytes are over.

    A stop that exists begins again.
    """
    if Stop(network=network, reason=AFTER_GAP, sender="").write("ON CONFLICT DO NOTHING"):
        freezes.freeze("network", network, reason=AFTER_GAP, frozen_by=RECOVERY)
    else:
        execute(
            f"UPDATE signing_stops SET {_BEGUN_AGAIN},"
            " reason = CASE WHEN reason = %s THEN reason ELSE %s END WHERE network = %s",
            (ANOTHER_DATABASE, AFTER_GAP, network),
        )
    log.warning("signing.doubted", network=network, reason=AFTER_GAP)


def _stopped_for(network: str) -> str:
    """Return the reason of a stop, or that the database is another one; '' if neither holds."""
    reason: str = value(
        "SELECT COALESCE((SELECT reason FROM signing_stops WHERE network = %s), CASE WHEN EXISTS (SELECT FROM"
        f" ({_IDENTITY}) now JOIN database_marks m USING (system_identifier, timeline) WHERE m.network = %s)"
        " THEN '' ELSE %s END)",
        (network, network, ANOTHER_DATABASE),
    )
    return reason


def watch(network: str) -> Stop | None:
    """Stop a network if its database is another one than before; return its stop, None if it has none.

    The first time, only records the database's identity. If several processes do so at once, one writes it and the
    others check again. Not to be called inside a transaction.
    """
    if not _stopped_for(network):
        return None
    stopped = read(network)
    if stopped is None and not touched(f"{_NOTE} ON CONFLICT DO NOTHING", (network,)) and _stopped_for(network):
        with transaction():
            stop(network, reason=ANOTHER_DATABASE)
        stopped = read(network)
    elif stopped is not None and touched(_AGAIN, (ANOTHER_DATABASE, network, ANOTHER_DATABASE)):
        stopped = read(network)
    return stopped


@dataclass(frozen=True, slots=True)
class Age:
    """The age of this database's state."""

    database: str
    # The looks counted so far, by count_look().
    looks: int
    # The position of its log; if it is unchanged, nothing was written since.
    position: str


def age() -> Age:
    """Return the age of the database's state."""
    row = one_as(
        Age,
        "SELECT now.system_identifier || ':' || now.timeline AS database, looks,"
        f" pg_current_wal_insert_lsn()::text AS position FROM database_looks, ({_IDENTITY}) now",
    )
    if row is None:
        raise LookupError("the database does not tell which one it is")
    return row


def count_look() -> int:
    """Count one more look and return the count, which survives a crash. Not to be called inside a transaction."""
    with transaction():
        # After a crash, the count in Redis must not be ahead of this one.
        execute("SET LOCAL synchronous_commit = on")
        looks: int | None = value("UPDATE database_looks SET looks = looks + 1 RETURNING looks")
    if looks is None:
        raise LookupError("the database does not count who looks at it")
    return looks


def distrust() -> None:
    """Treat this database as another one, because it went back to an older state of itself, which it cannot see.

    All networks stop until their scan has caught up, and addresses that may have been handed out are skipped. Not to be
    called inside a transaction.
    """
    with transaction():
        execute("UPDATE database_marks SET timeline = %s", (_GONE,))
        # A stop restored with the old state may say that the scan has caught up, which was true then, and has the wrong
        # time.
        execute(f"UPDATE signing_stops SET {_BEGUN_AGAIN}")
        for family in reservations.SEQUENCES:
            gone = DatabaseMark(network=_pool(family), system_identifier=_GONE, timeline=_GONE)
            gone.write("ON CONFLICT DO NOTHING")
    for family in reservations.SEQUENCES:
        renew_pool(family)


def renew_pool(family: str) -> int | None:
    """Skip ahead in a family's addresses if the database may not know which were handed out; return the next ordinal.

    That is so if the database is another one than the addresses were made for, or if a network was stopped since
    because the chain has more of our spends than our rows. None if neither is new. Not to be called inside a
    transaction.
    """
    name = _pool(family)
    with transaction():
        execute(
            "INSERT INTO database_marks (network, noted_at, system_identifier, timeline)"
            f" SELECT %s, 'epoch', * FROM ({_IDENTITY}) now ON CONFLICT DO NOTHING",
            (name,),
        )
        if not touched(
            "UPDATE database_marks m SET noted_at = app_now(), system_identifier = now.system_identifier,"
            f" timeline = now.timeline FROM ({_IDENTITY}) now WHERE m.network = %s"
            " AND ((m.system_identifier, m.timeline) <> (now.system_identifier, now.timeline) OR EXISTS"
            " (SELECT FROM signing_stops s WHERE s.stopped_at > m.noted_at AND s.reason <> %s))",
            (name, ANOTHER_DATABASE),
        ):
            return None
        first = reservations.skip_ahead(family)
    log.warning("address_pool.renewed", family=family, first=first)
    return first


def _pool(family: str) -> str:
    return f"pool:{family}"


def stop(network: str, *, reason: str, sender: str = "") -> bool:
    """Stop the signing for a network from the caller's commit on; False if it was stopped.

    A stop that exists begins again: the scan has to catch up once more. Notifies recovery after the commit.
    """
    ring(Bell.RESUME_SIGNING, network)
    if not Stop(network=network, reason=reason, sender=sender).write("ON CONFLICT DO NOTHING"):
        fall_behind(network)
        return False
    freezes.freeze("network", network, reason=reason, frozen_by=RECOVERY)
    log.critical("signing.stopped", network=network, reason=reason)
    return True


def fall_behind(network: str) -> None:
    """Require the scan to catch up once more before a stopped network may be signed for."""
    execute("UPDATE signing_stops SET is_caught_up = false WHERE network = %s AND is_caught_up", (network,))


def read(network: str) -> Stop | None:
    """Return the stop of a network; None if it has none."""
    return Stop.first("network = %s", (network,))


def surely_known_s(network: str) -> int | None:
    """Return how many seconds ago a stopped network's rows were surely complete; None if that is unknown.

    That is its last signing before the stop, or its database mark: lost rows were signed later, since nothing is signed
    between a restore and the stop. None too if the stop's reason is not a restore: then no rows are missing.
    """
    seconds: int | None = value(
        "SELECT extract(epoch FROM app_now() - GREATEST(m.noted_at, (SELECT max(a.created_at) FROM spend_attempts a"
        "   WHERE a.network = m.network AND a.created_at < COALESCE(s.stopped_at, app_now()))))::bigint"
        " FROM database_marks m LEFT JOIN signing_stops s USING (network) WHERE m.network = %s"
        # Before the signer has stopped it, the database's identity shows a restore.
        " AND (s.reason IS NULL OR s.reason = ANY(%s))",
        (network, list(OF_RESTORE)),
    )
    return None if seconds is None else int(seconds)


def is_caught_up(network: str) -> bool:
    """Lock a network's stop until the transaction ends; return True if the scan has reached the head since."""
    return is_true("SELECT is_caught_up FROM signing_stops WHERE network = %s FOR UPDATE", (network,))


def listing() -> list[Stop]:
    """Return all stops, by network."""
    return Stop.read("true ORDER BY network")


def doubtful() -> set[str]:
    """Return the networks whose rows may lack spends: those stopped, and those about to be.

    A network is about to be stopped if the database has another identity, or if its server started after the scan's
    last look. Asked before value leaves a balance by another way than a payout of that network.
    """
    return set(
        column(
            "SELECT network FROM signing_stops UNION SELECT m.network FROM database_marks m"
            " WHERE NOT starts_with(m.network, 'pool:')"
            f" AND (m.system_identifier, m.timeline) NOT IN ({_IDENTITY}) UNION {cursors.UNSEEN}"
        )
    )


def doubted_coins(catalogue: Catalogue, served: Collection[str], *, but: str = "") -> set[str]:
    """Return the coins on doubtful networks other than `but`: balances may still show what has left there.

    served: the networks that have providers here. Spends on others can never become known.
    """
    networks = doubtful() & set(served) - {but}
    return {pair.currency for code in networks for pair in catalogue.pairs_on(code)}


def note_caught_up(
    network: str,
    *,
    window_s: int = 0,
    window_blocks: int = 0,
    age_max_s: int | None = None,
    needs_new_block: bool = False,
) -> None:
    """Record that the scan has reached a head that was asked for after the stop was seen, unless the scan is halted.

    Nothing is recorded in these cases:
    window_s: fewer seconds have passed since the stop, by the chain's clock or ours. Until then, bytes that were signed
    before and that no row knows may still come into a block.
    window_blocks: fewer blocks have followed a block that is newer than the stop. A chain may halt for longer than
    window_s, and takes those bytes in the blocks that follow.
    age_max_s: the newest block is older, as with nodes that went back together with the database.
    needs_new_block: the newest block is older than the stop, or the scan read it before: a miner may date a block hours
    ahead. Blocks follow the real clock.
    """
    if window_blocks:
        execute(
            "UPDATE signing_stops s SET counted_from = c.block_count FROM chain_cursors c WHERE s.network = %s"
            " AND c.network = s.network AND s.counted_from IS NULL AND c.block_time > s.stopped_at"
            " AND c.moved_at > s.stopped_at",
            (network,),
        )
    execute(
        "UPDATE signing_stops s SET is_caught_up = true WHERE s.network = %(network)s AND NOT s.is_caught_up"
        " AND (%(window_s)s = 0 OR s.stopped_at + make_interval(secs => %(window_s)s)"
        "   < (SELECT LEAST(c.block_time, app_now()) FROM chain_cursors c WHERE c.network = s.network))"
        " AND (%(window_blocks)s = 0 OR s.counted_from + %(window_blocks)s"
        "   < (SELECT c.block_count FROM chain_cursors c WHERE c.network = s.network))"
        " AND NOT EXISTS (SELECT FROM chain_cursors c WHERE c.network = s.network AND c.halted_reason <> '')"
        " AND (%(age_max_s)s::int IS NULL OR EXISTS (SELECT FROM chain_cursors c WHERE c.network = s.network"
        "   AND c.block_time > clock_timestamp() - CASE WHEN %(needs_new_block)s"
        "     THEN LEAST(make_interval(secs => %(age_max_s)s), app_now() - s.stopped_at)"
        "     ELSE make_interval(secs => %(age_max_s)s) END"
        "   AND (NOT %(needs_new_block)s OR c.moved_at > s.stopped_at)))",
        {
            "network": network,
            "window_s": window_s,
            "window_blocks": window_blocks,
            "age_max_s": age_max_s,
            "needs_new_block": needs_new_block,
        },
    )


def resume(stopped: Stop, slots: Mapping[str, int]) -> bool:
    """Lift a stop, and raise each sender's next slot to at least this one; False if the stop's conditions changed.

    Records the current database as the one to sign from. Not to be called inside a transaction.
    """
    with transaction():
        if not is_caught_up(stopped.network) or has_unexplained(stopped.network):
            return False
        for sender, slot in slots.items():
            spends.raise_slot(stopped.network, sender, slot)
        execute(
            f"{_NOTE} ON CONFLICT (network) DO UPDATE SET noted_at = app_now(),"
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


def has_unexplained(network: str) -> bool:
    """Return True if a departure on the network is unexplained, read or not."""
    return is_true(
        # Where the claim is no slot, a departure that a reorg took does not count: it stops the signing again if it
        # comes back.
        "SELECT 1 FROM unexplained_departures d WHERE d.network = %s AND d.status IN ('unread', 'unexplained')"
        " AND (d.claim = 'counter' OR d.block_height IS NOT NULL) AND (d.status = 'unexplained' OR NOT EXISTS"
        "   (SELECT 1 FROM spend_attempts a WHERE (a.network, a.txid) = (d.network, d.txid))) LIMIT 1",
        (network,),
    )


def waiting_reason(reason: str) -> str:
    """Return the wait_reason of an approved payout while its network is not signed for."""
    return f"signing is stopped: {reason}"[:200]


def tell_payouts(network: str, reason: str) -> None:
    """Write into the approved payouts of a stopped network why they wait."""
    waiting.write(
        "network = %s AND status = 'approved'", (network,), reason=waiting_reason(reason), waiting_for="network"
    )


def wake_payouts(network: str) -> None:
    """Make payouts due now that waited until their network may be signed for."""
    execute(
        "UPDATE payouts SET due_at = app_now(), wait_reason = '' WHERE network = %s AND status = 'approved'"
        " AND starts_with(wait_reason, %s)",
        (network, waiting_reason("")),
    )
