-- A gateway that has run for half a year: %(rows)s invoices, as many deposits and payouts, five times as many rows of the
-- ledger. Half of everything is one merchant's. Run by bench.scale, with triggers and foreign keys off: the books are right
-- by construction, which its audit checks.

SET LOCAL session_replication_role = replica;

CREATE FUNCTION pg_temp.at(n bigint) RETURNS timestamptz LANGUAGE sql STABLE AS
    $$ SELECT date_trunc('milliseconds', now()) - (%(rows)s - n) * (interval '180 days' / %(rows)s) $$;
-- A UUIDv7 of that moment; kind tells the tables apart.
CREATE FUNCTION pg_temp.id(kind int, n bigint) RETURNS uuid LANGUAGE sql STABLE AS
    $$ SELECT (lpad(to_hex((extract(epoch FROM pg_temp.at(n)) * 1000)::bigint), 12, '0') || '7' || to_hex(kind) || '008'
        || lpad(to_hex(n), 15, '0'))::uuid $$;
CREATE FUNCTION pg_temp.address(n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT '0x' || left(md5(n::text) || md5('a' || n), 40) $$;
-- Which merchant the n-th of everything belongs to: the first has half.
CREATE FUNCTION pg_temp.shop(n bigint) RETURNS int LANGUAGE sql IMMUTABLE AS
    $$ SELECT CASE WHEN n %% 2 = 0 THEN 1 ELSE 2 + (n / 2 %% (%(shops)s - 1))::int END $$;

INSERT INTO owners (id, name) VALUES ('00000000-0000-7000-8000-000000000000', 'bench');
INSERT INTO merchants (id, owner_id, name)
    SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(s), 12, '0'))::uuid, '00000000-0000-7000-8000-000000000000', 'shop'
    FROM generate_series(1, %(shops)s) AS s;
INSERT INTO webhook_endpoints (id, merchant_id, url, secret_box) SELECT id, id, 'https://shop.test/', '' FROM merchants;
INSERT INTO accounts (holder, kind, currency, network)
    SELECT id, kind, 'USDT', '' FROM merchants,
        unnest(ARRAY['suspense', 'maturing', 'available', 'payout_held', 'hold']) AS kind
    UNION ALL SELECT '00000000-0000-0000-0000-000000000000', kind, 'USDT', network
        FROM (VALUES ('custody', 'ethereum'), ('fees', '')) AS own (kind, network);
CREATE TEMP TABLE shops ON COMMIT DROP AS
    SELECT ('x' || right(m.id::text, 8))::bit(32)::int AS number, m.id AS merchant_id,
        max(a.id) FILTER (WHERE a.kind = 'suspense') AS suspense, max(a.id) FILTER (WHERE a.kind = 'maturing') AS maturing,
        max(a.id) FILTER (WHERE a.kind = 'available') AS available, max(a.id) FILTER (WHERE a.kind = 'payout_held') AS held,
        max(a.id) FILTER (WHERE a.kind = 'hold') AS hold
    FROM merchants m JOIN accounts a ON a.holder = m.id GROUP BY m.id;
CREATE TEMP TABLE own ON COMMIT DROP AS
    SELECT max(id) FILTER (WHERE kind = 'custody') AS custody, max(id) FILTER (WHERE kind = 'fees') AS fees FROM accounts;

INSERT INTO chain_cursors (network, height, hash, block_time, head_height, final_height, started_height)
    VALUES ('ethereum', %(rows)s + 10, '0x0', now(), %(rows)s + 10, %(rows)s - 60, 1);
INSERT INTO chain_blocks (network, height, hash, parent_hash, block_time)
    SELECT 'ethereum', %(rows)s + 10 - n, '0x' || n, '0x' || n + 1, now() FROM generate_series(0, 511) AS n;
INSERT INTO ledger_scales (currency, scale) VALUES ('USDT', 18), ('ETH', 18);
INSERT INTO treasury_addresses (network, role, address) VALUES ('ethereum', 'hot', '0xhot');

