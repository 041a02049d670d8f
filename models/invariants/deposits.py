"""States what always holds, as SQL that returns no row. Run by `sluice audit`, by a tick and every long test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from models.db.base import execute, long_statements, rows, transaction
from models.invariants import checkpoint, scope
from models.invariants.checkpoint import DIFFERENCES
from models.invariants.coins import COIN_INVARIANTS
from models.invariants.money_out import PAYOUT_INVARIANTS
from models.invariants.splits import FULL_SPLIT_INVARIANTS, SPLIT_INVARIANTS
from models.ledger.ledger import MOVES

ROWS_SHOWN_MAX: Final = 20
# No caller waits for an audit, so it may take longer than a step of a call.
STATEMENT_TIMEOUT_MS: Final = 600_000

_NET: Final = f"""
    SELECT a.id, a.holder, a.kind, a.currency, a.network, COALESCE(s.units, 0) AS units
    FROM accounts a LEFT JOIN (
        SELECT account, sum(units) AS units FROM (
            SELECT credit_account AS account, units FROM {MOVES} credits
            UNION ALL SELECT debit_account, -units FROM {MOVES} debits
        ) sides GROUP BY account
    ) s ON s.account = a.id
"""

# What the chains took, by the custody that it left; given back where a reorg took the transaction.
_GAS: Final = f"""
    SELECT c.network, c.currency, t.units FROM {MOVES} t JOIN accounts g ON g.id = t.debit_account
        JOIN accounts c ON c.id = t.credit_account WHERE g.kind = 'gas' AND c.kind = 'custody'
    UNION ALL
    SELECT c.network, c.currency, -t.units FROM {MOVES} t JOIN accounts g ON g.id = t.credit_account
        JOIN accounts c ON c.id = t.debit_account WHERE g.kind = 'gas' AND c.kind = 'custody'
