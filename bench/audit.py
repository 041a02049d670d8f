"""Measures an audit of a long ledger: `python -m bench.audit`, with `--quick` for a short one.

Rows are generated in a temporary PostgreSQL: sales of many merchants, each booked as five transfers. The first
checkpoint, an audit that begins at it, and a full audit are timed separately.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final

from bench.measuring.own_database import own_database
from models.db import base
from models.db.migrate import migrate
from models.invariants import checkpoint, deposits

ROWS: Final = 10_000_000
ROWS_QUICK: Final = 200_000
MERCHANTS: Final = 2_000
GOAL_S: Final = 5.0
# Rows since the checkpoint: far more than a minute brings.
TAIL: Final = 50_000

_ACCOUNTS: Final = """
    INSERT INTO accounts (holder, kind, currency, network)
        SELECT CASE WHEN kind IN ('custody', 'fees') THEN '00000000-0000-0000-0000-000000000000'::uuid
                ELSE ('00000000-0000-0000-0001-' || lpad(to_hex(shop), 12, '0'))::uuid END,
            kind, 'USDT', CASE WHEN kind = 'custody' THEN 'ethereum' ELSE '' END
        FROM generate_series(1, %(shops)s) AS shop, unnest(ARRAY['suspense', 'maturing', 'available']) AS kind
        UNION ALL SELECT '00000000-0000-0000-0000-000000000000', 'custody', 'USDT', 'ethereum'
        UNION ALL SELECT '00000000-0000-0000-0000-000000000000', 'fees', 'USDT', ''
        UNION ALL SELECT '00000000-0000-0000-0000-000000000000', 'rounding', 'USDT', ''
"""
# A sale: confirmed (5 units), credited (4 net, 1 of fees in two legs), matured.
_SALES: Final = """
    WITH shops AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY s.holder) - 1 AS number, s.id AS suspense, m.id AS maturing,
            a.id AS available
        FROM accounts s JOIN accounts m ON m.holder = s.holder AND m.kind = 'maturing'
            JOIN accounts a ON a.holder = s.holder AND a.kind = 'available' WHERE s.kind = 'suspense'
    ), common AS MATERIALIZED (
        SELECT max(id) FILTER (WHERE kind = 'custody') AS custody, max(id) FILTER (WHERE kind = 'fees') AS fees,
            max(id) FILTER (WHERE kind = 'rounding') AS rounding FROM accounts
    )
    INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)
        SELECT 'deposit:' || sale || ':0:' || what, leg, debit, credit, 'USDT', units
        FROM generate_series(%(first)s, %(last)s) AS sale JOIN shops ON shops.number = sale %% %(shops)s, common,
        LATERAL (VALUES ('confirm', 0, custody, suspense, 1000), ('credit', 0, suspense, maturing, 984),
            ('credit', 1, suspense, fees, 15), ('credit', 2, suspense, rounding, 1),
            ('mature', 0, maturing, available, 984)) AS legs (what, leg, debit, credit, units)
"""
_BALANCES: Final = """
    INSERT INTO balances (account_id, units)
        SELECT a.id, COALESCE(sum(s.units), 0) FROM accounts a
        LEFT JOIN (SELECT credit_account AS id, sum(units) AS units FROM ledger_transfers GROUP BY 1
            UNION ALL SELECT debit_account, -sum(units) FROM ledger_transfers GROUP BY 1) s ON s.id = a.id
        WHERE a.kind IN ('maturing', 'available') GROUP BY a.id
    ON CONFLICT (account_id) DO UPDATE SET units = EXCLUDED.units
"""
# With `--sales`: the invoices and deposits of those transfers.
_SHOPS: Final = """
    WITH owner AS (INSERT INTO owners (id, name) VALUES (gen_random_uuid(), 'bench') RETURNING id)
    INSERT INTO merchants (id, owner_id, name) SELECT DISTINCT a.holder, owner.id, 'bench' FROM accounts a, owner
        WHERE a.kind = 'suspense'
"""
_NUMBERED: Final = """
    WITH shops AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY holder) - 1 AS number, holder AS id FROM accounts WHERE kind = 'suspense'
    ), sales AS (
        SELECT sale, shops.id AS merchant_id, '0x' || lpad(to_hex(sale), 40, '0') AS address,
            (%(age)s || '-0000-0000-0002-' || lpad(to_hex(sale), 12, '0'))::uuid AS invoice_id
        FROM generate_series(%(first)s, %(last)s) AS sale JOIN shops ON shops.number = sale %% %(shops)s
    )
