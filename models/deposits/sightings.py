"""Keeps sightings: payments to invoices that no block has yet. They prove when a payment was seen, and credit nothing.

Written by actors.scan.sightings; read by invoices, and by the record of deposits, which takes over the earlier moment.
docs/decisions/sightings.md explains what they count for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple, cast
from uuid import UUID

from models.db.base import execute, one, one_as, rows, touched
from models.db.table import BY_DATABASE, Big, Table, Units

# A sighting counts for this long: a payment in no block by then may never be.
COUNTED_S: Final = 86_400
# The provider that reports the chain's head may be a block behind one whose pool lost a transaction to that block.
BEHIND_BLOCKS: Final = 1
KEPT_DAYS: Final = 30
# Limits an owner's sightings that are read to judge another one.
COUNTING_MAX: Final = 100

_HAS_DEPOSIT: Final = (
    "EXISTS (SELECT 1 FROM deposits d WHERE d.network = s.network AND d.txid = s.txid AND d.ordinal = s.ordinal"
    " AND d.status <> 'reversed')"
)
OPEN: Final = f"s.gone_at IS NULL AND s.seen_at > app_now() - make_interval(secs => {COUNTED_S}) AND NOT {_HAS_DEPOSIT}"
"""A sighting s that still counts."""
AWAITED: Final = f"s.owner_id = i.id AND s.seen_at <= i.expires_at AND {OPEN}"
"""Of an invoice i, its open sightings seen before its expiry."""
SHOWN: Final = f"{AWAITED} AND s.stray_reason IS NULL AND s.replaced_by IS NULL"
"""Of those, the ones that an invoice shows as paid: of several that spend the same coins, the newest."""
# An invoice's clock stops at its expiry: a payment that held its quote until then holds it for good.
_HELD_AT: Final = "LEAST(app_now(), i.expires_at)"
HELD_UNITS: Final = (
    "(SELECT COALESCE(sum(s.units) FILTER (WHERE d.id IS NULL"
    f"  AND s.seen_at > {_HELD_AT} - make_interval(secs => {COUNTED_S})), 0)"
    " + GREATEST(i.detected_units, COALESCE(sum(s.units) FILTER (WHERE d.id IS NOT NULL), 0))"
    " FROM sightings s LEFT JOIN deposits d"
    "  ON (d.network, d.txid, d.ordinal) = (s.network, s.txid, s.ordinal) AND d.status <> 'reversed'"
    " WHERE s.owner_id = i.id AND s.seen_at <= i.expires_at AND s.stray_reason IS NULL AND s.gone_at IS NULL"
    " AND s.is_soon)"
)
"""Of an invoice i, the units that keep it from being quoted again: deposits, and sightings that are soon.

The deposits are settled, or had a soon sighting and may not be settled yet. A sighting became soon under the stored
quote or an earlier one, since no later quote begins while it holds that one: expect(). A sighting that left the pools
may be in a block that the scan has not read yet, unless another has replaced it: doubt_replaced().
"""


class Sighting(Table, table="sightings s"):
    """A transfer to an invoice's address that no block has yet."""

    network: str
    txid: str
    ordinal: str
    currency: str
    units: Units
    address: str
    owner_kind: str
    owner_id: UUID
    merchant_id: UUID
    stray_reason: str | None
    spends: list[str]
    seen_at: datetime = BY_DATABASE
    is_soon: bool
    soon_at: datetime | None = BY_DATABASE
    replaced_by: str | None = BY_DATABASE
    lost_height: Big | None = BY_DATABASE
    gone_at: datetime | None = BY_DATABASE


class Moments(NamedTuple):
    """When a payment was first seen in a pool, if it was, and the moment that counts for its price."""

    seen_at: datetime | None
    counted_at: datetime


def known(network: str) -> dict[str, bool]:
    """Return the transactions of sightings without a deposit, with True if all of them were soon at last report."""
    return dict(
        rows(
            "SELECT s.txid, bool_and(s.is_soon) FROM sightings s"
            f" WHERE s.network = %s AND s.gone_at IS NULL AND NOT {_HAS_DEPOSIT} GROUP BY s.txid",
            (network,),
        )
    )


