"""Answers the signer's questions about spends: promised balances, stuck senders, gaps, depths.

Used by actors.signer.broadcast, actors.signer.sign, actors.signer.follow_up, models.spends.tracking and the gauges.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from models.db.base import column, is_true, rows, value
from models.db.clock import FUTURE_MAX_S
from models.spends.rows import Purpose, SpendRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """The amounts that spends in no block will take of a wallet: of a coin in token units, and of gas coin for fees."""

    token_units: int
    native_units: int
    gas_units: int
    # The newest attempt of each.
    txids: frozenset[str]


def promised(network: str, wallet: str, contract: str | None) -> Promised:
    """Return the part of a wallet's balance that signed spends will take and no block shows yet.

    A fee counts at the wallet that pays it.
    """
    ((token, native, gas, txids),) = rows(
        "SELECT COALESCE(sum(s.token_units) FILTER (WHERE s.sender = %(wallet)s"
        "   AND s.contract IS NOT DISTINCT FROM %(contract)s), 0),"
        " COALESCE(sum(s.token_units) FILTER (WHERE s.sender = %(wallet)s AND s.contract IS NULL), 0),"
        " COALESCE(sum(a.ceiling_units) FILTER (WHERE %(wallet)s = COALESCE(NULLIF(s.payer, ''), s.sender)), 0),"
        " COALESCE(array_agg(a.txid), '{}') FROM spends s"
        " JOIN spend_attempts a ON a.spend_id = s.id AND a.number = s.attempts - 1"
        " WHERE s.network = %(network)s AND (s.sender = %(wallet)s OR s.payer = %(wallet)s AND s.payer <> '')"
        " AND s.settled_at IS NULL AND s.mined_txid IS NULL",
        {"network": network, "wallet": wallet, "contract": contract},
    )
    return Promised(token_units=token, native_units=native, gas_units=gas, txids=frozenset(txids))


def dead_of(payout_ids: Collection[UUID]) -> int:
    """Return the highest number of dead spends that one of these payouts had."""
    dead: int = value(
        "SELECT COALESCE(max(dead), 0) FROM (SELECT count(*) AS dead FROM spend_outputs"
        " WHERE payout_id = ANY(%s::uuid[]) AND state = 'dead' GROUP BY payout_id) d",
        (list(payout_ids),),
    )
    return dead


def dead_sweeps(network: str, sender: str, contract: str | None) -> int:
    """Return the number of a coin's sweeps from an address that died since the last one that did not."""
    of_coin = "network = %(network)s AND sender = %(sender)s AND contract IS NOT DISTINCT FROM %(contract)s"
    dead: int = value(
        f"SELECT count(*) FROM spends WHERE {of_coin} AND purpose = 'sweep' AND state = 'dead'"
        f" AND created_at > COALESCE((SELECT max(created_at) FROM spends WHERE {of_coin} AND state <> 'dead'),"
        " '-infinity')",
        {"network": network, "sender": sender, "contract": contract},
    )
    return dead


def waiting_of(network: str, sender: str, purpose: Purpose | None = None) -> int:
    """Count a sender's spends that are in no block, of one purpose or all. Nodes limit their number per sender."""
    count: int = value(
        "SELECT count(*) FROM spends WHERE network = %s AND sender = %s AND settled_at IS NULL AND mined_txid IS NULL"
        " AND purpose = COALESCE(%s, purpose)",
        (network, sender, purpose),
    )
    return count


def is_awaiting_gas(network: str, address: str) -> bool:
    """Return True if gas is on its way to an address."""
    return is_true(
        "SELECT 1 FROM spends s JOIN spend_outputs o ON o.spend_id = s.id WHERE s.network = %s AND o.recipient = %s"
        " AND o.payout_id IS NULL AND s.purpose = 'gas' AND s.settled_at IS NULL AND o.effect IS NULL",
        (network, address),
    )


