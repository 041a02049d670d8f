"""Tells which addresses are the gateway's own besides the pool, and which transactions move money between them.

Read by actors.scan.record at every transfer, by actors.scan.balances and actors.treasury.sweep; written by the signer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from models.db.base import execute, is_true, rows, transaction, value
from models.spends.unexplained import WAITS
from models.treasury.rows import TreasuryAddress

Role = Literal["hot", "cold"]


def address(network: str, role: Role) -> str | None:
    """Return the address in use, in the stored form; None before the signer, or the operator, has named one."""
    current: str | None = value(
        "SELECT address FROM treasury_addresses WHERE network = %s AND role = %s AND is_current", (network, role)
    )
    return current


def hot_addresses() -> dict[str, str]:
    """Return the hot wallet's address in use by network, without networks that have none yet."""
    return dict(rows("SELECT network, address FROM treasury_addresses WHERE role = 'hot' AND is_current"))


def pin_hot(network: str, hot: str) -> bool:
    """Name the hot wallet once and for all; False if another is in use, so that this signer has the wrong wallet."""
    pinned = address(network, "hot")
    if pinned is None:
        TreasuryAddress(network=network, role="hot", address=hot).write("ON CONFLICT DO NOTHING")
        pinned = address(network, "hot")
    return pinned == hot


def set_cold(network: str, cold: str | None) -> bool:
    """Put a cold address in use, or none; earlier ones stay ours. False if it is the hot one."""
    if address(network, "cold") == cold:
        return True
    with transaction():
        execute(
            "UPDATE treasury_addresses SET is_current = false WHERE network = %s AND role = 'cold' AND is_current",
            (network,),
        )
        if cold is None:
            return True
        written = TreasuryAddress(network=network, role="cold", address=cold).write(
            "ON CONFLICT (network, address) DO UPDATE SET is_current = true WHERE t.role = 'cold'"
        )
    return written > 0


def is_cold(network: str, candidate: str) -> bool:
    """Return whether an address is, or was, the cold one."""
    return is_true(
        "SELECT 1 FROM treasury_addresses WHERE network = %s AND address = %s AND role = 'cold'",
        (network, candidate),
    )


def is_own_move(network: str, mark: str, sender: str | None) -> bool:
    """Return whether one of our spends made a transfer: gas for a deposit address, a sweep. Never anybody's payment.

    So is one that our key signed for a row that is lost. mark: the transaction's id, or by what else ours are known.
    sender: has to be the spend's, for what a recipient's contract passes on in the same transaction is a payment; None
    on chains that name none, where a transaction is one's own or another's as a whole.
    """
    if sender is None:
        return is_true(
            "SELECT 1 FROM spend_attempts WHERE network = %s AND txid = %s"
            " UNION ALL SELECT 1 FROM spend_attempts WHERE network = %s AND mark = %s AND mark <> ''"
            " UNION ALL SELECT 1 FROM unexplained_departures WHERE network = %s AND txid = %s LIMIT 1",
            (network, mark) * 3,
        )
    return is_true(
        "SELECT 1 FROM spend_attempts a JOIN spends s ON s.id = a.spend_id"
        " WHERE a.network = %s AND a.txid = %s AND s.sender = %s UNION ALL"
        " SELECT 1 FROM spend_attempts a JOIN spends s ON s.id = a.spend_id"
        " WHERE a.network = %s AND a.mark = %s AND a.mark <> '' AND s.sender = %s UNION ALL"
        " SELECT 1 FROM unexplained_departures WHERE network = %s AND %s IN (txid, NULLIF(mark, '')) AND sender = %s"
        " LIMIT 1",
        (network, mark, sender) * 3,
    )


def is_in_motion(network: str, addresses: Collection[str]) -> bool:
    """Return whether a spend that moves money at one of these addresses may be included without our knowing where.

    That is one under way, also to its recipient, or one that was last seen in a block which the scan does not have, or
    has not reached: a reorg may have put it into an earlier one. Deep ones cannot move. So does an unexplained
    departure: its movements are booked only when it has become a spend.
    """
    wanted = list(addresses)
    return is_true(
        "SELECT 1 FROM spends s WHERE s.network = %s AND s.settled_at IS NULL AND s.state <> 'dead'"
        " AND (s.sender = ANY(%s) OR EXISTS (SELECT FROM spend_outputs o WHERE o.spend_id = s.id"
        "   AND o.recipient = ANY(%s)) OR EXISTS (SELECT FROM spend_movements m WHERE m.spend_id = s.id"
        "   AND m.address = ANY(%s))) AND (s.effect IS NULL"
        "   OR s.mined_height > (SELECT c.height FROM chain_cursors c WHERE c.network = s.network) OR EXISTS ("
        "   SELECT 1 FROM chain_blocks b WHERE b.network = s.network AND b.height = s.mined_height"
        "   AND b.hash <> s.mined_hash)) UNION ALL"
        f" SELECT 1 FROM unexplained_departures d WHERE d.network = %s AND {WAITS} AND (d.sender = ANY(%s) OR EXISTS ("
        "   SELECT FROM jsonb_array_elements(d.outputs) o WHERE o ->> 'recipient' = ANY(%s))) LIMIT 1",
        (network, wanted, wanted, wanted, network, wanted, wanted),
    )


def moves_after(network: str, at: str, height: int) -> bool:
    """Return whether a spend moved anything at an address by a block above a height.

    Where effects are late, a part of it may have come or left before.
    """
    return is_true(
        "SELECT 1 FROM spend_movements WHERE network = %s AND address = %s AND height > %s LIMIT 1",
        (network, at, height),
    )


def moved_native_units(network: str, at: str, gas_currency: str, *, height: int) -> int:
    """Return what our own spends brought to an address of the gas coin, less what they took, up to a height.

    In the network's token units; less fees, of spends of tokens too, and less the chain's charges. Less than nothing is
    usual.
    """
    units: int = value(
        "SELECT COALESCE((SELECT sum(units) FROM spend_movements WHERE network = %(network)s AND address = %(at)s"
        "   AND currency = %(currency)s AND height <= %(height)s), 0)"
        " - COALESCE((SELECT sum(units) FROM charges WHERE network = %(network)s AND address = %(at)s"
        "   AND currency = %(currency)s AND block_height <= %(height)s AND status IN ('pending', 'booked')), 0)",
        {"network": network, "at": at, "currency": gas_currency, "height": height},
    )
    return units