-- The newest are open: chosen or not, waited for, expired and not settled, wrong_amount. Every 50th expired unpaid, while
-- its deposit came to a wallet.
CREATE TEMP TABLE sales ON COMMIT DROP AS
    SELECT n, %(rows)s - n AS age, pg_temp.at(n) AS at, pg_temp.id(1, n) AS invoice_id, pg_temp.id(2, n) AS deposit_id,
        CASE WHEN n %% 4 = 0 AND n %% 10 <> 0 THEN merchant_id END AS link_id,
        pg_temp.address(n) AS address, merchant_id, suspense, maturing, available, held, hold,
        n %% 5 = 4 AND %(rows)s - n >= 3300 AS is_shared,
        CASE WHEN %(rows)s - n < 500 THEN 'select' WHEN %(rows)s - n < 2300 THEN 'check'
            WHEN %(rows)s - n < 3300 THEN 'wrong_amount' WHEN n %% 50 = 7 THEN 'expired' ELSE 'paid' END AS status
    FROM generate_series(1, %(rows)s) AS n JOIN shops ON number = pg_temp.shop(n);
-- A fifth of all is sold by a link of its merchant, which has the merchant's id.
INSERT INTO payment_links (id, merchant_id, amount_mode, currency, created_by)
    SELECT id, id, 'open', 'USD', 'pk' FROM merchants;
INSERT INTO pool_addresses (family, ordinal, address) SELECT 'evm', n, address FROM sales;
INSERT INTO pool_addresses (family, ordinal, address)
    SELECT 'evm', %(rows)s + w, pg_temp.address(%(rows)s + w) FROM generate_series(1, 1000) AS w;
INSERT INTO address_owners (family, ordinal, owner_kind, owner_id)
    SELECT 'evm', n, 'invoice', invoice_id FROM sales WHERE status <> 'select';
INSERT INTO address_owners (family, ordinal, owner_kind, owner_id)
    SELECT 'evm', %(rows)s + w, 'wallet', pg_temp.id(3, w) FROM generate_series(1, 1000) AS w;
SELECT setval('address_claims_evm', %(rows)s + 1001);
INSERT INTO wallets (id, merchant_id, currency, network, order_id, address_ordinal, address, fee_ppm)
    SELECT pg_temp.id(3, w), merchant_id, 'USDT', 'ethereum', w::text, %(rows)s + w, pg_temp.address(%(rows)s + w), 15000
    FROM generate_series(1, 1000) AS w JOIN shops ON number = 1;
INSERT INTO balance_probes (network, address, owner_kind) SELECT network, address, 'wallet' FROM wallets;
INSERT INTO invoices (id, merchant_id, order_id, status, is_final, is_multi, price_currency, price_units, pay_currency,
        network, payer_units, address_ordinal, address, fee_ppm, fee_fixed_usd_cents, fee_fixed_units, confirmed_units,
        detected_units, created_at, updated_at, expires_at, rate_expires_at, link_id)
    SELECT invoice_id, merchant_id, CASE WHEN link_id IS NULL THEN 'order-' || n END, status,
        status IN ('paid', 'expired'), false,
        CASE n %% 10 WHEN 0 THEN 'EUR' WHEN 1 THEN 'CHF' ELSE 'USD' END, 1000, CASE WHEN status <> 'select' THEN 'USDT' END,
        CASE WHEN status <> 'select' THEN 'ethereum' END, CASE WHEN status <> 'select' THEN 1000 END,
        CASE WHEN status <> 'select' THEN n END, CASE WHEN status <> 'select' THEN address ELSE '' END, 15000, 0, 0,
        CASE status WHEN 'paid' THEN 1000 WHEN 'wrong_amount' THEN 900 ELSE 0 END,
        CASE WHEN status = 'paid' OR age BETWEEN 1000 AND 1999 THEN 1000 WHEN status = 'wrong_amount' THEN 900 ELSE 0 END,
        at, at, CASE WHEN age < 2000 THEN now() + interval '1 hour' ELSE at + interval '30 minutes' END,
        CASE WHEN age < 2000 THEN now() + interval '1 hour' ELSE at + interval '30 minutes' END, link_id
    FROM sales;
INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)
    SELECT invoice_id, 0, 1000, 0, at, at FROM sales WHERE status <> 'select';
INSERT INTO invoice_events (invoice_id, id, at, event, detail)
    SELECT invoice_id, pg_temp.id(11, n), at, 'expired', '{"status":"expired","reason":"unpaid"}'
    FROM sales WHERE status IN ('expired', 'wrong_amount');
