-- The product's tables that creating an invoice touches, and the statement that does it, as they were when the
-- benchmarks were made. Frozen: the product's schema goes on, this copy stays.

-- Money: whole base units in the ledger's scale. A bare CHECK (x >= 0) lets NaN in, and numeric(78, 0) would round
-- 1.5 to 2 without a word, so the domain refuses both.
CREATE DOMAIN units AS numeric CHECK (VALUE >= 0 AND VALUE <> 'NaN' AND scale(VALUE) = 0 AND VALUE < 1e78);

-- One clock. Development may move it; every lease, expiry and schedule compares with app_now() in SQL.
CREATE TABLE app_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    ahead interval NOT NULL DEFAULT '0'
);
INSERT INTO app_clock DEFAULT VALUES;

-- STABLE although it reads clock_timestamp(): one value a statement, and due-row indexes stay usable.
CREATE FUNCTION app_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT clock_timestamp() + (SELECT ahead FROM app_clock) $$;

CREATE TABLE owners (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now()
);

CREATE TABLE merchants (
    id uuid PRIMARY KEY,
    owner_id uuid NOT NULL REFERENCES owners,
    name text NOT NULL,
    -- Counts every change of the terms below: a process may use cached terms only while this still matches.
    terms_version integer NOT NULL DEFAULT 1,
    fee_ppm integer NOT NULL DEFAULT 15000 CHECK (fee_ppm BETWEEN 0 AND 1000000),
    fee_fixed_usd_cents integer NOT NULL DEFAULT 30 CHECK (fee_fixed_usd_cents >= 0),
    accuracy_ppm integer CHECK (accuracy_ppm BETWEEN 0 AND 50000),
    created_at timestamptz NOT NULL DEFAULT app_now()
);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    public_id text NOT NULL UNIQUE,
    merchant_id uuid NOT NULL REFERENCES merchants,
    kind text NOT NULL CHECK (kind IN ('unified', 'payment', 'payout')),
    label text NOT NULL DEFAULT '',
    secret_box text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    revoked_at timestamptz
);
CREATE INDEX api_keys_by_merchant ON api_keys (merchant_id);

CREATE TABLE pool_addresses (
    family text NOT NULL,
    ordinal bigint NOT NULL,
    address text NOT NULL,
    PRIMARY KEY (family, ordinal),
    UNIQUE (family, address)
);

-- An address belongs to one owner for ever.
CREATE TABLE address_owners (
    family text NOT NULL,
    ordinal bigint NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind IN ('invoice', 'wallet')),
    owner_id uuid NOT NULL,
    assigned_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (family, ordinal),
    FOREIGN KEY (family, ordinal) REFERENCES pool_addresses
);

CREATE SEQUENCE address_claims_evm MINVALUE 0 START 0;

CREATE TABLE invoices (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    order_id text,
    status text NOT NULL CHECK (status IN ('select', 'check', 'paid', 'paid_over', 'wrong_amount', 'expired')),
    is_final boolean NOT NULL DEFAULT false,
    is_multi boolean NOT NULL,
    price_currency text NOT NULL,
    price_units units NOT NULL,
    pay_currency text,
    network text,
    payer_units units,
    generation integer NOT NULL DEFAULT 0,
    address_ordinal bigint,
    address text NOT NULL DEFAULT '',
    required_confirmations integer NOT NULL DEFAULT 0,
    accuracy_ppm integer NOT NULL DEFAULT 0,
    discount_ppm integer NOT NULL DEFAULT 0,
    subtract_percent integer NOT NULL DEFAULT 0,
    fee_ppm integer NOT NULL,
    fee_fixed_usd_cents integer NOT NULL,
    fee_fixed_units units,
    -- Sums over the deposits of the right asset, kept by the one function that settles an invoice.
    confirmed_units units NOT NULL DEFAULT 0,
    detected_units units NOT NULL DEFAULT 0,
    -- Height of the youngest of them; with the network's cursor it gives the confirmations shown.
    deposit_height bigint,
    -- The part of the fixed fee that credits have paid already.
    fee_fixed_taken_units units NOT NULL DEFAULT 0,
    txid text NOT NULL DEFAULT '',
    payer_address text NOT NULL DEFAULT '',
    decided_at timestamptz,
    -- The sum that the merchant accepted in place of what was asked; NULL otherwise.
    accepted_units units,
    url_callback text,
    url_return text NOT NULL DEFAULT '',
    url_success text NOT NULL DEFAULT '',
    additional_data text NOT NULL DEFAULT '',
    payer_email text NOT NULL DEFAULT '',
    theme text NOT NULL DEFAULT 'light',
    is_payment_multiple boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    rate_expires_at timestamptz NOT NULL,
    CHECK ((status = 'select') <= (pay_currency IS NULL)),
    CHECK ((pay_currency IS NULL) = (network IS NULL)),
    CHECK ((pay_currency IS NULL) = (payer_units IS NULL))
);
CREATE INDEX invoices_by_merchant ON invoices (merchant_id, id DESC);
-- After the one above: where both would do as well, because there are no statistics yet, the planner takes the later.
CREATE INDEX invoices_by_order ON invoices (merchant_id, order_id, created_at DESC) WHERE order_id IS NOT NULL;
CREATE INDEX invoices_to_expire ON invoices (expires_at) WHERE status IN ('select', 'check');
CREATE INDEX invoices_to_requote ON invoices (rate_expires_at)
    WHERE status = 'check' AND detected_units = 0 AND rate_expires_at < expires_at;

-- What a payer owed, and when: a deposit is judged by the quote in force at its time.
CREATE TABLE quotes (
    invoice_id uuid NOT NULL REFERENCES invoices,
    generation integer NOT NULL,
    payer_units units NOT NULL,
    fee_fixed_units units NOT NULL,
    valid_from timestamptz NOT NULL,
    rate_expires_at timestamptz NOT NULL,
    PRIMARY KEY (invoice_id, generation)
);

