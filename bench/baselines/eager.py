"""Baseline *eager*: three new quotes in the life of an open invoice, a transaction each, and an end by itself. Frozen.

It works on copies of the product's rows, in a schema of its own, by the statements of that time. Run by bench.life.
"""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import UUID

import psycopg2
import psycopg2.extras
from uuid_utils.compat import uuid7

PAGE: Final = 200
QUOTES_A_LIFE: Final = 3
QUOTE_S: Final = 900
HOLDING_PART: Final = 10
DEPOSITS_PER_PAGE: Final = 100
SMALLEST: Final = 10**18
DEPTHS: Final = json.dumps({"ethereum": 2, "bsc": 2, "polygon": 2, "avalanche": 2, "base": 2, "arbitrum": 2})

psycopg2.extras.register_uuid()

SCHEMA: Final = """
    CREATE SCHEMA eager;
    CREATE TABLE eager.invoices (LIKE public.invoices INCLUDING ALL);
    ALTER TABLE eager.invoices ADD COLUMN IF NOT EXISTS rate_expires_at timestamptz,
        ADD COLUMN IF NOT EXISTS extended_generation integer, ADD COLUMN IF NOT EXISTS requote_after timestamptz;
    CREATE INDEX ON eager.invoices (COALESCE(requote_after, rate_expires_at))
        WHERE status = 'check' AND detected_units * 10 < payer_units AND rate_expires_at < expires_at;
    CREATE TABLE eager.quotes (
        invoice_id uuid NOT NULL REFERENCES eager.invoices,
        generation integer NOT NULL,
        payer_units units NOT NULL,
        fee_fixed_units units NOT NULL,
        valid_from timestamptz NOT NULL,
        rate_expires_at timestamptz NOT NULL,
        PRIMARY KEY (invoice_id, generation)
    );
    CREATE TABLE eager.invoice_events (LIKE public.invoice_events INCLUDING ALL);
    CREATE TABLE eager.webhook_deliveries (LIKE public.webhook_deliveries INCLUDING ALL);
    SET search_path = eager, public;
"""
COPY: Final = """
    INSERT INTO eager.invoices SELECT * FROM public.invoices WHERE status = 'check' ORDER BY id LIMIT %s;
    INSERT INTO eager.quotes SELECT id, generation, payer_units, fee_fixed_units, now(), now() FROM eager.invoices;
    ANALYZE eager.invoices, eager.quotes;
"""
RATES_RUN_OUT: Final = """
    UPDATE eager.invoices SET rate_expires_at = app_now() - interval '1 minute',
        expires_at = app_now() + interval '1 minute'
"""
TIME_RUNS_OUT: Final = "UPDATE eager.invoices SET expires_at = app_now() - interval '1 minute'"
ROW: Final = """
    SELECT i.id, i.merchant_id, i.order_id, i.status, i.is_final, i.is_multi, i.price_currency, i.price_units,
    i.pay_currency, i.network, i.payer_units, i.generation, i.address_ordinal, i.address,
    i.required_confirmations, i.accuracy_ppm, i.discount_ppm, i.subtract_percent, i.fee_ppm,
    i.fee_fixed_usd_cents, i.fee_fixed_units, i.confirmed_units, i.detected_units, i.deposit_height,
    i.deposit_depth_min, i.fee_fixed_taken_units, i.txid, i.payer_address, i.decided_at, i.accepted_units,
    i.url_callback, i.url_return, i.url_success, i.additional_data, i.payer_email, i.theme,
    i.is_payment_multiple, i.created_at, i.updated_at, i.expires_at, i.rate_expires_at, i.extended_generation,
    i.requote_after, i.is_credit_due, i.revision, i.is_growth_due, i.receipt_at, i.request_id, i.link_id,
    c.height AS scanned_height, CASE WHEN i.status = 'check' THEN COALESCE((SELECT sum(s.units) FROM sightings s
    WHERE s.owner_id = i.id AND s.seen_at <= i.expires_at AND s.gone_at IS NULL AND s.seen_at > app_now() -
    make_interval(secs => 86400) AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.network = s.network AND d.txid
    = s.txid AND d.ordinal = s.ordinal AND d.status <> 'reversed') AND s.stray_reason IS NULL AND s.replaced_by
    IS NULL), 0) ELSE 0 END AS waiting_units, CASE WHEN i.status = 'check' THEN (SELECT s.txid FROM sightings s
    WHERE s.owner_id = i.id AND s.seen_at <= i.expires_at AND s.gone_at IS NULL AND s.seen_at > app_now() -
    make_interval(secs => 86400) AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.network = s.network AND d.txid
    = s.txid AND d.ordinal = s.ordinal AND d.status <> 'reversed') AND s.stray_reason IS NULL AND s.replaced_by
    IS NULL ORDER BY s.seen_at DESC, s.txid LIMIT 1) END AS waiting_txid FROM invoices i LEFT JOIN chain_cursors
    c ON c.network = i.network
"""
DUE: Final = """
    SELECT i.id FROM invoices i JOIN chain_cursors c ON c.network = i.network WHERE i.status = 'check' AND
    i.detected_units * 10 < i.payer_units AND i.rate_expires_at < i.expires_at AND COALESCE(i.requote_after,
    i.rate_expires_at) <= app_now() AND c.block_time > i.rate_expires_at AND i.payer_units > 10 *
    (i.detected_units + (SELECT COALESCE(sum(s.units), 0) FROM sightings s WHERE s.owner_id = i.id AND s.seen_at
    <= i.expires_at AND s.gone_at IS NULL AND s.seen_at > app_now() - make_interval(secs => 86400) AND NOT
    EXISTS (SELECT 1 FROM deposits d WHERE d.network = s.network AND d.txid = s.txid AND d.ordinal = s.ordinal
    AND d.status <> 'reversed') AND s.stray_reason IS NULL AND s.is_soon AND (s.lost_height IS NULL OR
    s.replaced_by IS NULL) AND s.soon_at <= i.rate_expires_at)) ORDER BY COALESCE(i.requote_after,
    i.rate_expires_at) LIMIT %s
"""
STILL_DUE: Final = """
    SELECT 1 FROM invoices i WHERE i.id = %s AND i.status = 'check' AND COALESCE(i.requote_after,
    i.rate_expires_at) <= app_now() AND i.rate_expires_at < i.expires_at AND i.payer_units > %s * ((SELECT
    COALESCE(sum(d.amount_units), 0) FROM deposits d WHERE d.owner_id = i.id AND d.status <> 'reversed' AND
    d.stray_reason IS NULL AND d.seen_at <= i.expires_at) + (SELECT COALESCE(sum(s.units), 0) FROM sightings s
    WHERE s.owner_id = i.id AND s.seen_at <= i.expires_at AND s.gone_at IS NULL AND s.seen_at > app_now() -
    make_interval(secs => 86400) AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.network = s.network AND d.txid
    = s.txid AND d.ordinal = s.ordinal AND d.status <> 'reversed') AND s.stray_reason IS NULL AND s.is_soon AND
    (s.lost_height IS NULL OR s.replaced_by IS NULL) AND s.soon_at <= i.rate_expires_at))
"""
EXTEND: Final = """
    UPDATE invoices SET updated_at = date_trunc('milliseconds', app_now()), requote_after = NULL,
    rate_expires_at = LEAST(expires_at, date_trunc('second', app_now()) + make_interval(secs => %s)) WHERE id =
    %s
"""
PUT: Final = """
    UPDATE invoices SET generation = %s, payer_units = %s, fee_fixed_units = %s WHERE id = %s
"""
RECORD: Final = """
    INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)
    SELECT id, generation, payer_units, fee_fixed_units, app_now(), rate_expires_at FROM invoices WHERE id = %s
"""
ENDED: Final = """
    SELECT due.id FROM (SELECT network, block_time FROM chain_cursors UNION ALL SELECT '', app_now() + interval
    '1 microsecond') c CROSS JOIN LATERAL (SELECT i.id, i.expires_at FROM invoices i WHERE i.status IN
    ('select', 'check') AND COALESCE(i.network, '') = c.network AND i.expires_at < c.block_time AND i.expires_at
    <= app_now() AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.owner_id = i.id AND d.status = 'pending' AND
    d.stray_reason IS DISTINCT FROM 'dust' AND d.seen_at <= i.expires_at) AND NOT (i.status = 'check' AND EXISTS
    (SELECT 1 FROM sightings s WHERE s.stray_reason IS DISTINCT FROM 'dust' AND s.owner_id = i.id AND s.seen_at
    <= i.expires_at AND s.gone_at IS NULL AND s.seen_at > app_now() - make_interval(secs => 86400) AND NOT
    EXISTS (SELECT 1 FROM deposits d WHERE d.network = s.network AND d.txid = s.txid AND d.ordinal = s.ordinal
    AND d.status <> 'reversed'))) ORDER BY i.expires_at LIMIT %s ) due ORDER BY due.expires_at LIMIT %s
"""
DEPOSITS: Final = """
    SELECT d.id, d.network, d.txid, d.ordinal, d.currency, d.amount_units, d.address, d.sender, d.owner_kind,
    d.owner_id, d.merchant_id, d.status, d.stray_reason, d.block_height, d.block_hash, d.block_time, d.seen_at,
    d.detected_at, d.confirmed_at, d.round, d.net_units, d.fee_units, d.fee_fixed_units, d.rounding_units,
    d.is_announced, d.refund_id, d.refund_units, d.sweep_id, d.depth_min, COALESCE(c.height - d.block_height +
    1, 0) AS depth, EXISTS (SELECT 1 FROM deposit_quorums q WHERE q.deposit_id = d.id AND q.round = d.round AND
    q.agreed_at IS NULL) AS awaits_quorum, (SELECT p.status FROM payouts p WHERE p.id = d.refund_id) AS
    refund_status FROM deposits d LEFT JOIN chain_cursors c ON c.network = d.network WHERE d.owner_id = %s AND
    d.status = 'pending' AND d.block_height <= c.height - GREATEST((%s::jsonb ->> d.network)::integer,
    d.depth_min) + 1 AND NOT EXISTS (SELECT 1 FROM deposit_quorums q WHERE q.deposit_id = d.id AND q.round =
    d.round AND q.agreed_at IS NULL) ORDER BY d.seen_at, d.id LIMIT %s
"""
QUOTES: Final = """
    SELECT quotes.invoice_id, quotes.generation, quotes.payer_units, quotes.fee_fixed_units, quotes.valid_from,
    quotes.rate_expires_at FROM quotes WHERE invoice_id = %s ORDER BY generation
"""
TALLIES: Final = """
    SELECT d.stray_reason, d.status, d.refund_id IS NOT NULL AS has_refund, COALESCE(p.status = 'confirmed',
    false) AS is_refunded, d.seen_at <= %s AS is_in_time, width_bucket(d.seen_at, %s::timestamptz[]) AS
    moments_before, d.amount_units < %s AS is_small, count(*), sum(d.amount_units) AS units, max(d.block_height)
    AS height_max, d.depth_min, min(d.sender COLLATE "C") AS sender_first, max(d.sender COLLATE "C") AS
    sender_last FROM deposits d LEFT JOIN payouts p ON p.id = d.refund_id WHERE d.owner_id = %s GROUP BY 1, 2,
    3, 4, 5, 6, 7, d.depth_min
"""
PASSED: Final = """
    SELECT block_time > %s FROM chain_cursors WHERE network = %s
"""
SIGHTED: Final = """
    SELECT count(*) FROM sightings s JOIN invoices i ON i.id = s.owner_id WHERE i.id = %s AND s.stray_reason IS
    DISTINCT FROM 'dust' AND s.owner_id = i.id AND s.seen_at <= i.expires_at AND s.gone_at IS NULL AND s.seen_at
    > app_now() - make_interval(secs => 86400) AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.network =
    s.network AND d.txid = s.txid AND d.ordinal = s.ordinal AND d.status <> 'reversed')
"""
NEWEST: Final = """
    SELECT network, txid FROM deposits WHERE owner_id = %s AND stray_reason IS NULL AND status <> 'reversed' AND
    amount_units >= %s ORDER BY seen_at DESC, id DESC LIMIT 1
"""
WRITE: Final = """
    UPDATE invoices SET (status, is_final, generation, payer_units, fee_fixed_units, confirmed_units,
    detected_units, deposit_height, deposit_depth_min, txid, payer_address) = (%s, %s, %s, %s, %s, %s, %s, %s,
    %s, %s, %s), decided_at = CASE WHEN %s THEN COALESCE(decided_at, app_now()) END, accepted_units = CASE WHEN
    %s THEN accepted_units END, updated_at = date_trunc('milliseconds', app_now()) WHERE id = %s AND (status,
    is_final, generation, payer_units, fee_fixed_units, confirmed_units, detected_units, deposit_height,
    deposit_depth_min, txid, payer_address) IS DISTINCT FROM (%s, %s, %s, %s, %s, %s, %s, %s::bigint,
    %s::integer, %s, %s)
"""
RAISE: Final = """
    UPDATE invoices SET revision = COALESCE(revision, 0) + 1, is_growth_due = NULL, updated_at =
    date_trunc('milliseconds', app_now()) WHERE id = %s
"""
NOTE: Final = """
    INSERT INTO invoice_events (invoice_id, id, event, detail) VALUES (%s, %s, %s, %s)
"""
EMIT: Final = """
    INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, url, body, request_id) SELECT w.id,
    merchant_id, w.event, w.object_id, NULLIF(w.url, ''), w.body, w.request_id FROM unnest(%s::uuid[],
    %s::uuid[], %s::text[], %s::uuid[], %s::text[], %s::text[], %s::text[]) AS w (id, merchant_id, event,
    object_id, url, body, request_id) JOIN webhook_endpoints e USING (merchant_id) WHERE e.replaced_at IS NULL
"""