"""
_OBJECTS: Final = (
    "INSERT INTO pool_addresses (family, ordinal, address) SELECT 'evm', sale, address FROM sales",
    "INSERT INTO address_owners (family, ordinal, owner_kind, owner_id)"
    " SELECT 'evm', sale, 'invoice', invoice_id FROM sales",
    "INSERT INTO invoices (id, merchant_id, status, is_final, is_multi, price_currency, price_units, pay_currency,"
    " network, payer_units, address_ordinal, address, fee_ppm, fee_fixed_usd_cents, fee_fixed_units, confirmed_units,"
    " detected_units, created_at, updated_at, expires_at, rate_expires_at)"
    " SELECT invoice_id, merchant_id, 'paid', true, false, 'USD', 1000, 'USDT', 'ethereum', 1000, sale, address, 15000,"
    " 0, 0, 1000, 1000, now(), now(), now(), now() FROM sales",
    "INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)"
    " SELECT invoice_id, 0, 1000, 0, now(), now() FROM sales",
    "INSERT INTO deposits (id, network, txid, ordinal, currency, amount_units, address, owner_kind, owner_id,"
    " merchant_id, status, block_height, block_hash, block_time, seen_at, net_units, fee_units, rounding_units)"
    " SELECT invoice_id, 'ethereum', address, 'native', 'USDT', 1000, address, 'invoice', invoice_id,"
    " merchant_id, 'credited', sale, '', now(), now(), 984, 15, 1 FROM sales",
)
# Without sales, custody comes from one top-up.
_TOPUP: Final = """
    INSERT INTO treasury_topups (id, network, txid, ordinal, currency, units, block_height, block_hash, status)
        SELECT gen_random_uuid(), 'ethereum', '', 'bench', 'USDT', sum(units), 1, '', 'booked' FROM ledger_transfers
        WHERE reference LIKE '%:confirm'
    ON CONFLICT (network, txid, ordinal) DO UPDATE SET units = EXCLUDED.units
"""


def fill(first: int, last: int, *, with_sales: bool) -> None:
    """Book sales first to last, and the balances after them."""
    # Identifiers begin with the time: rows before the checkpoint are old, rows after it are young.
    age = "ffffffff" if first > 1 else "00000000"
    portion = {"first": first, "last": last, "shops": MERCHANTS, "age": age}
    base.execute(_SALES, portion)
    base.execute(_BALANCES)
    if with_sales:
        for statement in _OBJECTS:
            base.execute(_NUMBERED + statement, portion)
    else:
        base.execute(_TOPUP)
    base.execute("ANALYZE")


def timed(what: str, step: Callable[[], object]) -> float:
    """Do a step, print how long it took, and return that in seconds."""
    began = time.perf_counter()
    step()
    took_s = time.perf_counter() - began
    sys.stdout.write(f"{what:<44}{took_s:8.2f} s\n")
    sys.stdout.flush()
    return took_s


def sound(*, is_full: bool) -> None:
    """Audit, and fail on a violation."""
    violations = deposits.audit(is_full=is_full, within_s=600)
    if violations:
        raise SystemExit(f"not sound: {violations}")


def measure(database_url: str, count: int, *, with_sales: bool) -> bool:
    """Fill a database and time the audits. Return True if the goal is met."""
    migrate(database_url)
    base.connect(database_url, statement_timeout_ms=0)
    base.execute(_ACCOUNTS, {"shops": MERCHANTS})
    if with_sales:
        base.execute(_SHOPS)
    sales = count // 5
    timed(f"generating {count:,} rows", lambda: fill(1, sales, with_sales=with_sales))
    timed("the first checkpoint", lambda: checkpoint.advance(within_s=600))
    fill(sales + 1, sales + TAIL // 5, with_sales=with_sales)
    took_s = timed(f"an audit, {TAIL:,} rows after its checkpoint", lambda: sound(is_full=False))
    timed("a full audit", lambda: sound(is_full=True))
    sys.stdout.write(f"goal: an audit within {GOAL_S:.0f} s: {'met' if took_s <= GOAL_S else 'MISSED'}\n")
    return took_s <= GOAL_S


def main() -> None:
    """Measure in a temporary server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{ROWS_QUICK:,} rows")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many")
    parser.add_argument("--sales", action="store_true", help="generate invoices and deposits too, two a ten rows")
    options = parser.parse_args()
    count = ROWS_QUICK if options.quick else options.rows
    with own_database() as url:
        is_met = measure(url, count, with_sales=options.sales)
    raise SystemExit(0 if is_met else 1)


if __name__ == "__main__":
    main()
