"""Selects the objects that an audit between two full ones checks: new, young and open ones, and what belongs to them.

There are millions of objects, and those that ended long ago no longer change: a full audit checks all, once a day.
Books and balances are always checked as a whole; only the invariants named here are narrowed. Used by
models.invariants.deposits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from core.catalogue.families import SERVED_FAMILIES
from core.ids import least_id

# Twice as long as it takes until the next full audit.
YOUNG_S: Final = 2 * 86_400
# An identifier is made before its row is committed, by a machine whose clock may be behind the database's.
COMMITTED_WITHIN_S: Final = 600

# Each puts a part of some tables in front of their names; what a query compares with the part is in it too. An invoice
# is looked at when it was made since the last audit or a young deposit came to it: most are never paid, and nothing
# changes them but their end. OFFSET 0 has every row looked up by its key: the planner does not know how small the parts
# are, and would rather read a whole table.
_ADDRESSES: Final = """
    address_owners AS MATERIALIZED (SELECT o.* FROM {holders} h CROSS JOIN unnest('{families}'::text[]) AS f (name)
        CROSS JOIN LATERAL (SELECT * FROM public.address_owners
            WHERE (family, ordinal) = (f.name, h.address_ordinal) OFFSET 0) o),
    pool_addresses AS MATERIALIZED (SELECT p.* FROM address_owners o CROSS JOIN LATERAL
        (SELECT * FROM public.pool_addresses WHERE (family, ordinal) = (o.family, o.ordinal) OFFSET 0) p)
"""
_SALES: Final = """
    WITH young AS MATERIALIZED (SELECT id, owner_id FROM public.deposits WHERE id >= '{since}'),
    invoices AS MATERIALIZED (SELECT i.* FROM
        (SELECT id FROM public.invoices WHERE id >= '{new}' UNION SELECT owner_id FROM young) y
        CROSS JOIN LATERAL (SELECT * FROM public.invoices WHERE id = y.id OFFSET 0) i),
    deposits AS MATERIALIZED (SELECT d.* FROM
        (SELECT id FROM young UNION SELECT o.id FROM invoices i
            CROSS JOIN LATERAL (SELECT id FROM public.deposits WHERE owner_id = i.id OFFSET 0) o) y
        CROSS JOIN LATERAL (SELECT * FROM public.deposits WHERE id = y.id OFFSET 0) d),
    quotes AS MATERIALIZED (SELECT q.* FROM invoices i
        CROSS JOIN LATERAL (SELECT * FROM public.quotes WHERE invoice_id = i.id OFFSET 0) q),