def note(sightings: Sequence[Sighting], *, now: datetime) -> int:
    """Record sightings; return how many rows changed. A sighting that was gone begins again, with a new moment.

    This makes none soon: expect() does, after the quotes are written that begin when another sighting lets go. now: by
    PostgreSQL's clock, when the pools had been read.
    """
    if not sightings:
        return 0
    network = sightings[0].network
    doubt(network, [new.txid for new in sightings if not new.is_soon])
    seen = {(new.txid, new.ordinal): new.but(seen_at=now, soon_at=None, is_soon=False) for new in sightings}
    changed = Sighting.write_all(
        list(seen.values()),
        "ON CONFLICT (network, txid, ordinal) DO UPDATE SET lost_height = NULL,"
        " is_soon = s.is_soon AND s.gone_at IS NULL, soon_at = CASE WHEN s.gone_at IS NULL THEN s.soon_at END,"
        " seen_at = CASE WHEN s.gone_at IS NULL THEN s.seen_at ELSE EXCLUDED.seen_at END,"
        " stray_reason = CASE WHEN s.gone_at IS NULL THEN s.stray_reason ELSE EXCLUDED.stray_reason END,"
        " replaced_by = CASE WHEN s.gone_at IS NULL THEN s.replaced_by END, gone_at = NULL",
    )
    _replace([new.txid for new in seen.values()], network=network)
    return changed


def expect(network: str, txids: Collection[str], *, now: datetime) -> None:
    """Mark sightings as soon. The caller has locked their invoices and written their quotes up to now.

    A sighting that was soon before keeps its moment if no later quote has begun since. Otherwise it holds the new quote
    from now on; it stays in time if it was.
    """
    execute(
        "UPDATE sightings s SET is_soon = true, soon_at = CASE WHEN s.soon_at IS NULL THEN %s"
        "  WHEN s.soon_at < (SELECT max(q.valid_from) FROM quotes q WHERE q.invoice_id = s.owner_id)"
        "  THEN GREATEST(s.soon_at, LEAST(%s, i.expires_at)) ELSE s.soon_at END"
        " FROM invoices i WHERE i.id = s.owner_id AND s.network = %s AND s.txid = ANY(%s) AND NOT s.is_soon"
        " AND s.gone_at IS NULL",
        (now, now, network, list(txids)),
    )


def _replace(newer: Sequence[str], *, network: str) -> None:
    """Mark earlier sightings that spend some of the same coins as replaced: at most one of them is paid."""
    spending = "(SELECT txid, seen_at, unnest(spends) AS spent FROM sightings WHERE network = %s AND"
    execute(
        "UPDATE sightings s SET replaced_by = r.newer FROM (SELECT o.txid, max(n.txid) AS newer"
        f" FROM {spending} txid = ANY(%s)) n JOIN {spending} gone_at IS NULL) o USING (spent)"
        " WHERE (n.seen_at, n.txid) > (o.seen_at, o.txid) GROUP BY o.txid) r"
        " WHERE s.network = %s AND s.txid = r.txid AND s.gone_at IS NULL AND s.replaced_by IS NULL",
        (network, list(newer), network, network),
    )


def doubt(network: str, txids: Collection[str]) -> None:
    """Mark sightings as not soon, as no provider that answered expects them in a block; those with a deposit stay."""
    execute(
        "UPDATE sightings s SET is_soon = false WHERE s.network = %s AND s.txid = ANY(%s) AND s.is_soon"
        f" AND s.gone_at IS NULL AND NOT {_HAS_DEPOSIT}",
        (network, list(txids)),
    )


def doubt_replaced(network: str, *, left: Collection[str] = ()) -> None:
    """Mark replaced sightings that are in no pool as not soon. left: transactions that stay as they are."""
    execute(
        "UPDATE sightings s SET is_soon = false WHERE s.network = %s AND s.lost_height IS NOT NULL"
        f" AND s.replaced_by IS NOT NULL AND s.is_soon AND s.gone_at IS NULL AND NOT {_HAS_DEPOSIT}"
        " AND s.txid <> ALL(%s)",
        (network, list(left)),
    )


def lose_moments(owner_ids: Collection[UUID]) -> None:
    """Clear the moments of sightings that are not soon and hold their invoices' quotes no longer."""
    execute(
        "UPDATE sightings s SET soon_at = NULL WHERE s.owner_id = ANY(%s::uuid[]) AND NOT s.is_soon"
        f" AND s.gone_at IS NULL AND NOT {_HAS_DEPOSIT}",
        (list(owner_ids),),
    )


def lose(network: str, txids: Collection[str], *, height: int, left: Collection[str] = ()) -> None:
    """Record which sightings have left all pools: either a block up to this height has them, or none will."""
    execute(
        "UPDATE sightings SET lost_height = CASE WHEN txid = ANY(%s) THEN COALESCE(lost_height, %s) END"
        " WHERE network = %s AND gone_at IS NULL AND (txid = ANY(%s) OR lost_height IS NOT NULL)"
        " AND txid <> ALL(%s)",
        (list(txids), height, network, list(txids), list(left)),
    )


def owners_of(network: str, txids: Collection[str]) -> list[tuple[str, UUID]]:
    """Return (transaction, invoice) of these transactions' sightings and of lost ones, if they are not gone."""
    return rows(
        "SELECT txid, owner_id FROM sightings WHERE network = %s AND gone_at IS NULL"
        " AND (txid = ANY(%s) OR lost_height IS NOT NULL)",
        (network, list(txids)),
    )


