"""Keeps deposits: rows, matching against the gateway's addresses, and the queries of the scan.

models.invoices.settlement and models.wallets.settlement decide how deposits are credited.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from core.catalogue.catalogue import Catalogue
from core.ids import uuid7
from core.payouts.states import PayoutStatus
from models.db.base import column, execute, is_true, rows, rows_as, touched, value
from models.db.table import BY_DATABASE, Big, Table, Units, derived
from models.deposits import sightings
from models.ledger.shares import IN_FORCE, Rule, rules_of

OwnerKind = Literal["invoice", "wallet"]


class Owner(NamedTuple):
    """The owner of an address: an invoice or a wallet, with its merchant."""

    address: str
    kind: OwnerKind
    id: UUID
    merchant_id: UUID
    pay_currency: str | None
    network: str | None


HEIGHT_MAX: Final = 2**63 - 1
# Several providers have to report the deposit alike before it is confirmed, and have not yet.
IS_DOUBTED: Final = (
    "EXISTS (SELECT 1 FROM deposit_quorums q WHERE q.deposit_id = d.id AND q.round = d.round AND q.agreed_at IS NULL)"
)


# Providers denied the last life of the deposit.
IS_DENIED: Final = (
    "EXISTS (SELECT 1 FROM deposit_quorums q WHERE q.deposit_id = d.id AND q.round = d.round AND q.is_denied)"
)


class Deposit(Table, table="deposits d", joins="LEFT JOIN chain_cursors c ON c.network = d.network"):
    """A deposit, with its confirmations by the scan of its own network and the refund that took it out of suspense."""

    id: UUID = BY_DATABASE
    network: str
    txid: str
    ordinal: str
    currency: str
    amount_units: Units
    address: str
    sender: str
    owner_kind: OwnerKind
    owner_id: UUID
    merchant_id: UUID
    status: str = "pending"
    stray_reason: str | None
    block_height: Big
    block_hash: str
    block_time: datetime
    seen_at: datetime = BY_DATABASE
    detected_at: datetime = BY_DATABASE
    confirmed_at: datetime | None = BY_DATABASE
    round: int = BY_DATABASE
    net_units: Units = BY_DATABASE
    fee_units: Units = BY_DATABASE
    fee_fixed_units: Units = BY_DATABASE
    rounding_units: Units = BY_DATABASE
    is_announced: bool = BY_DATABASE
    refund_id: UUID | None = BY_DATABASE
    # The part of the refund's hold that came from this deposit.
    refund_units: Units | None = BY_DATABASE
    sweep_id: UUID | None = BY_DATABASE
    # The least number of confirmations, even if its network asks for fewer.
    depth_min: int = 0
    depth: int = derived("COALESCE(c.height - d.block_height + 1, 0)")
    awaits_quorum: bool = derived(IS_DOUBTED)
    refund_status: PayoutStatus | None = derived("(SELECT p.status FROM payouts p WHERE p.id = d.refund_id)")

    @property
    def is_refunded(self) -> bool:
        """Return True if its refund is confirmed."""
        return self.refund_status == "confirmed"

    @property
    def shown_status(self) -> str:
        """Return the deposit's status in the words of the API."""
        if self.status == "confirmed" and self.refund_id is not None:
            return "refunded" if self.is_refunded else "refunding"
        return "awaiting_quorum" if self.awaits_quorum and self.status == "pending" else self.status


