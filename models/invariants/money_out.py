"""States what must always hold of money that leaves, as SQL that returns no row. Read by money_in alone."""

from __future__ import annotations

from typing import Final


def _booked(what: str, *, side: str, kind: str, currency: str = "p.currency") -> str:
    """Return an expression: the units that `payout:<id>:<what>` moved on one side of the merchant's account."""
    return (
        "(SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t"
        f" JOIN accounts a ON a.id = t.{side}_account WHERE t.reference = 'payout:' || p.id || ':{what}'"
        f" AND (a.holder, a.kind, a.currency) = (p.merchant_id, '{kind}', {currency}))"
    )


# What a spend s took from our addresses, and brought to some, of the coin that it moves; in token units.
_LEFT: Final = "CASE WHEN s.is_success THEN s.token_units ELSE COALESCE(s.left_units, 0) END"
_CAME: Final = (
    "CASE WHEN s.purpose = 'payout' THEN 0 WHEN s.is_success THEN s.token_units ELSE COALESCE(s.arrived_units, 0) END"
)

PAYOUT_INVARIANTS: Final[dict[str, tuple[str, str]]] = {
    "payout_held_equals_open_orders": (
        "what is held for a merchant's payouts is what those hold that have not ended, and the cheques not yet claimed",
        "SELECT holder, currency, h.units, o.units FROM"
        " (SELECT a.holder, a.currency, b.units FROM accounts a JOIN balances b ON b.account_id = a.id"
        "   WHERE a.kind = 'payout_held') h"
        " FULL JOIN (SELECT holder, currency, sum(units) AS units FROM ("
        "   SELECT merchant_id AS holder, currency, held_units AS units FROM payouts"
        "     WHERE status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent')"
        "   UNION ALL SELECT merchant_id, currency, amount_units + fee_units FROM payout_links"
        "     WHERE status IN ('funded', 'claiming')"
        "   ) orders GROUP BY holder, currency) o USING (holder, currency)"
        " WHERE COALESCE(h.units, 0) <> COALESCE(o.units, 0)",
    ),
    "payouts_hold_their_money": (
        "the transfer that a payout names as its hold put exactly its money aside, for this merchant",
        "SELECT p.id, p.held_units FROM payouts p WHERE p.held_units IS DISTINCT FROM ("
        " SELECT sum(t.units) FROM ledger_transfers t JOIN accounts a ON a.id = t.credit_account"
        "  WHERE t.reference = p.hold_reference"
        "  AND (a.holder, a.kind, a.currency) = (p.merchant_id, 'payout_held', p.currency))",
    ),
    "payouts_are_booked_as_they_ended": (
        "a confirmed payout left the books once, a failed or cancelled one was given back once, and no other was",
        "SELECT p.id, p.status FROM payouts p"
        f" WHERE {_booked('leave', side='debit', kind='payout_held')}"
        "  <> CASE WHEN p.status = 'confirmed' THEN p.held_units ELSE 0 END"
        f" OR {_booked('return', side='debit', kind='payout_held')}"
        "  <> CASE WHEN p.status IN ('failed', 'cancelled') THEN p.held_units ELSE 0 END",
    ),
    "failed_payouts_keep_what_they_say": (
        "what a failed payout does not get back of its fee is the gateway's, and no other payout keeps any of its hold",
        "SELECT p.id, p.status, p.kept_units FROM payouts p WHERE p.kept_units <>"
        " CASE WHEN p.status = 'failed' THEN (SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t"
        "   JOIN accounts a ON a.id = t.credit_account WHERE t.reference = 'payout:' || p.id || ':return'"
        "   AND a.kind = 'network_fees') ELSE 0 END",
    ),
    "conversions_are_booked": (
        "a payout that was paid for in another coin took what it says, and got what it holds; no other converted",
        "SELECT p.id, p.from_currency, p.from_units FROM payouts p"
        f" WHERE {_booked('convert', side='debit', kind='available', currency='p.from_currency')}"
        "  <> COALESCE(p.from_units, 0)"
        f" OR {_booked('convert', side='credit', kind='available')}"
        "  <> CASE WHEN p.from_currency IS NULL THEN 0 ELSE p.held_units END",
    ),
    "approvers_are_others": (
        "nobody approved his own payout, and none that needs it went on without",
        "SELECT p.id, p.status, p.created_by FROM payouts p WHERE EXISTS"
        " (SELECT 1 FROM payout_approvals a WHERE a.payout_id = p.id AND a.principal = p.created_by)"
        " OR (p.is_approval_required AND p.status NOT IN ('pending', 'cancelled')"
        "  AND NOT EXISTS (SELECT 1 FROM payout_approvals a WHERE a.payout_id = p.id))",
    ),
    "payouts_follow_their_spends": (
        "a payout on its way has one spend that may take effect, a confirmed one a confirmed one; no other has any",
        "SELECT p.id, p.status, s.states FROM payouts p"
        " LEFT JOIN (SELECT payout_id, array_agg(state) AS states FROM spend_outputs"
        "   WHERE payout_id IS NOT NULL AND state <> 'dead' GROUP BY payout_id) s ON s.payout_id = p.id"
        " WHERE NOT CASE WHEN p.status IN ('broadcasting', 'sent')"
        "   THEN COALESCE(s.states = ARRAY['open'], false)"
        "  WHEN p.status = 'confirmed' THEN COALESCE(s.states = ARRAY['confirmed'], false)"
        "  WHEN p.status = 'failed' THEN COALESCE(s.states = ARRAY['failed'], true)"
        "  ELSE s.states IS NULL END",
    ),
    "spends_do_what_payouts_say": (
        "a spend for a payout moves its coin, on its network, to its address, and as much as is to arrive",
        "SELECT p.id, s.id, p.to_units, o.token_units FROM spend_outputs o JOIN spends s ON s.id = o.spend_id"
        " JOIN payouts p ON p.id = o.payout_id JOIN ledger_scales l ON l.currency = p.currency"
        " WHERE (s.network, s.currency, o.recipient) <> (p.network, p.currency, p.address)"
        " OR o.token_units * 10::numeric ^ (l.scale - s.decimals) <> p.to_units",
    ),
    "spends_are_their_outputs": (
        "a spend moves what its outputs move, and ends as they end",
        "SELECT s.id, s.state, o.states, s.token_units, o.units FROM spends s LEFT JOIN (SELECT spend_id,"
        "   array_agg(DISTINCT state) AS states, sum(token_units) AS units, sum(lost_units) AS lost,"
        "   sum(charged_units) AS charged, count(*) AS count, count(payout_id) AS payouts, max(place) AS last,"
        "   count(*) FILTER (WHERE payout_id IS NULL AND state <> 'failed') AS nameless,"
        "   bool_and(effect = 'exact') AS is_success,"
        "   count(*) FILTER (WHERE effect IS NULL) AS unknown FROM spend_outputs GROUP BY spend_id) o"
        " ON o.spend_id = s.id WHERE o.count IS NULL"
        " OR (s.token_units, s.lost_units, s.charged_units) <> (o.units, o.lost, o.charged) OR o.last <> o.count - 1"
        " OR (s.purpose = 'payout') <> (o.payouts > 0)"
        # Only what was adopted may bring something to others besides. A payout whose token refused our own wallet is
        # paid by another spend.
        " OR (s.purpose = 'payout' AND o.nameless > 0"
        "   AND NOT EXISTS (SELECT FROM unexplained_departures d WHERE d.spend_id = s.id))"
        # In a block, some may still be on their way.
        " OR NOT CASE WHEN s.effect IS NOT NULL THEN o.unknown = 0 WHEN s.mined_height IS NULL THEN o.unknown = o.count"
        "   ELSE o.unknown > 0 END"
        " OR s.effect IS NOT NULL AND o.is_success <> (s.effect = 'exact')"
        " OR NOT CASE s.state WHEN 'confirmed' THEN 'confirmed' = ANY(o.states) AND NOT 'open' = ANY(o.states)"
        "   WHEN 'failed' THEN 'failed' = ANY(o.states) AND o.states <@ ARRAY['failed', 'dead']"
        "   WHEN 'dead' THEN o.states = ARRAY['dead'] ELSE 'open' = ANY(o.states) AND NOT 'dead' = ANY(o.states) END",
    ),
    "movements_are_their_spends": (
        "only what stands in a block moved anything, and there; of a token just what left and came to our own, of the"
        " gas coin that much at least",
        "SELECT s.id, s.mined_height, m.gone, m.came FROM spends s LEFT JOIN LATERAL (SELECT"
        "   COALESCE(-sum(m.units) FILTER (WHERE m.currency = s.currency AND m.units < 0), 0) AS gone,"
        "   COALESCE(sum(m.units) FILTER (WHERE m.currency = s.currency AND m.units > 0), 0) AS came,"
        "   bool_or((m.network, m.height) IS DISTINCT FROM (s.network, s.mined_height)) AS is_elsewhere"
        "   FROM spend_movements m WHERE m.spend_id = s.id) m ON true"
        " WHERE m.is_elsewhere OR s.mined_height IS NOT NULL AND s.purpose <> 'lost' AND CASE WHEN s.contract IS NULL"
        f"   THEN m.gone - m.came < {_LEFT} - {_CAME} ELSE (m.gone, m.came) <> ({_LEFT}, {_CAME}) END",
    ),
    "personal_equals_transfers": (
        "a personal wallet holds what its owner's merchants transferred, each transfer booked as it says",
        "SELECT holder, currency, b.units, t.units FROM"
        " (SELECT a.holder, a.currency, b.units FROM accounts a JOIN balances b ON b.account_id = a.id"
        "   WHERE a.kind = 'personal') b"
        " FULL JOIN (SELECT p.owner_id AS holder, p.currency, sum(p.units) AS units,"
        "   bool_and(p.units IS NOT DISTINCT FROM (SELECT sum(l.units) FROM ledger_transfers l"
        "     JOIN accounts d ON d.id = l.debit_account WHERE l.reference = 'transfer:' || p.id"
        "     AND (d.holder, d.kind, d.currency) = (p.merchant_id, 'available', p.currency))) AS is_booked"
        "   FROM personal_transfers p GROUP BY p.owner_id, p.currency) t USING (holder, currency)"
        " WHERE COALESCE(b.units, 0) <> COALESCE(t.units, 0) OR NOT COALESCE(t.is_booked, true)",
    ),
}