def forget_lost(network: str, *, left: Collection[str] = ()) -> list[str]:
    """Mark lost sightings as gone that the scan has passed without finding them; return their transactions.

    The sightings that they had replaced count again, unless gone. left: transactions that stay as they are.
    """
    lost = rows(
        "UPDATE sightings s SET gone_at = app_now() FROM chain_cursors c WHERE s.network = %s AND c.network = s.network"
        f" AND s.gone_at IS NULL AND s.lost_height + {BEHIND_BLOCKS} <= c.height AND NOT {_HAS_DEPOSIT}"
        " AND s.txid <> ALL(%s) RETURNING s.txid",
        (network, list(left)),
    )
    gone = sorted({txid for (txid,) in lost})
    if gone:
        execute("UPDATE sightings SET replaced_by = NULL WHERE network = %s AND replaced_by = ANY(%s)", (network, gone))
    return gone


def moments_of(
    network: str, txid: str, ordinal: str, *, owner_id: UUID, block_height: int, block_time: datetime
) -> Moments:
    """Return the moments of a deposit: its block's, its reading's, or its sighting's, whichever is first.

    A soon sighting counts from the moment when it became soon. One that was soon in time and no longer is gets the
    price of its block and stays in time: its moment is the expiry, if the block is later. A block may be dated ahead;
    its payments were made before it was read. It may be dated back; it was made after the scanned block before it.
    """
    moments = one_as(
        Moments,
        "SELECT s.seen_at, LEAST(b.at, CASE WHEN s.is_soon THEN s.soon_at"
        "  WHEN s.soon_at <= i.expires_at THEN i.expires_at END) AS counted_at"
        " FROM (SELECT LEAST(GREATEST(%s::timestamptz, (SELECT block_time FROM chain_blocks WHERE network = %s"
        "  AND height < %s ORDER BY height DESC LIMIT 1)), app_now()) AS at) b"
        " LEFT JOIN sightings s ON s.network = %s AND s.txid = %s AND s.ordinal = %s AND s.owner_id = %s"
        "  AND s.gone_at IS NULL AND b.at <= s.seen_at + make_interval(secs => %s)"
        " LEFT JOIN invoices i ON i.id = s.owner_id",
        (block_time, network, block_height, network, txid, ordinal, owner_id, COUNTED_S),
    )
    return cast("Moments", moments)


def awaited(invoice_id: UUID) -> int:
    """Count the sightings for which an expired invoice still waits: strays included, dust not."""
    row = one(
        "SELECT count(*) FROM sightings s JOIN invoices i ON i.id = s.owner_id WHERE i.id = %s"
        f" AND s.stray_reason IS DISTINCT FROM 'dust' AND {AWAITED}",
        (invoice_id,),
    )
    return int(row[0]) if row else 0


def counting(owner_id: UUID, *, txid: str, besides: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return (txid, ordinal, units) of an owner's sightings that count, in the order in which they were seen.

    besides: coins; of the sightings that spend any of them, only those of txid are returned.
    """
    return rows(
        "SELECT s.txid, s.ordinal, s.units FROM sightings s WHERE s.owner_id = %s AND s.stray_reason IS NULL"
        f" AND s.replaced_by IS NULL AND (s.txid = %s OR NOT s.spends && %s::text[]) AND {OPEN}"
        " ORDER BY s.seen_at, s.txid, s.ordinal LIMIT %s",
        (owner_id, txid, list(besides), COUNTING_MAX),
    )


def note_look(network: str) -> bool:
    """Record that a network's pools were read to their end."""
    return touched("UPDATE chain_cursors SET pools_read_at = app_now() WHERE network = %s", (network,))


def by_network() -> list[tuple[str, int]]:
    """Return the number of sightings that count, by network."""
    return rows(f"SELECT s.network, count(*) FROM sightings s WHERE {OPEN} GROUP BY s.network")


def look_ages() -> list[tuple[str, float]]:
    """Return the seconds since each network's pools were last read, without networks whose pools never were."""
    return rows(
        "SELECT network, extract(epoch FROM app_now() - pools_read_at)::float8 FROM chain_cursors"
        " WHERE pools_read_at IS NOT NULL"
    )


def prune(*, limit: int) -> int:
    """Forget some old sightings that are gone or have become deposits; return how many."""
    return execute(
        "DELETE FROM sightings WHERE (network, txid, ordinal) IN (SELECT s.network, s.txid, s.ordinal FROM sightings s"
        f" WHERE s.seen_at < app_now() - make_interval(days => %s) AND (s.gone_at IS NOT NULL OR {_HAS_DEPOSIT})"
        " ORDER BY s.seen_at LIMIT %s)",
        (KEPT_DAYS, limit),
    )