"""

# Name -> (what it proves, query of the violations).
INVARIANTS: Final[dict[str, tuple[str, str]]] = {
    "balances_equal_transfers": (
        "every balance row is the sum of its account's transfers",
        f"SELECT n.holder, n.kind, n.currency, b.units, n.units FROM ({_NET}) n"
        " JOIN balances b ON b.account_id = n.id WHERE b.units <> n.units",
    ),
    "guarded_accounts_have_balances": (
        "an account that may not go below zero has a balance row once it was used",
        f"SELECT n.holder, n.kind, n.currency, n.units FROM ({_NET}) n LEFT JOIN balances b ON b.account_id = n.id"
        " WHERE n.kind IN ('available', 'maturing', 'payout_held', 'hold', 'personal')"
        " AND b.account_id IS NULL AND n.units <> 0",
    ),
    "zero_sum": (
        "custody covers every liability: all accounts of a currency add up to nothing",
        f"SELECT n.currency, sum(n.units) FROM ({_NET}) n GROUP BY n.currency HAVING sum(n.units) <> 0",
    ),
    "transfers_keep_currency": (
        "a transfer's accounts are of its currency",
        f"SELECT d.id, c.id, t.currency, t.units FROM {MOVES} t JOIN accounts d ON d.id = t.debit_account"
        " JOIN accounts c ON c.id = t.credit_account WHERE d.currency <> t.currency OR c.currency <> t.currency",
    ),
    "custody_equals_what_came_and_left": (
        "custody per network and coin is what deposits and top-ups brought, less payouts, losses, write-offs,"
        " what was carried off and gas",
        f"SELECT network, currency, c.units, e.units FROM"
        f" (SELECT network, currency, -sum(units) AS units FROM ({_NET}) n WHERE kind = 'custody'"
        "   GROUP BY network, currency) c"
        " FULL JOIN (SELECT network, currency, sum(units) AS units FROM ("
        "   SELECT network, currency, amount_units AS units FROM deposits WHERE status IN ('confirmed', 'credited')"
        "   UNION ALL SELECT network, currency, CASE WHEN origin = 'cold' THEN excess_units ELSE units END"
        "     FROM treasury_topups WHERE status = 'booked'"
        "   UNION ALL SELECT network, currency, -to_units FROM payouts WHERE status = 'confirmed'"
        "   UNION ALL SELECT network, currency, -lost_units FROM spends WHERE lost_units <> 0"
        f"  UNION ALL SELECT network, currency, -units FROM ({_GAS}) g"
        "   UNION ALL SELECT network, currency, -unexplained_units FROM treasury_writeoffs"
        "   UNION ALL SELECT from_network, currency, -units FROM treasury_moves"
        "   ) moves GROUP BY network, currency) e USING (network, currency)"
        " WHERE COALESCE(c.units, 0) <> COALESCE(e.units, 0)",
    ),
    "gas_equals_spends": (
        "what the books say a network took is what its spends cost, and what it charged our addresses without one",
        "SELECT network, g.units, s.units FROM"
        f" (SELECT network, sum(units) AS units FROM ({_GAS}) g GROUP BY network) g"
        " FULL JOIN (SELECT network, sum(units) AS units FROM (SELECT network, booked_fee_units AS units FROM spends"
        "   UNION ALL SELECT network, booked_units FROM charges) cost GROUP BY network) s USING (network)"
        " WHERE COALESCE(g.units, 0) <> COALESCE(s.units, 0)",
    ),
    "suspense_equals_undecided": (
        "suspense per merchant and coin is the sum of its confirmed deposits, neither credited nor sent back",
        f"SELECT s.holder, s.currency, s.units, d.units FROM"
        f" (SELECT holder, currency, sum(units) AS units FROM ({_NET}) n WHERE kind = 'suspense'"
        "   GROUP BY holder, currency) s"
        " FULL JOIN (SELECT merchant_id AS holder, currency, sum(amount_units) AS units FROM deposits"
        "   WHERE status = 'confirmed' AND refund_id IS NULL GROUP BY merchant_id, currency) d USING (holder, currency)"
        " WHERE COALESCE(s.units, 0) <> COALESCE(d.units, 0)",
    ),
    "unowned_equals_what_came": (
        "what is held for nobody known is what came to addresses of nobody, less what an operator made the gateway's",
        f"SELECT u.currency, u.units, t.units FROM"
        f" (SELECT currency, sum(units) AS units FROM ({_NET}) n WHERE kind = 'unowned' GROUP BY currency) u"
        " FULL JOIN (SELECT currency, sum(units) AS units FROM treasury_topups"
        "   WHERE status = 'booked' AND origin = 'unowned' GROUP BY currency) t USING (currency)"
        " WHERE COALESCE(u.units, 0) <> COALESCE(t.units, 0)",
    ),
    "credits_add_up": (
        "a credited deposit is divided without rest",
        "SELECT id, amount_units FROM deposits WHERE status = 'credited'"
        " AND net_units + fee_units + fee_fixed_units + rounding_units <> amount_units",
    ),
    "maturing_equals_waiting": (
        "the maturing balance of a merchant is what waits for maturity",
        f"SELECT m.holder, m.currency, m.units, w.units FROM"
        f" (SELECT holder, currency, units FROM ({_NET}) n WHERE kind = 'maturing') m"
        " FULL JOIN (SELECT merchant_id AS holder, currency, sum(units) AS units FROM maturing_credits"
        "   GROUP BY merchant_id, currency) w USING (holder, currency)"
        " WHERE COALESCE(m.units, 0) <> COALESCE(w.units, 0)",
    ),
    "sales_are_credited": (
        "a decided invoice holds no confirmed deposit back, unless its row says that some are due; an undecided one"
        " credits none for the first time",
        "SELECT i.id, i.status, d.id FROM invoices i JOIN deposits d ON d.owner_id = i.id"
        " WHERE d.stray_reason IS NULL AND ((i.status IN ('paid', 'paid_over') AND d.status = 'confirmed'"
        " AND d.refund_id IS NULL AND i.is_credit_due IS NOT TRUE)"
        " OR (i.status IN ('select', 'expired') AND d.status = 'credited'))",
    ),
    "sums_are_kept": (
        "an invoice shows the sum of its confirmed deposits, and no confirmed one that was not detected",
        "SELECT i.id, i.confirmed_units, i.detected_units, d.units FROM invoices i LEFT JOIN"
        " (SELECT owner_id, sum(amount_units) AS units FROM deposits"
        "   WHERE stray_reason IS NULL AND status IN ('confirmed', 'credited') GROUP BY owner_id) d"
        " ON d.owner_id = i.id"
        " WHERE i.confirmed_units <> COALESCE(d.units, 0) OR i.detected_units < i.confirmed_units",
    ),
    "fixed_fees_are_taken_once": (
        "what an invoice counts as taken of its fixed fee is what its deposits paid",
        "SELECT i.id, i.fee_fixed_taken_units, d.units FROM invoices i LEFT JOIN"
        " (SELECT owner_id, sum(fee_fixed_units) AS units FROM deposits GROUP BY owner_id) d ON d.owner_id = i.id"
        " WHERE i.fee_fixed_taken_units <> COALESCE(d.units, 0)",
    ),
    "invoices_follow_their_quotes": (
        "what a payer owes is what the quote in force says",
        "SELECT i.id, i.generation, i.payer_units, q.payer_units FROM invoices i LEFT JOIN quotes q"
        " ON q.invoice_id = i.id AND q.generation = i.generation"
        " WHERE i.pay_currency IS NOT NULL AND q.payer_units IS DISTINCT FROM i.payer_units",
    ),
    "addresses_have_one_owner": (
        "the address that an invoice shows comes from the pool and belongs to it alone",
        "SELECT i.id, i.address FROM invoices i LEFT JOIN"
        " (address_owners o JOIN pool_addresses p ON p.family = o.family AND p.ordinal = o.ordinal)"
        " ON o.owner_id = i.id AND o.ordinal = i.address_ordinal AND p.address = stored_address(i.address)"
        " WHERE i.pay_currency IS NOT NULL AND o.owner_id IS NULL",
    ),
    "links_sell_for_their_merchants": (
        "a payment of a link is of the link's merchant, in its currency and pinned coin, and within its bounds",
        "SELECT i.id, i.link_id FROM invoices i LEFT JOIN payment_links l ON l.id = i.link_id"
        " WHERE i.link_id IS NOT NULL AND (l.id IS NULL OR i.order_id IS NOT NULL"
        " OR (l.merchant_id, l.currency) <> (i.merchant_id, i.price_currency)"
        " OR i.price_units < COALESCE(l.fixed_units, l.min_units, 1)"
        " OR i.price_units > COALESCE(l.fixed_units, l.max_units)"
        " OR (l.pinned_currency, l.pinned_network) IS DISTINCT FROM (i.pay_currency, i.network)"
        "   AND l.pinned_currency IS NOT NULL)",
    ),
    "wallets_have_their_addresses": (
        "the address of a static wallet comes from the pool and belongs to it alone",
        "SELECT w.id, w.address FROM wallets w LEFT JOIN"
        " (address_owners o JOIN pool_addresses p ON p.family = o.family AND p.ordinal = o.ordinal)"
        " ON o.owner_kind = 'wallet' AND o.owner_id = w.id AND o.ordinal = w.address_ordinal AND p.address = w.address"
        " WHERE o.owner_id IS NULL",
    ),
    "deposits_have_owners": (
        "a deposit is of the merchant whose invoice or wallet it came to",
        "SELECT d.id, d.owner_kind, d.owner_id FROM deposits d"
        " LEFT JOIN invoices i ON d.owner_kind = 'invoice' AND i.id = d.owner_id"
        " LEFT JOIN wallets w ON d.owner_kind = 'wallet' AND w.id = d.owner_id"
        " WHERE d.merchant_id IS DISTINCT FROM COALESCE(i.merchant_id, w.merchant_id)",
    ),
    "wallets_credit_what_confirms": (
        "a wallet that is not blocked holds nothing but dust back, over whatever network it came, and credits no dust",
        "SELECT w.id, d.id, d.network, d.status FROM wallets w JOIN deposits d ON d.owner_id = w.id"
        " WHERE d.stray_reason <> 'dust' OR (d.stray_reason = 'dust' AND d.status = 'credited')"
        " OR (d.status = 'confirmed' AND d.stray_reason IS NULL AND d.refund_id IS NULL"
        "   AND w.blocked_at IS NULL AND NOT w.is_credit_due)",
    ),
    "refunds_hold_what_they_took": (
        "a refund from suspense took that from deposits of its own payment or wallet, and gives it back when it fails",
        "SELECT d.id, p.id, p.status FROM deposits d JOIN payouts p ON p.id = d.refund_id"
        " WHERE (p.merchant_id, p.currency, p.network) <> (d.merchant_id, d.currency, d.network)"
        " OR d.owner_id IS DISTINCT FROM COALESCE(p.invoice_id, p.wallet_id) OR p.funded_from <> 'suspense'"
        " OR p.status IN ('failed', 'cancelled')"
        " OR p.held_units < (SELECT sum(o.refund_units) FROM deposits o WHERE o.refund_id = p.id)",
    ),
    "refunds_take_what_was_credited": (
        "refunds from available of which some were never signed are of no more than what their payment was credited",
        "SELECT p.invoice_id, sum(p.amount_units) FROM payouts p WHERE p.kind = 'refund'"
        " AND p.status NOT IN ('failed', 'cancelled') AND p.invoice_id IN (SELECT invoice_id FROM payouts"
        "   WHERE kind = 'refund' AND status IN ('pending', 'awaiting_cosign', 'approved')) GROUP BY p.invoice_id"
        " HAVING bool_or(p.status IN ('pending', 'awaiting_cosign', 'approved')"
        "   AND NOT EXISTS (SELECT 1 FROM spend_outputs o WHERE o.payout_id = p.id)) AND sum(p.amount_units) >"
        " (SELECT COALESCE(sum(d.amount_units), 0) FROM deposits d"
        "   WHERE d.owner_id = p.invoice_id AND d.stray_reason IS NULL AND d.status = 'credited')",
    ),
    "cheques_hold_their_money": (
        "a cheque's money is held once, returned where it ended unclaimed, and else its payout's",
        "SELECT l.id, l.status FROM payout_links l WHERE"
        " (SELECT sum(t.units) FROM ledger_transfers t WHERE t.reference = 'payout_link:' || l.id || ':hold')"
        "  IS DISTINCT FROM l.amount_units + l.fee_units"
        " OR COALESCE((SELECT sum(t.units) FROM ledger_transfers t"
        "   WHERE t.reference = 'payout_link:' || l.id || ':return'), 0)"
        "  <> CASE WHEN l.status IN ('cancelled', 'expired') THEN l.amount_units + l.fee_units ELSE 0 END"
        " OR EXISTS (SELECT 1 FROM payouts p WHERE (p.merchant_id, p.order_id)"
        "   = (l.merchant_id, 'payoutlink:' || l.id)) <> (l.status = 'claimed')"
        " OR (l.status = 'claimed' AND NOT EXISTS (SELECT 1 FROM payouts p WHERE p.id = l.payout_id"
        "   AND (p.merchant_id, p.hold_reference, p.currency, p.network, p.address, p.to_units, p.fee_units)"
        "     = (l.merchant_id, 'payout_link:' || l.id || ':hold', l.currency, l.network, l.claim_address,"
        "        l.amount_units, l.fee_units)))",
    ),
    "wallets_pay_the_percent_fee": (
        "a wallet's deposit is credited less its percent fee, rounded down, and nothing else",
        "SELECT w.id, d.id, d.fee_units FROM wallets w JOIN deposits d ON d.owner_id = w.id"
        " WHERE d.status = 'credited' AND (d.fee_fixed_units <> 0"
        " OR d.fee_units <> trunc(d.amount_units * w.fee_ppm / 1000000))",
    ),
    **PAYOUT_INVARIANTS,
    **SPLIT_INVARIANTS,
    **COIN_INVARIANTS,
}

# Only a full audit checks these: they read the whole ledger.
FULL_INVARIANTS: Final[dict[str, tuple[str, str]]] = {
    "checkpoint_equals_ledger": (
        "the sums that an audit begins with are those of the ledger's rows, none of which was changed",
        DIFFERENCES,
    ),
    **FULL_SPLIT_INVARIANTS,
}

# While one of these is broken, it is unknown what may leave, and nothing does.
MONEY: Final = frozenset(
    {
        "balances_equal_transfers",
        "guarded_accounts_have_balances",
        "zero_sum",
        "transfers_keep_currency",
        "custody_equals_what_came_and_left",
        "gas_equals_spends",
        "checkpoint_equals_ledger",
    }
)


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, with the first rows that break it."""

    name: str
    meaning: str
    rows: list[tuple[Any, ...]]