def is_stuck(spend: SpendRow, *, patience_s: int) -> bool:
    """Return True if a spend delays its sender: no spend of the sender has moved for patience_s.

    Only the spend with the lowest slot can: all others wait behind it, whatever they offer. In families without slots
    each spend counts by itself.
    """
    return is_true(
        "SELECT NOT EXISTS (SELECT 1 FROM spends o WHERE o.network = s.network AND o.sender = s.sender"
        "   AND o.slot < s.slot AND o.settled_at IS NULL AND o.mined_txid IS NULL)"
        # A time in the future was written before the clock was set back, and does not count.
        " AND COALESCE((SELECT max(moved_at) FROM unnest(ARRAY[s.created_at, s.bumped_at,"
        "   (SELECT max(o.mined_at) FROM spends o WHERE s.slot IS NOT NULL AND o.network = s.network"
        "     AND o.sender = s.sender AND o.settled_at IS NULL AND o.mined_at <= app_now() + make_interval(secs => %s))"
        "   ]) AS moved_at WHERE moved_at <= app_now() + make_interval(secs => %s)), '-infinity')"
        " <= app_now() - make_interval(secs => %s)"
        " FROM spends s WHERE s.id = %s AND s.settled_at IS NULL AND s.mined_txid IS NULL",
        (FUTURE_MAX_S, FUTURE_MAX_S, patience_s, spend.id),
    )


def is_gap(network: str, sender: str, slot: int) -> bool:
    """Return True if spends of the sender wait behind a slot that no spend has: a reorg took the one that used it.

    If a later slot is in a block, this one is used, and a node that reports otherwise lags.
    """
    return is_true(
        "SELECT EXISTS (SELECT 1 FROM spends WHERE network = %s AND sender = %s AND slot > %s"
        "   AND settled_at IS NULL AND mined_txid IS NULL)"
        " AND NOT EXISTS (SELECT 1 FROM spends WHERE network = %s AND sender = %s AND (slot = %s AND state <> 'dead'"
        "   AND NOT is_slot_free OR slot > %s AND mined_txid IS NOT NULL))",
        (network, sender, slot, network, sender, slot, slot),
    )


def replaced(network: str, *, limit: int) -> list[UUID]:
    """Return settled spends whose block the scan has replaced, after a reorg deeper than was thought possible."""
    return column(
        "SELECT s.id FROM chain_blocks b JOIN spends s ON s.network = b.network AND s.mined_height = b.height"
        " WHERE b.network = %s AND b.hash <> s.mined_hash AND s.settled_at IS NOT NULL"
        " AND s.state IN ('confirmed', 'failed') ORDER BY s.slot LIMIT %s",
        (network, limit),
    )


def depth(network: str, *, height: int, block_hash: str, settled_blocks: int) -> int:
    """Return the number of scanned blocks from a block on, itself included; 0 if the scanned chain lacks it.

    Two sources must agree: the provider that reported the inclusion, and the scan. settled_blocks: the depth from which
    a block that is no longer kept counts as scanned.
    """
    depth_blocks: int | None = value(
        "SELECT c.height - %s + 1 FROM chain_cursors c LEFT JOIN chain_blocks b ON b.network = c.network"
        " AND b.height = %s WHERE c.network = %s AND c.height >= %s"
        " AND (b.hash = %s OR (b.hash IS NULL AND %s <= c.height - %s))",
        (height, height, network, height, block_hash, height, settled_blocks),
    )
    return depth_blocks or 0


def unclear_by_network() -> list[tuple[str, int]]:
    """Return, by network, the number of payouts that moved another amount and wait for an operator."""
    return rows(
        "SELECT s.network, count(*) FROM spend_outputs o JOIN spends s ON s.id = o.spend_id WHERE o.effect = 'other'"
        " AND o.state = 'open' AND o.payout_id IS NOT NULL AND s.state = 'mined' GROUP BY s.network"
    )


def open_by_network() -> list[tuple[str, int, float]]:
    """Return, by network, the number of spends in no block, and the age of the oldest in seconds."""
    return rows(
        "SELECT network, count(*), extract(epoch FROM app_now() - min(created_at))::float8 FROM spends"
        " WHERE settled_at IS NULL AND mined_txid IS NULL GROUP BY network"
    )