class ChainCursor(Table, table="chain_cursors"):
    """A network's cursor: the heights that are scanned, read a second time, and final."""

    network: str
    height: Big
    hash: str
    # The number of blocks up to it, where windows are counted in blocks.
    block_count: Big | None = BY_DATABASE
    block_time: datetime
    head_height: Big
    moved_at: datetime = BY_DATABASE
    final_height: Big | None = BY_DATABASE
    started_height: Big
    reread_height: Big | None = BY_DATABASE
    # The blocks that the second reading has given up.
    unread_blocks: Big = BY_DATABASE
    halted_reason: str = BY_DATABASE
    halted_at: datetime | None = BY_DATABASE
    final_moved_at: datetime | None = BY_DATABASE
    # When its pools were last read to their end, of networks whose providers show them.
    pools_read_at: datetime | None = BY_DATABASE
    # When the scan last looked at its chain, and when it asked for the head that it then reached.
    looked_at: datetime | None = BY_DATABASE
    head_reached_at: datetime | None = BY_DATABASE
    # The highest block ever scanned, unless two providers deny it.
    peak_height: Big | None = BY_DATABASE
    # The height at which providers are known to have different blocks.
    split_height: Big | None = BY_DATABASE
    # Each invoice in coin that ended up to this moment was looked at.
    probed_until: datetime | None = BY_DATABASE


class BalanceProbe(Table, table="balance_probes"):
    """A probe of an address, since some transfers to it show only in its balance."""

    network: str
    address: str
    owner_kind: str
    height: Big | None = BY_DATABASE
    explained_until: datetime | None = BY_DATABASE
    read_by: str = BY_DATABASE
    read_height: Big | None = BY_DATABASE
    read_until: datetime | None = BY_DATABASE
    # The mark of the provider that read a block again last.
    reread_by: str = BY_DATABASE
    probed_at: datetime | None = BY_DATABASE
    due_until: datetime | None = BY_DATABASE


class ChainBlock(Table, table="chain_blocks"):
    """A scanned block, kept to notice reorgs."""

    network: str
    height: Big
    hash: str
    parent_height: Big
    parent_hash: str
    block_time: datetime
    # As of the cursor.
    block_count: Big | None = None
    # The mark of the provider that showed it; '' if unknown.
    read_by: str = BY_DATABASE


class DepositQuorum(Table, table="deposit_quorums"):
    """A second opinion that a deposit needs, in one of its lives: each return after a reorg begins a new one."""

    deposit_id: UUID
    round: int
    network: str
    reason: str
    asked_at: datetime
    attempts: int
    next_attempt_at: datetime
    problem: str
    agreed_at: datetime | None
    # Two providers denied this life, and more than confirmed it.
    is_denied: bool = BY_DATABASE


class Booked(NamedTuple):
    """A transfer as it is recorded; units are the ledger's."""

    txid: str
    ordinal: str
    currency: str
    units: int
    address: str


class UnwitnessedCredits(Table, table="unwitnessed_credits"):
    """The sum of an hour's deposits without a second opinion."""

    network: str
    hour: datetime
    usd_cents: Big


_IS_THE_SAME: Final = (
    "(d.owner_id, d.currency, d.amount_units) = (EXCLUDED.owner_id, EXCLUDED.currency, EXCLUDED.amount_units)"
)


def match(family: str, addresses: Collection[str]) -> dict[str, Owner]:
    """Return the owners of our addresses among these."""
    return matched(family, addresses)[0]


def matched(family: str, addresses: Collection[str]) -> tuple[dict[str, Owner], set[str]]:
    """Return the owners of our addresses among these, and the pool's addresses without an owner.

    One indexed query, however many addresses are watched. Each is looked up on its own: for a block with thousands of
    them the planner would otherwise read the whole pool.
    """
    if not addresses:
        return {}, set()
    known_owners = rows_as(
        Owner,
        "SELECT p.address, o.owner_kind AS kind, o.owner_id AS id,"
        " COALESCE(i.merchant_id, w.merchant_id) AS merchant_id,"
        " COALESCE(i.pay_currency, w.currency) AS pay_currency, COALESCE(i.network, w.network) AS network"
        # One text is read in a tenth of the time that as many constants take.
        " FROM unnest(string_to_array(%s, ',')) AS seen (address)"
        " CROSS JOIN LATERAL"
        " (SELECT a.* FROM pool_addresses a WHERE a.family = %s AND a.address = seen.address LIMIT 1) p"
        " LEFT JOIN address_owners o ON o.family = p.family AND o.ordinal = p.ordinal"
        " LEFT JOIN invoices i ON o.owner_kind = 'invoice' AND i.id = o.owner_id"
        " LEFT JOIN wallets w ON o.owner_kind = 'wallet' AND w.id = o.owner_id",
        (",".join(addresses), family),
    )
    owners = {owner.address: owner for owner in known_owners if owner.merchant_id is not None}
    return owners, {owner.address for owner in known_owners} - owners.keys()