""" + _ADDRESSES.replace("{holders}", "invoices")
_WALLETS: Final = (
    "WITH wallets AS MATERIALIZED (SELECT * FROM public.wallets WHERE id >= '{since}'),"
    + _ADDRESSES.replace("{holders}", "wallets")
)
_DEPOSITS: Final = "WITH deposits AS MATERIALIZED (SELECT * FROM public.deposits WHERE id >= '{since}')"
_PAYOUTS: Final = """
    WITH payouts AS MATERIALIZED (SELECT p.* FROM
        (SELECT id FROM public.payouts WHERE id >= '{since}' UNION SELECT id FROM public.payouts
            WHERE status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent')) y
        CROSS JOIN LATERAL (SELECT * FROM public.payouts WHERE id = y.id OFFSET 0) p),
    spend_outputs AS MATERIALIZED (SELECT o.* FROM payouts p CROSS JOIN LATERAL
        (SELECT * FROM public.spend_outputs WHERE payout_id = p.id AND state <> 'dead' OFFSET 0) o
        UNION ALL SELECT * FROM public.spend_outputs WHERE state = 'dead' AND payout_id IN (SELECT id FROM payouts)),
    spends AS MATERIALIZED (SELECT s.* FROM (SELECT DISTINCT spend_id FROM spend_outputs) y
        CROSS JOIN LATERAL (SELECT * FROM public.spends WHERE id = y.spend_id OFFSET 0) s)
"""
_SPENDS: Final = """
    WITH spends AS MATERIALIZED (SELECT s.* FROM
        (SELECT id FROM public.spends WHERE id >= '{since}' UNION SELECT id FROM public.spends
            WHERE settled_at IS NULL) y
        CROSS JOIN LATERAL (SELECT * FROM public.spends WHERE id = y.id OFFSET 0) s),
    spend_outputs AS MATERIALIZED (SELECT o.* FROM spends s
        CROSS JOIN LATERAL (SELECT * FROM public.spend_outputs WHERE spend_id = s.id OFFSET 0) o)
"""
_MOVEMENTS: Final = (
    _SPENDS
    + """,
    spend_movements AS MATERIALIZED (SELECT m.* FROM spends s
        CROSS JOIN LATERAL (SELECT * FROM public.spend_movements WHERE spend_id = s.id OFFSET 0) m)
"""
)
# All shares of a deposit are looked at where one of them is; the deposit may be older than young by itself.
_SHARES: Final = """
    WITH shared AS MATERIALIZED (SELECT deposit_id AS id FROM public.split_shares WHERE id >= '{since}'
        UNION SELECT deposit_id FROM public.split_shares WHERE left_units > 0),
    split_shares AS MATERIALIZED (SELECT s.* FROM shared y
        CROSS JOIN LATERAL (SELECT * FROM public.split_shares WHERE deposit_id = y.id OFFSET 0) s),
    deposits AS MATERIALIZED (SELECT d.* FROM shared y
        CROSS JOIN LATERAL (SELECT * FROM public.deposits WHERE id = y.id OFFSET 0) d)
"""
_CHEQUES: Final = """
    WITH payout_links AS MATERIALIZED (SELECT * FROM public.payout_links
        WHERE id >= '{since}' OR status IN ('funded', 'claiming'))
"""

_SCOPES: Final[Mapping[str, str]] = {
    "credits_add_up": _DEPOSITS,
    "sales_are_credited": _SALES,
    "sums_are_kept": _SALES,
    "fixed_fees_are_taken_once": _SALES,
    "invoices_follow_their_quotes": _SALES,
    "addresses_have_one_owner": _SALES,
    "deposits_have_owners": _SALES,
    "links_sell_for_their_merchants": _SALES,
    "wallets_have_their_addresses": _WALLETS,
    "wallets_credit_what_confirms": _DEPOSITS,
    "wallets_pay_the_percent_fee": _DEPOSITS,
    "shares_never_exceed_their_credit": _SHARES,
    "shares_are_put_aside": _SHARES,
    "shares_mature_with_their_credit": _SHARES,
    "refunds_took_what_shares_gave": _SHARES,
    "refunds_hold_what_shares_gave": _PAYOUTS,
    "cheques_hold_their_money": _CHEQUES,
    "payouts_hold_their_money": _PAYOUTS,
    "payouts_are_booked_as_they_ended": _PAYOUTS,
    "failed_payouts_keep_what_they_say": _PAYOUTS,
    "conversions_are_booked": _PAYOUTS,
    "approvers_are_others": _PAYOUTS,
    "payouts_follow_their_spends": _PAYOUTS,
    "spends_do_what_payouts_say": _PAYOUTS,
    "spends_are_their_outputs": _SPENDS,
    "movements_are_their_spends": _MOVEMENTS,
    "movements_are_coins": _MOVEMENTS,
}


def young_since() -> UUID:
    """Return the least identifier that something young can have: identifiers begin with the time of their making."""
    return least_id(time.time() - YOUNG_S)


def new_since(passed_age_s: float | None) -> UUID:
    """Return the least identifier of what the last audit, which passed so long ago, may not have seen."""
    if passed_age_s is None:
        return young_since()
    return max(young_since(), least_id(time.time() - passed_age_s - COMMITTED_WITHIN_S))


def narrowed(name: str, query: str, *, since: UUID, new: UUID) -> str:
    """Return an invariant's query for what is new, young or open; one that is not narrowed as it is."""
    if name not in _SCOPES:
        return query
    families = "{" + ",".join(sorted(SERVED_FAMILIES)) + "}"
    return f"{_SCOPES[name].format(since=since, new=new, families=families)} {query}"