def named(*, is_full: bool) -> dict[str, tuple[str, str]]:
    """Return the invariants that an audit checks, by name."""
    return INVARIANTS | (FULL_INVARIANTS if is_full else {})


def check(*, is_full: bool = False, since: UUID | None = None) -> list[Violation]:
    """Return what does not hold, all judged on one snapshot; empty is sound.

    The ledger is taken from its checkpoint and what came since, single objects where they are new, young or open; since
    is the identifier from which on they are new and young. A full audit compares the checkpoint with the ledger and
    looks at all.
    """
    violations = []
    young = since or scope.young_since()
    new = since or scope.new_since(checkpoint.passed_age_s())
    with transaction():
        execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with long_statements(STATEMENT_TIMEOUT_MS):
            for name, (meaning, query) in named(is_full=is_full).items():
                looked_at = query if is_full else scope.narrowed(name, query, since=young, new=new)
                broken = rows(f"{looked_at} LIMIT {ROWS_SHOWN_MAX}")
                if broken:
                    violations.append(Violation(name, meaning, broken))
    return violations


def audit(*, is_full: bool, within_s: float) -> list[Violation]:
    """Move the checkpoint, for at most within_s, check everything, and record the audit if nothing is wrong."""
    checkpoint.advance(within_s=within_s)
    violations = check(is_full=is_full)
    if not violations:
        checkpoint.note_passed(is_full=is_full)
    return violations
