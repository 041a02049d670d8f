"""States what must always hold of coins, as SQL that returns no row. Read by money_in alone."""

from __future__ import annotations

from typing import Final

COIN_INVARIANTS: Final[dict[str, tuple[str, str]]] = {
    "coins_are_spent_in_blocks": (
        "a coin that is spent was made, in no later block, and no block above the cursor made or spent any",
        "SELECT k.network, k.txid, k.vout FROM coins k LEFT JOIN chain_cursors c ON c.network = k.network"
        " WHERE (k.spent_height IS NOT NULL AND COALESCE(k.created_height > k.spent_height, true))"
        " OR COALESCE(GREATEST(k.created_height, k.spent_height) > c.height, c.height IS NULL)",
    ),
    "coins_are_spent_by_their_holders": (
        "a coin was spent by an attempt of the spend that holds it, or by a transaction that is noted as a stranger's",
        "SELECT k.network, k.txid, k.vout, k.spent_by_txid FROM coins k WHERE k.spent_by_txid IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM spend_attempts a"
        "   WHERE (a.network, a.txid, a.spend_id) = (k.network, k.spent_by_txid, k.held_by))"
        " AND NOT EXISTS (SELECT 1 FROM stranger_spends t WHERE (t.network, t.txid) = (k.network, k.spent_by_txid))",
    ),
    "held_coins_have_open_spends": (
        "a coin is held by a spend of its network, which may still take effect as long as the coin is unspent",
        "SELECT k.network, k.txid, k.vout, s.state FROM coins k JOIN spends s ON s.id = k.held_by"
        " WHERE s.network <> k.network OR (k.spent_by_txid IS NULL AND s.state IN ('dead', 'failed'))",
    ),
}