def record(deposit: Deposit) -> bool:
    """Write a deposit once; return True if a row was written.

    A deposit that a reorg took and another block brought back begins a new life, and keeps its first moment, unless
    providers denied the earlier life. All else is as the new block shows it: run on another state, the same transaction
    may have paid another sum or another address. Call inside the transaction that moves the cursor.
    """
    return bool(
        _with_first_moments(deposit).write(
            "ON CONFLICT (network, txid, ordinal) DO UPDATE SET status = 'pending', round = d.round + 1,"
            " currency = EXCLUDED.currency, amount_units = EXCLUDED.amount_units, address = EXCLUDED.address,"
            " sender = EXCLUDED.sender, owner_kind = EXCLUDED.owner_kind, owner_id = EXCLUDED.owner_id,"
            " merchant_id = EXCLUDED.merchant_id, stray_reason = EXCLUDED.stray_reason, confirmed_at = NULL,"
            " detected_at = app_now(),"
            " block_height = EXCLUDED.block_height, block_hash = EXCLUDED.block_hash, block_time = EXCLUDED.block_time,"
            " depth_min = EXCLUDED.depth_min,"
            f" is_announced = d.is_announced AND {_IS_THE_SAME},"
            # A refund made before the reorg stays attached if the same money came back.
            f" refund_id = CASE WHEN {_IS_THE_SAME} THEN d.refund_id END,"
            f" refund_units = CASE WHEN {_IS_THE_SAME} THEN d.refund_units END,"
            f" seen_at = CASE WHEN d.owner_id = EXCLUDED.owner_id AND NOT {IS_DENIED}"
            " THEN LEAST(d.seen_at, EXCLUDED.seen_at)"
            " ELSE EXCLUDED.seen_at END WHERE d.status = 'reversed'"
            # A trace is one provider's word, and may name the transaction of another owner's deposit.
            " AND (d.ordinal NOT LIKE 'trace:%%' AND d.ordinal NOT LIKE 'probe:%%'"
            "  OR (d.owner_id, d.address, d.currency) = (EXCLUDED.owner_id, EXCLUDED.address, EXCLUDED.currency))"
        )
    )


def _with_first_moments(deposit: Deposit) -> Deposit:
    """Return a deposit with its moments: the one that counts for its price, and its sighting's."""
    moments = sightings.moments_of(
        deposit.network, deposit.txid, deposit.ordinal, owner_id=deposit.owner_id, block_height=deposit.block_height,
        block_time=deposit.block_time,
    )  # fmt: skip
    dated = deposit.but(id=uuid7(), seen_at=moments.counted_at)
    return dated if moments.seen_at is None else dated.but(detected_at=moments.seen_at)


def of_owner(owner_id: UUID) -> list[Deposit]:
    """Return all deposits of an invoice, oldest first. The caller has locked the invoice."""
    return Deposit.read("d.owner_id = %s ORDER BY d.seen_at, d.id", (owner_id,))


def pending_due(catalogue: Catalogue, owner_id: UUID, *, limit: int) -> list[Deposit]:
    """Return pending deposits with enough confirmations in the scan of their network, oldest first."""
    confirmations = msgspec.json.encode({code: network.confirmations for code, network in catalogue.networks.items()})
    return Deposit.read(
        "d.owner_id = %s AND d.status = 'pending'"
        " AND d.block_height <= c.height - GREATEST((%s::jsonb ->> d.network)::integer, d.depth_min) + 1"
        f" AND NOT {IS_DOUBTED}"
        " ORDER BY d.seen_at, d.id LIMIT %s",
        (owner_id, confirmations.decode(), limit),
    )


