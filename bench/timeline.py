"""Measures the timeline of a payment with a thousand events or more: `python -m bench.timeline`.

In a temporary PostgreSQL: the work of POST /v1/payment/timeline behind its signature, from the look-up to the JSON.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from statistics import median
from typing import Final
from uuid import UUID

import msgspec

from bench.measuring.own_database import own_database
from bench.measuring.report import Figure, show
from core.catalogue.catalogue import load_catalogue
from core.ids import uuid7
from models.db import base, migrate
from models.invoices import rows as invoices
from models.invoices import timeline
from models.invoices.shown import Shown
from models.merchants import rows as merchants

GOAL_MS: Final = 20.0
ROUNDS: Final = 60
QUICK_ROUNDS: Final = 15
# Other invoices, with a deposit and a booking each, so that no table is small.
OTHERS: Final = 20_000

# The rows of a payment by kind. A credited deposit makes three events.
SALE: Final = {"credited": 305, "quotes": 40, "deliveries": 40, "reorgs": 5, "refunds": 4}
CROWD: Final = {"credited": 100, "pending": 20_000, "quotes": 40, "deliveries": 40, "reorgs": 5, "refunds": 4}

_FILL: Final = """
INSERT INTO chain_cursors (network, height, hash, block_time, head_height, started_height)
    VALUES ('ethereum', 1000000, '0x', now(), 1000000, 1);
INSERT INTO accounts (holder, kind, currency) VALUES (gen_random_uuid(), 'suspense', 'USDT'),
    (gen_random_uuid(), 'available', 'USDT');
"""
_INVOICE: Final = """
INSERT INTO invoices (id, merchant_id, order_id, status, is_multi, price_currency, price_units, pay_currency, network,
        payer_units, address, fee_ppm, fee_fixed_usd_cents, fee_fixed_units, created_at, updated_at, expires_at,
        rate_expires_at)
    SELECT id, %(merchant)s, id::text, 'check', false, 'USD', 1000, 'USDT', 'ethereum', 1000, '0x', 15000, 30, 0,
        now() - interval '1 day', now(), now() + interval '1 day', now() FROM unnest(%(ids)s::uuid[]) AS id;
"""
_DEPOSITS: Final = """
WITH new AS (INSERT INTO deposits (id, network, txid, ordinal, currency, amount_units, address, owner_kind, owner_id,
        merchant_id, status, block_height, block_hash, block_time, seen_at, detected_at, confirmed_at, net_units)
    SELECT gen_random_uuid(), 'ethereum', '0x' || md5(id::text || n || %(status)s) || md5(n::text), '0', 'USDT', 1000,
        '0x', 'invoice', id, %(merchant)s, %(status)s, 999999, '0x', now(), now(), now() - n * interval '1 second',
        CASE WHEN %(status)s = 'credited' THEN now() - n * interval '1 second' END, 985
    FROM unnest(%(ids)s::uuid[]) AS id, generate_series(1, %(count)s) AS n RETURNING id, status)
INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)
    SELECT 'deposit:' || id || ':0:credit', 0, (SELECT min(id) FROM accounts), (SELECT max(id) FROM accounts), 'USDT',
        985 FROM new WHERE status = 'credited';
"""
_REST: Final = """
INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)
    SELECT %(id)s, n, 1000, 0, now() - n * interval '15 minutes', now() FROM generate_series(1, %(quotes)s) AS n;
INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, body, status, attempts)
    SELECT gen_random_uuid(), %(merchant)s, 'invoice.paid', %(id)s, '{}', 'dead', 12
    FROM generate_series(1, %(deliveries)s);
INSERT INTO invoice_events (invoice_id, id, event, detail)
    SELECT %(id)s, gen_random_uuid(), 'reorged', jsonb_build_object('txid', '0x' || n, 'amount', '1',
        'currency', 'USDT', 'network', 'ethereum', 'block_height', 7, 'detected_at', '2026-01-31T12:00:00.000Z')
    FROM generate_series(1, %(reorgs)s) AS n;
INSERT INTO payouts (id, merchant_id, order_id, kind, hold_reference, invoice_id, currency, network, address,
        amount_units, fee_units, to_units, held_units, is_fee_on_top, status, created_by)
    SELECT gen_random_uuid(), %(merchant)s, 'refund:' || n || %(id)s, 'refund', 'refund:' || n || %(id)s, %(id)s,
        'USDT', 'ethereum', '0x52908400098527886e0f7030069857d2e4169ee7', 1, 1, 1, 2, true, 'confirmed', 'pk'
    FROM generate_series(1, %(refunds)s) AS n;
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The median of some readings, the fastest, and the number of events."""

    ms: float
    fastest_ms: float
    events: int


def write(merchant: UUID, *, credited: int, pending: int = 0, **rest: int) -> UUID:
    """Write a payment with these numbers of rows, and return its id."""
    invoice_id = uuid7()
    base.execute(_INVOICE, {"merchant": merchant, "ids": [invoice_id]})
    for status, count in (("credited", credited), ("pending", pending)):
        parameters = {"merchant": merchant, "ids": [invoice_id], "status": status, "count": count}
        base.execute(_DEPOSITS, parameters)
    base.execute(_REST, {"merchant": merchant, "id": invoice_id, **rest})
    return invoice_id


def measure(merchant: UUID, invoice_id: UUID, rounds: int) -> Measured:
    """Read a payment's timeline this many times, as the endpoint does."""
    catalogue = load_catalogue("development")
    taken, items = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        invoice = invoices.look_up(merchant, uuid=str(invoice_id), order_id=None)
        assert invoice is not None
        items = timeline.read(catalogue, Shown(invoice))
        msgspec.json.encode({"items": items})
        taken.append((time.perf_counter() - began) * 1000)
    return Measured(median(taken), min(taken), len(items))


def figure(name: str, measured: Measured) -> Figure:
    assert measured.events == timeline.EVENTS_MAX
    fastest = f"fastest {measured.fastest_ms:.1f} ms"
    return Figure(name=f"{name}: milliseconds", ratio=measured.ms, goal=GOAL_MS, better="at most", detail=fastest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = QUICK_ROUNDS if parser.parse_args().quick else ROUNDS
    with own_database() as url:
        migrate.migrate(url)
        base.connect(url)
        merchant = merchants.create_merchant("bench").id
        base.execute(_FILL)
        others = {"merchant": merchant, "ids": [uuid7() for _ in range(OTHERS)], "status": "credited", "count": 1}
        base.execute(_INVOICE, others)
        base.execute(_DEPOSITS, others)
        sale, crowd = write(merchant, **SALE), write(merchant, **CROWD)
        base.execute("ANALYZE")
        show(
            "POST /v1/payment/timeline",
            [
                figure("1000 events", measure(merchant, sale, rounds)),
                figure("the newest 1000 of 40,000 events", measure(merchant, crowd, rounds)),
            ],
        )


if __name__ == "__main__":
    main()
