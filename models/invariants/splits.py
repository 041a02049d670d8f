"""States what must always hold of shares in others' credits, as SQL that returns no row. Read by money_in alone."""

from __future__ import annotations

from typing import Final

from models.ledger.ledger import MOVES


def _of_hold(reference: str, *, side: str, holder: str, currency: str) -> str:
    """Return an expression: the units that a reference moved out of (debit) or into (credit) a merchant's hold."""
    return (
        f"(SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t JOIN accounts a ON a.id = t.{side}_account"
        f" WHERE t.reference = {reference} AND (a.holder, a.kind, a.currency) = ({holder}, 'hold', {currency}))"
    )


SPLIT_INVARIANTS: Final[dict[str, tuple[str, str]]] = {
    "holds_equal_open_shares": (
        "what a merchant has in hold is what is left of the shares in its credits",
        "SELECT holder, currency, h.units, s.units FROM"
        " (SELECT a.holder, a.currency, b.units FROM accounts a JOIN balances b ON b.account_id = a.id"
        "   WHERE a.kind = 'hold') h"
        " FULL JOIN (SELECT merchant_id AS holder, currency, sum(left_units) AS units FROM public.split_shares"
        "   WHERE left_units > 0 GROUP BY merchant_id, currency) s USING (holder, currency)"
        " WHERE COALESCE(h.units, 0) <> COALESCE(s.units, 0)",
    ),
    "shares_never_exceed_their_credit": (
        "a share is its percent of a net credit at most, all shares in a credit are no more than that, and those in"
        " what a reorg took have ended",
        "SELECT s.deposit_id, s.round, d.status, d.round, d.net_units, s.units FROM"
        " (SELECT deposit_id, round, sum(units) AS units, sum(percent_ppm) AS ppm,"
        "   max(units * 1000000 / percent_ppm) AS whole, bool_and(is_reversed) AS is_reversed FROM split_shares"
        "   GROUP BY deposit_id, round) s JOIN deposits d ON d.id = s.deposit_id"
        " WHERE s.ppm > 1000000 OR (NOT s.is_reversed AND ((d.status, d.round) <> ('credited', s.round)"
        "   OR s.units > d.net_units OR s.whole > d.net_units))",
    ),
    "shares_are_put_aside": (
        "a credit put into its merchant's hold what its shares say",
        "SELECT s.deposit_id, s.round, s.units FROM (SELECT deposit_id, round, merchant_id, currency,"
        "   sum(units) AS units FROM split_shares GROUP BY deposit_id, round, merchant_id, currency) s"
        " WHERE s.units <> {}".format(
            _of_hold(
                "'deposit:' || s.deposit_id || ':' || s.round || ':credit'",
                side="credit",
                holder="s.merchant_id",
                currency="s.currency",
            )
        ),
    ),
    "shares_mature_with_their_credit": (
        "a share is mature as soon as its credit is, and no earlier",
        "SELECT s.id, s.deposit_id, s.round FROM split_shares s WHERE NOT s.is_reversed AND s.is_mature = EXISTS"
        " (SELECT 1 FROM maturing_credits m WHERE m.deposit_id = s.deposit_id AND m.round = s.round)",
    ),
    "refunds_took_what_shares_gave": (
        "a share gave what the refunds took of it that are neither failed nor cancelled",
        "SELECT s.id, s.taken_units FROM split_shares s WHERE s.taken_units <> (SELECT COALESCE(sum(t.units), 0)"
        " FROM split_takes t JOIN public.payouts p ON p.id = t.payout_id"
        " WHERE t.share_id = s.id AND p.status NOT IN ('failed', 'cancelled'))",
    ),
    "refunds_hold_what_shares_gave": (
        "a refund holds as much out of its merchant's hold as it took of shares, and no other payout any",
        "SELECT p.id, p.kind, p.held_units FROM payouts p WHERE {} <>"
        " (SELECT COALESCE(sum(units), 0) FROM split_takes WHERE payout_id = p.id)".format(
            _of_hold("p.hold_reference", side="debit", holder="p.merchant_id", currency="p.currency")
        ),
    ),
    "earnings_are_what_holds_gave": (
        "what a recipient is told to have received is what others' holds gave it",
        "SELECT recipient_id, currency, m.units, e.units FROM"
        f" (SELECT c.holder AS recipient_id, t.currency, sum(t.units) AS units FROM {MOVES} t"
        "   JOIN accounts d ON d.id = t.debit_account JOIN accounts c ON c.id = t.credit_account"
        "   WHERE d.kind = 'hold' AND c.kind IN ('available', 'debt') AND c.holder <> d.holder"
        "   GROUP BY c.holder, t.currency) m"
        " FULL JOIN split_earnings e USING (recipient_id, currency) WHERE COALESCE(m.units, 0) <> COALESCE(e.units, 0)",
    ),
}

# For a full audit alone: it adds up every share there ever was.
FULL_SPLIT_INVARIANTS: Final[dict[str, tuple[str, str]]] = {
    "earnings_equal_released_shares": (
        "what a recipient is told to have received is what was released of shares",
        "SELECT recipient_id, currency, s.units, e.units FROM"
        " (SELECT recipient_id, currency, sum(released_units) AS units FROM split_shares"
        "   WHERE released_units > 0 GROUP BY recipient_id, currency) s"
        " FULL JOIN split_earnings e USING (recipient_id, currency) WHERE COALESCE(s.units, 0) <> COALESCE(e.units, 0)",
    ),
}