def credit_due(owner_id: UUID, *, limit: int) -> list[Deposit]:
    """Return deposits in suspense that are neither strays nor taken by a refund, oldest first."""
    return Deposit.read(
        "d.owner_id = %s AND d.status = 'confirmed' AND d.stray_reason IS NULL AND d.refund_id IS NULL"
        " ORDER BY d.seen_at, d.id LIMIT %s",
        (owner_id, limit),
    )


def largest_waiting(owner_id: UUID, *, limit: int) -> list[Deposit]:
    """Return the deposits of credit_due(), largest first, so that many tiny ones do not delay them.

    The caller has locked the owner, an invoice or a wallet.
    """
    return Deposit.read(
        "d.owner_id = %s AND d.status = 'confirmed' AND d.stray_reason IS NULL AND d.refund_id IS NULL"
        " ORDER BY d.amount_units DESC, d.id LIMIT %s",
        (owner_id, limit),
    )


def undecided_strays(owner_id: UUID, txid: str, *, limit: int) -> list[Deposit]:
    """Return a transaction's strays in suspense that no refund took, largest first. The caller has locked the owner.

    txid: in upper or lower case, with or without 0x.
    """
    bare = txid.lower().removeprefix("0x")
    return Deposit.read(
        "d.owner_id = %s AND d.txid = ANY(%s) AND d.status = 'confirmed' AND d.stray_reason IN ('asset', 'network')"
        " AND d.refund_id IS NULL ORDER BY d.amount_units DESC, d.id LIMIT %s",
        (owner_id, [txid, bare, f"0x{bare}"], limit),
    )


def is_refund_under_way(owner_id: UUID) -> bool:
    """Return True if an unfinished refund has taken deposits that count; they may still return to suspense."""
    return is_true(
        "SELECT 1 FROM deposits d JOIN payouts p ON p.id = d.refund_id WHERE d.owner_id = %s"
        " AND d.stray_reason IS NULL AND p.status <> 'confirmed' LIMIT 1",
        (owner_id,),
    )


def small_count(owner_id: UUID, *, units_below: int, limit: int) -> int:
    """Return the number of an owner's deposits below a sum, at most the limit."""
    count: int = value(
        "SELECT count(*) FROM (SELECT 1 FROM deposits WHERE owner_id = %s AND stray_reason IS NULL"
        " AND status <> 'reversed' AND amount_units < %s LIMIT %s) s",
        (owner_id, units_below, limit),
    )
    return count


def is_any_of(owner_id: UUID) -> bool:
    """Return True if an owner ever had a deposit, reversed ones included."""
    return is_true("SELECT 1 FROM deposits WHERE owner_id = %s LIMIT 1", (owner_id,))


def owners_due(network: str, *, kind: OwnerKind, confirmations: int, limit: int) -> list[UUID]:
    """Return the owners of pending deposits that have enough confirmations in the scan."""
    return column(
        "SELECT DISTINCT d.owner_id FROM deposits d JOIN chain_cursors c ON c.network = d.network"
        " WHERE d.network = %s AND d.owner_kind = %s AND d.status = 'pending'"
        " AND d.block_height <= c.height - %s + 1 AND d.block_height <= c.height - d.depth_min + 1"
        f" AND NOT {IS_DOUBTED} LIMIT %s",
        (network, kind, confirmations, limit),
    )


def orphans(network: str, *, kind: OwnerKind) -> list[tuple[UUID, UUID]]:
    """Return (deposit, owner) of the deposits in blocks above the cursor, after a reorg moved it back."""
    return rows(
        # With one bound that the planner cannot know, it expects a third of all rows; with two bounds, few.
        "SELECT d.id, d.owner_id FROM deposits d WHERE d.network = %s AND d.owner_kind = %s AND d.status <> 'reversed'"
        " AND d.block_height > (SELECT height FROM chain_cursors WHERE network = %s) AND d.block_height < %s"
        " ORDER BY d.owner_id, d.id",
        (network, kind, network, HEIGHT_MAX),
    )


