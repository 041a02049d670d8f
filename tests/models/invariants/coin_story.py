"""Coins that are free, held, or spent by us and by a stranger, and changes by hand that break them."""

from __future__ import annotations

from typing import Final

from core.ids import uuid7
from models.db.base import execute, transaction
from models.spends import coins, held_coins, unread_departures
from models.spends.coins import CoinRow, Spending
from models.treasury import topups
from models.treasury.rows import Topup
from tests.models.builders import Chain
from tests.models.treasury.builders import spend

COIN_CORRUPTIONS: Final[dict[str, list[str]]] = {
    "coins_are_spent_in_blocks": [
        "UPDATE coins SET created_height = NULL, created_hash = NULL WHERE spent_height IS NOT NULL",
        "UPDATE coins SET created_height = spent_height + 1 WHERE spent_height IS NOT NULL",
        "UPDATE coins SET created_height = created_height + 1000000 WHERE spent_height IS NULL",
        "UPDATE coins SET spent_height = spent_height + 1000000 WHERE spent_height IS NOT NULL",
        "UPDATE coins SET network = 'nowhere' WHERE spent_height IS NULL",
    ],
    "coins_are_spent_by_their_holders": [
        "UPDATE coins SET held_by = NULL WHERE spent_by_txid = '0xmove'",
        "UPDATE coins SET held_by = gen_random_uuid() WHERE spent_by_txid = '0xmove'",
        "UPDATE coins SET spent_by_txid = '0xother' WHERE spent_by_txid = '0xmove'",
        "DELETE FROM unexplained_departures",
    ],
    "held_coins_have_open_spends": [
        "UPDATE spends SET state = 'dead' WHERE id IN (SELECT held_by FROM coins WHERE txid = '0xheld')",
        "UPDATE spends SET state = 'failed' WHERE id IN (SELECT held_by FROM coins WHERE txid = '0xheld')",
        "UPDATE coins SET network = 'bsc' WHERE txid = '0xheld'",
    ],
    "coins_are_what_came_or_change": [
        "DELETE FROM treasury_topups WHERE txid = '0xfree'",
        "UPDATE treasury_topups SET status = 'reversed' WHERE txid = '0xheld'",
        "UPDATE coins SET units = units + 1 WHERE txid = '0xfree'",
        "UPDATE coins SET vout = 7 WHERE txid = '0xfree'",
    ],
    "coins_are_booked_once": [
        "UPDATE deposits SET (network, txid, ordinal) = ('ethereum', '0xfree', '0')"
        " WHERE id = (SELECT id FROM deposits WHERE status <> 'reversed' LIMIT 1)",
        "UPDATE treasury_topups t SET (network, txid, ordinal) = (d.network, d.txid, d.ordinal) FROM deposits d"
        " WHERE t.txid = '0xfree' AND d.id = (SELECT id FROM deposits WHERE status <> 'reversed' LIMIT 1)",
    ],
    "movements_are_coins": [
        "UPDATE coins SET units = units + 1 WHERE txid = '0xours'",
        "UPDATE spend_movements SET units = units - 1"
        " WHERE spend_id IN (SELECT held_by FROM coins WHERE txid = '0xours')",
        "DELETE FROM spend_movements WHERE spend_id IN (SELECT held_by FROM coins WHERE txid = '0xours')",
    ],
}


def coin(txid: str, *, height: int, vout: int = 0, network: str = "ethereum") -> CoinRow:
    return CoinRow(
        network=network, txid=txid, vout=vout, address="0xhot", currency="ETH", units=5, created_height=height,
        created_hash=f"0x{height}",
    )  # fmt: skip


def move_coins(chain: Chain) -> None:
    """Note coins in the chain's newest block, and have some of them held and spent."""
    at = {"height": chain.height, "block_hash": f"0x{chain.height}"}
    made = [coin(txid, height=chain.height) for txid in ("0xfree", "0xheld", "0xours", "0xstolen")]
    holder = spend(sender="0xc", recipient="0xd", token_units=1, txid="0xnext")
    mover = spend(
        sender="0xc", recipient="0xd", token_units=1, txid="0xmove", mined=(chain.height, f"0x{chain.height}")
    )
    execute("DELETE FROM spend_movements WHERE spend_id = %s", (mover,))
    execute(
        "INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)"
        " VALUES (%s, 'ethereum', '0xhot', 'ETH', 18, -5, %s)",
        (mover, chain.height),
    )
    with transaction():
        for each in made:
            assert topups.record(
                Topup(
                    id=uuid7(), network="ethereum", txid=each.txid, ordinal="0", currency="ETH", units=5, sender="",
                    address=each.address, origin="transfer", block_height=chain.height, block_hash=f"0x{chain.height}",
                )
            )  # fmt: skip
        coins.note("ethereum", made, [], **at)
        assert held_coins.hold(holder, [("0xheld", 0)])
        assert held_coins.hold(mover, [("0xours", 0)])
        spent = [Spending("0xours", 0, "0xmove"), Spending("0xstolen", 0, "0xthief")]
        coins.note("ethereum", [], spent, **at)
        unread_departures.note("ethereum", "coins", {"0xthief": ""}, **at)
    # An operator has examined that.
    execute("DELETE FROM signing_stops")
    execute("DELETE FROM payout_freezes")