INSERT INTO deposits (id, network, txid, ordinal, currency, amount_units, address, owner_kind, owner_id, merchant_id,
        status, block_height, block_hash, block_time, seen_at, detected_at, confirmed_at, net_units, fee_units, sweep_id)
    SELECT deposit_id, 'ethereum', sales.address, 'native', 'USDT', CASE status WHEN 'wrong_amount' THEN 900 ELSE 1000 END,
        CASE status WHEN 'expired' THEN w.address ELSE sales.address END,
        CASE status WHEN 'expired' THEN 'wallet' ELSE 'invoice' END,
        CASE status WHEN 'expired' THEN w.id ELSE invoice_id END,
        CASE status WHEN 'expired' THEN w.merchant_id ELSE sales.merchant_id END,
        CASE status WHEN 'check' THEN 'pending' WHEN 'wrong_amount' THEN 'confirmed' ELSE 'credited' END,
        n, '0x', at, at, at, at, CASE WHEN status IN ('paid', 'expired') THEN 985 ELSE 0 END,
        CASE WHEN status IN ('paid', 'expired') THEN 15 ELSE 0 END, CASE WHEN age > 8000 THEN pg_temp.id(5, n / 100 * 100) END
    FROM sales LEFT JOIN wallets w ON status = 'expired' AND w.order_id = (n / 50 %% 1000 + 1)::text
    WHERE status IN ('paid', 'wrong_amount', 'expired') OR age BETWEEN 1000 AND 1999;
INSERT INTO maturing_credits (deposit_id, round, merchant_id, network, block_height, currency, units)
    SELECT deposit_id, 0, merchant_id, 'ethereum', n, 'USDT', CASE WHEN is_shared THEN 885 ELSE 985 END
    FROM sales WHERE status = 'paid' AND age < 5000;
INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units, booked_at)
    SELECT 'deposit:' || deposit_id || ':0:' || what, leg, debit, credit, 'USDT', units, at
    FROM sales LEFT JOIN shops w ON w.number = 1 CROSS JOIN own, LATERAL (VALUES
        ('confirm', 0, custody, CASE status WHEN 'expired' THEN w.suspense ELSE sales.suspense END,
            CASE status WHEN 'wrong_amount' THEN 900 ELSE 1000 END),
        ('credit', 0, CASE status WHEN 'expired' THEN w.suspense ELSE sales.suspense END,
            CASE WHEN status = 'expired' THEN w.available WHEN age < 5000 THEN sales.maturing ELSE sales.available END,
            CASE WHEN is_shared THEN 885 ELSE 985 END),
        ('credit', 2, sales.suspense, sales.hold, CASE WHEN is_shared THEN 100 END),
        ('credit', 1, CASE status WHEN 'expired' THEN w.suspense ELSE sales.suspense END, fees, 15))
        AS legs (what, leg, debit, credit, units)
    WHERE units IS NOT NULL AND (status IN ('paid', 'expired') OR (status = 'wrong_amount' AND what = 'confirm'));

-- One sale in five is shared with another merchant. The newest shares wait for maturity, or for their hold.
INSERT INTO split_rules (id, merchant_id, recipient_id, percent_ppm)
    SELECT gen_random_uuid(), p.merchant_id, r.merchant_id, 1000 FROM shops p, shops r WHERE p.number = 1 AND r.number BETWEEN 2 AND 101;
INSERT INTO split_shares (id, deposit_id, round, rule_id, merchant_id, recipient_id, currency, percent_ppm, units, left_units,
        released_units, release_at, created_at, is_mature)
    SELECT pg_temp.id(12, n), deposit_id, 0, gen_random_uuid(), s.merchant_id, r.merchant_id, 'USDT', 110000, 100,
        CASE WHEN age < 6000 THEN 100 ELSE 0 END, CASE WHEN age < 6000 THEN 0 ELSE 100 END,
        CASE WHEN age < 5000 THEN at ELSE at + interval '400 days' END, at, age >= 5000
    FROM sales s JOIN shops r ON r.number = 2 - n %% 2 WHERE is_shared;
INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)
    SELECT 'split:' || s.id || ':0:release', 0, p.hold, r.available, 'USDT', 100
    FROM split_shares s JOIN shops p ON p.merchant_id = s.merchant_id JOIN shops r ON r.merchant_id = s.recipient_id
    WHERE released_units > 0;
INSERT INTO split_earnings (recipient_id, currency, units)
    SELECT recipient_id, 'USDT', sum(released_units) FROM split_shares WHERE released_units > 0 GROUP BY recipient_id;

-- Payouts: the newest wait for a decision, for the signer, for the chain; one in a hundred failed.
CREATE TEMP TABLE orders ON COMMIT DROP AS
    SELECT n, at, merchant_id, held, available, pg_temp.id(4, n) AS payout_id, pg_temp.id(5, n) AS spend_id,
        CASE WHEN age < 500 THEN 'pending' WHEN age < 1500 THEN 'approved' WHEN age < 2500 THEN 'sent'
            WHEN n %% 100 = 9 THEN 'failed' ELSE 'confirmed' END AS status
    FROM sales;
INSERT INTO payouts (id, merchant_id, order_id, kind, hold_reference, currency, network, address, amount_units, fee_units,
        to_units, held_units, is_fee_on_top, status, created_by, txid, block_height, due_at, created_at, updated_at)
    SELECT payout_id, merchant_id, 'payout-' || n, 'payout', 'payout:' || payout_id || ':hold', 'USDT', 'ethereum',
        pg_temp.address(-n), 500, 0, 500, 500, true, status, 'pk_bench',
        CASE WHEN status IN ('confirmed', 'sent') THEN '0x' || n ELSE '' END, CASE status WHEN 'confirmed' THEN n END, at, at, at
    FROM orders;
INSERT INTO spends (id, network, purpose, sender, currency, contract, decimals, token_units, slot, state, attempts,
        mined_txid, mined_height, mined_hash, is_success, effect, check_at, created_at, settled_at)
    SELECT spend_id, 'ethereum', 'payout', '0xhot', 'USDT', '0xusdt', l.scale, 500, n,
        CASE status WHEN 'sent' THEN 'sent' ELSE 'confirmed' END, 1, CASE status WHEN 'confirmed' THEN '0x' || n END,
        CASE status WHEN 'confirmed' THEN n END, CASE status WHEN 'confirmed' THEN '0x' END,
        CASE status WHEN 'confirmed' THEN true END, CASE status WHEN 'confirmed' THEN 'exact' END, at, at,
        CASE status WHEN 'confirmed' THEN at END
    FROM orders JOIN ledger_scales l ON l.currency = 'USDT' WHERE status IN ('confirmed', 'sent');
INSERT INTO spend_outputs (spend_id, place, payout_id, recipient, token_units, state, effect)
    SELECT s.id, 0, payout_id, pg_temp.address(-n), s.token_units, CASE s.state WHEN 'sent' THEN 'open' ELSE s.state END,
        s.effect
    FROM spends s JOIN orders ON spend_id = s.id;
INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)
    SELECT id, network, sender, currency, decimals, -token_units, mined_height FROM spends WHERE mined_height IS NOT NULL;
INSERT INTO spend_attempts (spend_id, number, network, txid, raw, ceiling_units, terms, created_at, sent_at)
    SELECT spend_id, 0, 'ethereum', '0x' || n, '\x00', 65000,
        '{"gas_limit": 65000, "price_units": 1, "tip_units": 1, "data_units": 0}', at, at
    FROM orders WHERE status IN ('confirmed', 'sent');
INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units, booked_at)
    SELECT 'payout:' || payout_id || ':' || what, 0, debit, credit, 'USDT', 500, at
    FROM orders, own, LATERAL (VALUES ('hold', available, held),
        ('leave', held, custody), ('return', held, available)) AS legs (what, debit, credit)
    WHERE what = 'hold' OR (what = 'leave' AND status = 'confirmed') OR (what = 'return' AND status = 'failed');