LOCK: Final = f"{ROW} WHERE i.id = %s FOR UPDATE OF i"
LOCK_OPEN: Final = f"{ROW} WHERE i.id = %s AND i.status IN ('select', 'check') FOR UPDATE OF i SKIP LOCKED"
REREAD: Final = f"{ROW} WHERE i.id = %s"


class Eager:
    """A session on the copies."""

    def __init__(self, url: str, count: int) -> None:
        self.session = psycopg2.connect(url)
        self.cursor = self.session.cursor()
        self.cursor.execute(SCHEMA)
        self.cursor.execute(COPY, (count,))
        self.count = self._one("SELECT count(*) FROM eager.invoices")[0]
        self.session.commit()

    def make_due(self, statement: str) -> None:
        """Let the rates or the time of all run out; not part of what is measured."""
        self.cursor.execute(statement)
        self.session.commit()

    def quote(self) -> None:
        """Quote all of them again, by pages."""
        while due := self._column(DUE, (PAGE,)):
            for invoice_id in due:
                self._quote(invoice_id)

    def end(self) -> None:
        """End all, by pages."""
        while due := self._column(ENDED, (PAGE, PAGE)):
            for invoice_id in due:
                self._end(invoice_id)

    def close(self) -> None:
        self.session.close()

    def _quote(self, invoice_id: UUID) -> None:
        row = self._row(LOCK, (invoice_id,))
        self._one(STILL_DUE, (invoice_id, HOLDING_PART))
        self.cursor.execute(EXTEND, (QUOTE_S, invoice_id))
        self.cursor.execute(PUT, (row["generation"] + 1, row["payer_units"], row["fee_fixed_units"], invoice_id))
        self.cursor.execute(RECORD, (invoice_id,))
        self.session.commit()

    def _end(self, invoice_id: UUID) -> None:
        row = self._row(LOCK_OPEN, (invoice_id,))
        self._column(DEPOSITS, (invoice_id, DEPTHS, DEPOSITS_PER_PAGE + 1))
        self.cursor.execute(QUOTES, (invoice_id,))
        moments = [quote[4] for quote in self.cursor.fetchall()[1:]]
        self._column(TALLIES, (row["expires_at"], moments, SMALLEST, invoice_id))
        self._one(PASSED, (row["expires_at"], row["network"]))
        self._one(SIGHTED, (invoice_id,))
        self._column(NEWEST, (invoice_id, SMALLEST))
        after = ("expired", True, row["generation"], row["payer_units"], row["fee_fixed_units"], 0, 0, None, None)
        self.cursor.execute(WRITE, (*after, "", "", False, False, invoice_id, *after, "", ""))
        self.cursor.execute(RAISE, (invoice_id,))
        self._tell(self._row(REREAD, (invoice_id,)))
        self.session.commit()

    def _tell(self, row: dict[str, Any]) -> None:
        shown = {
            name: str(row[name]) for name in ("order_id", "pay_currency", "payer_units", "price_units", "revision")
        }
        ended = {"type": "payment", "uuid": str(row["id"]), "status": "expired", "is_final": True, "txid": "", **shown}
        event = psycopg2.extras.Json({"status": "expired", "reason": "unpaid", **shown})
        self.cursor.execute(NOTE, (row["id"], uuid7(), "expired", event))
        listed = [uuid7()], [row["merchant_id"]], ["invoice.expired"], [row["id"]], [None], [json.dumps(ended)], [""]
        self.cursor.execute(EMIT, listed)

    def _row(self, sql: str, params: tuple[Any, ...]) -> dict[str, Any]:
        self.cursor.execute(sql, params)
        names = [column.name for column in self.cursor.description]
        return dict(zip(names, self.cursor.fetchone(), strict=True))

    def _one(self, sql: str, params: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        self.cursor.execute(sql, params)
        return self.cursor.fetchone()

    def _column(self, sql: str, params: tuple[Any, ...]) -> list[Any]:
        self.cursor.execute(sql, params)
        return [row[0] for row in self.cursor.fetchall()]