CREATE TABLE calls (
    call_id uuid PRIMARY KEY,
    merchant_id uuid,
    -- NULL where the caller sent no Idempotency-Key.
    idem_key text,
    fingerprint bytea NOT NULL,
    -- abandoned is a tombstone: the caller was told gateway.busy, so this call must never take effect.
    state text NOT NULL CHECK (state IN ('done', 'abandoned')),
    -- The result as JSON, as it was answered.
    response text,
    created_at timestamptz NOT NULL DEFAULT app_now()
);
CREATE UNIQUE INDEX calls_by_key ON calls (merchant_id, idem_key) WHERE idem_key IS NOT NULL AND state = 'done';
CREATE INDEX calls_by_age ON calls (created_at);

-- The price of one unit of a currency (fiat or coin) in US dollars.
CREATE TABLE rates (
    currency text PRIMARY KEY,
    usd numeric(40, 18) NOT NULL CHECK (usd > 0 AND usd <> 'NaN'),
    source text NOT NULL,
    quoted_at timestamptz NOT NULL
);

-- The hot transaction: one statement creates an invoice, its call, quote and address ---------------------------------

CREATE FUNCTION iso_time(moment timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;

-- p_invoice holds columns of invoices. p_response is the answer's JSON object without its closing brace: the moments
-- in it are known here alone. outcome: created; existing (response: the live invoice's id); replayed (the stored
-- answer); in_progress, key_reused, abandoned, stale_terms: nothing was written.
CREATE FUNCTION create_invoice(
    p_call_id uuid, p_idem_key text, p_fingerprint bytea, p_terms_version integer,
    p_invoice jsonb, p_lifetime_s integer, p_quote_s integer, p_family text, p_response text
) RETURNS TABLE (outcome text, response text) LANGUAGE plpgsql AS $$
DECLARE
    invoice invoices := jsonb_populate_record(NULL::invoices, p_invoice);
    known record;
    whole_second timestamptz;
BEGIN
    IF p_idem_key IS NOT NULL THEN
        IF NOT pg_try_advisory_xact_lock(hashtextextended(invoice.merchant_id || p_idem_key, 1)) THEN
            RETURN QUERY SELECT 'in_progress', NULL::text;
            RETURN;
        END IF;
        SELECT c.response, c.fingerprint INTO known FROM calls c
            WHERE c.merchant_id = invoice.merchant_id AND c.idem_key = p_idem_key AND c.state = 'done';
        IF FOUND THEN
            RETURN QUERY SELECT CASE WHEN known.fingerprint = p_fingerprint THEN 'replayed' ELSE 'key_reused' END,
                known.response;
            RETURN;
        END IF;
    END IF;
    PERFORM 1 FROM merchants m WHERE m.id = invoice.merchant_id AND m.terms_version = p_terms_version;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'stale_terms', NULL::text;
        RETURN;
    END IF;
    IF invoice.order_id IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(invoice.merchant_id || invoice.order_id, 2));
    END IF;
    -- The call's own row first: a redelivered message finds its answer before it finds its own invoice.
    invoice.created_at := date_trunc('milliseconds', app_now());
    whole_second := date_trunc('second', invoice.created_at);
    invoice.updated_at := invoice.created_at;
    invoice.expires_at := whole_second + make_interval(secs => p_lifetime_s);
    invoice.rate_expires_at :=
        LEAST(invoice.expires_at, whole_second + make_interval(secs => COALESCE(p_quote_s, p_lifetime_s)));
    p_response := p_response
        || ',"expired_at":' || extract(epoch FROM invoice.expires_at)::bigint
        || ',"rate_expires_at":' || extract(epoch FROM invoice.rate_expires_at)::bigint
        || ',"created_at":"' || iso_time(invoice.created_at)
        || '","updated_at":"' || iso_time(invoice.updated_at) || '"}';
    INSERT INTO calls (call_id, merchant_id, idem_key, fingerprint, state, response)
        VALUES (p_call_id, invoice.merchant_id, p_idem_key, p_fingerprint, 'done', p_response)
        ON CONFLICT (call_id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN QUERY SELECT CASE c.state WHEN 'done' THEN 'replayed' ELSE 'abandoned' END, c.response
            FROM calls c WHERE c.call_id = p_call_id;
        RETURN;
    END IF;
    IF invoice.order_id IS NOT NULL THEN
        -- In an order that no index has: to spare the sort, a plan that a session made while the table was small, and
        -- keeps, would walk through all invoices of the merchant.
        SELECT i.id INTO known FROM invoices i
            WHERE i.merchant_id = invoice.merchant_id AND i.order_id = invoice.order_id
                AND (i.status IN ('select', 'check') OR (i.status = 'wrong_amount' AND NOT i.is_final))
            ORDER BY i.created_at + interval '0' DESC, i.id DESC LIMIT 1;
        IF FOUND THEN
            DELETE FROM calls c WHERE c.call_id = p_call_id;
            RETURN QUERY SELECT 'existing', known.id::text;
            RETURN;
        END IF;
    END IF;
    INSERT INTO invoices SELECT invoice.*;
    IF invoice.pay_currency IS NOT NULL THEN
        INSERT INTO address_owners (family, ordinal, owner_kind, owner_id, assigned_at)
            VALUES (p_family, invoice.address_ordinal, 'invoice', invoice.id, invoice.created_at);
        INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)
            VALUES (invoice.id, invoice.generation, invoice.payer_units, invoice.fee_fixed_units, invoice.created_at,
                invoice.rate_expires_at);
    END IF;
    RETURN QUERY SELECT 'created', p_response;
END $$;