-- Cheques, of which one in twenty waits; what was told to shops; calls of the last days; e-mails; batches; verdicts.
INSERT INTO payout_links (id, merchant_id, status, currency, network, amount_units, fee_units, token_hash, created_by,
        expires_at, created_at, updated_at)
    SELECT pg_temp.id(6, n), merchant_id, CASE n %% 20 WHEN 0 THEN 'funded' ELSE 'expired' END, 'USDT', 'ethereum', 10, 0,
        sha256(n::text::bytea), 'pk_bench', at + CASE n %% 20 WHEN 0 THEN interval '400 days' ELSE interval '1 day' END, at, at
    FROM sales WHERE n > %(rows)s - 20000;
INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)
    SELECT 'payout_link:' || l.id || ':' || what, 0, debit, credit, 'USDT', 10
    FROM payout_links l JOIN shops s USING (merchant_id),
        LATERAL (VALUES ('hold', available, held), ('return', held, available)) AS legs (what, debit, credit)
    WHERE what = 'hold' OR l.status = 'expired';
INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, body, status, attempts, next_attempt_at, created_at,
        delivered_at, sent_to)
    SELECT pg_temp.id(7, n), merchant_id, CASE status WHEN 'expired' THEN 'invoice.expired' ELSE 'invoice.paid' END, invoice_id,
        CASE WHEN at > now() - interval '31 days' THEN '{"type":"payment"}' ELSE '' END,
        CASE WHEN age < 1000 THEN 'pending' WHEN n %% 1000 = 3 THEN 'dead' ELSE 'delivered' END, 1,
        CASE WHEN age < 1000 THEN at END, at, CASE WHEN age >= 1000 THEN at END, merchant_id
    FROM sales;
INSERT INTO calls (call_id, merchant_id, idem_key, fingerprint, state, response, created_at)
    SELECT pg_temp.id(8, n), merchant_id, 'key-' || n, '\x00', 'done', '{}', at FROM sales WHERE at > now() - interval '10 days';
INSERT INTO emails (id, merchant_id, object_id, kind, recipient, subject, body_box, status, created_at)
    SELECT pg_temp.id(9, n), merchant_id, invoice_id, 'cheque', 'a@shop.test', 's', '',
        CASE WHEN age < 500 THEN 'pending' ELSE 'sent' END, at FROM sales WHERE n %% 10 = 0 OR age < 500;
INSERT INTO batches (id, merchant_id, kind, on_error, status, count, created_by, created_at, completed_at, succeeded, failed)
    SELECT pg_temp.id(10, n), merchant_id, 'payment', 'continue', CASE WHEN age < 2000 THEN 'processing' ELSE 'completed' END,
        100, 'pk_bench', at, CASE WHEN age >= 2000 THEN at END, CASE WHEN age >= 2000 THEN 100 END,
        CASE WHEN age >= 2000 THEN 0 END FROM sales WHERE n %% 1000 = 0;
INSERT INTO batch_items (batch_id, position, order_id, body, status, result)
    SELECT id, place, place::text, '{}', CASE status WHEN 'completed' THEN 'success' ELSE 'pending' END,
        CASE status WHEN 'completed' THEN '{}' END
    FROM batches, generate_series(0, 99) AS place;
INSERT INTO sanction_verdicts (network, address, is_sanctioned, checked_at)
    SELECT 'ethereum', address, false, at FROM sales WHERE n %% 20 = 0;

-- Every merchant there is wants what it has sent by itself, and a million more of which there is nothing else.
INSERT INTO withdrawal_rules (merchant_id, currency, network, address, threshold_units, is_enabled, set_by)
    SELECT id, 'USDT', 'ethereum', pg_temp.address(1), 1e30::numeric, true, 'pk_bench' FROM merchants
    UNION ALL SELECT pg_temp.id(15, n), 'USDT', 'ethereum', pg_temp.address(1), 1e30::numeric, true, 'pk_bench'
        FROM generate_series(1, %(rows)s) AS n;

INSERT INTO balances (account_id, units)
    SELECT a.id, COALESCE(sum(s.units), 0) FROM accounts a
    LEFT JOIN (SELECT credit_account AS id, sum(units) AS units FROM ledger_transfers GROUP BY 1
        UNION ALL SELECT debit_account, -sum(units) FROM ledger_transfers GROUP BY 1) s ON s.id = a.id
    WHERE a.kind IN ('maturing', 'available', 'payout_held', 'hold') GROUP BY a.id;
