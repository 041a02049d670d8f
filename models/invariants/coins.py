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
        "a coin was spent by an attempt of the spend that holds it, or by an unexplained departure",
        "SELECT k.network, k.txid, k.vout, k.spent_by_txid FROM coins k WHERE k.spent_by_txid IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM spend_attempts a"
        "   WHERE (a.network, a.txid, a.spend_id) = (k.network, k.spent_by_txid, k.held_by))"
        " AND NOT EXISTS (SELECT 1 FROM unexplained_departures d"
        "   WHERE (d.network, d.txid) = (k.network, k.spent_by_txid))",
    ),
    "held_coins_have_open_spends": (
        "a coin is held by a spend of its network, which may still take effect as long as the coin is unspent",
        "SELECT k.network, k.txid, k.vout, s.state FROM coins k JOIN spends s ON s.id = k.held_by"
        " WHERE s.network <> k.network OR (k.spent_by_txid IS NULL AND s.state IN ('dead', 'failed'))",
    ),
    "coins_are_what_came_or_change": (
        "a coin in a block was made by a transaction of ours or an unexplained departure, or is a deposit or a top-up"
        " of as much (where money lies in coins, the ledger counts these in the chain's units)",
        "SELECT k.network, k.txid, k.vout, k.units FROM coins k WHERE k.created_height IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM spend_attempts a WHERE (a.network, a.txid) = (k.network, k.txid))"
        " AND NOT EXISTS (SELECT 1 FROM unexplained_departures d WHERE (d.network, d.txid) = (k.network, k.txid))"
        " AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.status <> 'reversed' AND (d.network, d.txid, d.ordinal,"
        "   d.address, d.currency, d.amount_units) = (k.network, k.txid, k.vout::text, k.address, k.currency, k.units))"
        " AND NOT EXISTS (SELECT 1 FROM treasury_topups t WHERE t.status <> 'reversed' AND (t.network, t.txid,"
        "   t.ordinal, t.currency, t.units) = (k.network, k.txid, k.vout::text, k.currency, k.units))",
    ),
    "coins_are_booked_once": (
        "what a transaction brought at one place is booked as a deposit or as a top-up, never as both",
        "SELECT d.network, d.txid, d.ordinal, d.id, t.id FROM treasury_topups t"
        " JOIN deposits d USING (network, txid, ordinal) WHERE t.status <> 'reversed' AND d.status <> 'reversed'",
    ),
    "movements_are_coins": (
        "what a spend in a scanned block moved at our addresses, the cold ones apart, is what the coins that it made"
        " there are worth, less those that it spent",
        "SELECT s.id, c.made, c.gone, c.moved FROM spends s CROSS JOIN LATERAL (SELECT"
        "   (SELECT sum(k.units) FROM coins k WHERE (k.network, k.spent_by_txid, k.spent_hash)"
        "     = (s.network, s.mined_txid, s.mined_hash)) AS gone,"
        "   (SELECT COALESCE(sum(k.units), 0) FROM coins k WHERE (k.network, k.txid, k.created_hash)"
        "     = (s.network, s.mined_txid, s.mined_hash)) AS made,"
        "   (SELECT COALESCE(sum(m.units), 0) FROM spend_movements m WHERE m.spend_id = s.id AND NOT EXISTS"
        "     (SELECT 1 FROM treasury_addresses a WHERE (a.network, a.address, a.role)"
        "       = (m.network, m.address, 'cold'))) AS moved) c"
        " WHERE s.purpose <> 'lost' AND c.made - c.gone <> c.moved",
    ),
}