def is_orphan(network: str, deposit_id: UUID) -> bool:
    """Return True if a deposit is in a block above the cursor; lock the cursor until the transaction ends.

    Since the deposit was listed, another process may have reversed it and the scan may have read its next life.
    """
    height = value("SELECT height FROM chain_cursors WHERE network = %s FOR SHARE", (network,))
    return is_true("SELECT 1 FROM deposits WHERE id = %s AND block_height > %s", (deposit_id, height))


def in_block(network: str, height: int, block_hash: str) -> list[Booked]:
    """Return a block's deposits that its transactions and logs show, without those found by probes or traces."""
    return rows_as(
        Booked,
        "SELECT txid, ordinal, currency, amount_units AS units, address FROM deposits"
        " WHERE network = %s AND block_height = %s AND block_hash = %s AND status <> 'reversed'"
        " AND ordinal NOT LIKE 'probe:%%' AND ordinal NOT LIKE 'trace:%%'",
        (network, height, block_hash),
    )


def confirm(deposit_id: UUID) -> bool:
    """Mark a pending deposit confirmed; False if another process did, or while it waits for a second opinion."""
    return touched(
        "UPDATE deposits d SET status = 'confirmed', confirmed_at = app_now() WHERE d.id = %s"
        f" AND d.status = 'pending' AND NOT {IS_DOUBTED}",
        (deposit_id,),
    )


def credit(deposit_id: UUID, *, net: int, fee: int, fee_fixed: int, rounding: int) -> list[Rule] | None:
    """Mark a confirmed deposit credited and store its division; None if another process did.

    Returns the rules for other merchants' shares in it that its merchant has at this moment.
    """
    rules = value(
        "UPDATE deposits d SET status = 'credited', net_units = %s, fee_units = %s, fee_fixed_units = %s,"
        " rounding_units = %s WHERE d.id = %s AND d.status = 'confirmed' AND d.refund_id IS NULL"
        f" RETURNING {IN_FORCE}",
        (net, fee, fee_fixed, rounding, deposit_id),
    )
    return None if rules is None else rules_of(rules)


def take(refund_id: UUID, deposit_ids: Sequence[UUID], units: Sequence[int]) -> int:
    """Attach confirmed deposits in suspense to a refund; return how many were still free.

    units: the part of the refund's hold that comes from each.
    """
    return execute(
        "UPDATE deposits d SET refund_id = %s, refund_units = t.units"
        " FROM unnest(%s::uuid[], %s::numeric[]) AS t (id, units)"
        " WHERE d.id = t.id AND d.status = 'confirmed' AND d.refund_id IS NULL",
        (refund_id, list(deposit_ids), list(units)),
    )


def of_refund(refund_id: UUID) -> list[Deposit]:
    """Return the deposits that a refund took out of suspense. The caller has locked their owner."""
    return Deposit.read("d.refund_id = %s ORDER BY d.id", (refund_id,))


def give_back(refund_id: UUID) -> None:
    """Undo take() for all deposits of a refund that failed or was cancelled."""
    execute("UPDATE deposits SET refund_id = NULL, refund_units = NULL WHERE refund_id = %s", (refund_id,))


def reverse(deposit_id: UUID) -> Deposit | None:
    """Mark a deposit reversed and return it as it was; None if another process did. The caller has locked its owner."""
    deposit = Deposit.first("d.id = %s AND d.status <> 'reversed' FOR UPDATE OF d", (deposit_id,))
    if deposit is None:
        return None
    execute(
        "UPDATE deposits SET status = 'reversed', net_units = 0, fee_units = 0, fee_fixed_units = 0,"
        " rounding_units = 0 WHERE id = %s",
        (deposit_id,),
    )
    return deposit
