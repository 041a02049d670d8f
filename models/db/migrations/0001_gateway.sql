-- The gateway's ground floor: clock, identity, address pool, invoices, deposits, ledger, calls, outbox, rates.

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

-- The scale that stored units of a coin have; a catalogue that disagrees must not start.
CREATE TABLE ledger_scales (
    currency text PRIMARY KEY,
    scale smallint NOT NULL CHECK (scale BETWEEN 0 AND 18)
);

-- Identity ---------------------------------------------------------------------------------------------------

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

-- Address pool -----------------------------------------------------------------------------------------------
-- Filled by the signer alone, in signed chunks. Claimed by ordinal from a sequence: no scan, no dead entries.

CREATE TABLE address_chunks (
    family text NOT NULL,
    chunk bigint NOT NULL,
    signature bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    PRIMARY KEY (family, chunk)
);

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

-- Ordinals whose claim was rolled back or whose process died, to be handed out again.
CREATE TABLE address_returns (
    family text NOT NULL,
    ordinal bigint NOT NULL,
    PRIMARY KEY (family, ordinal)
);

-- How far each family's sequence had come at a moment, so that the reclaim job knows what is old.
CREATE TABLE address_marks (
    family text NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT app_now(),
    ordinal bigint NOT NULL,
    PRIMARY KEY (family, marked_at)
);

CREATE SEQUENCE address_claims_evm MINVALUE 0 START 0;

-- Invoices ---------------------------------------------------------------------------------------------------

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

-- Chains -----------------------------------------------------------------------------------------------------

CREATE TABLE chain_cursors (
    network text PRIMARY KEY,
    height bigint NOT NULL,
    hash text NOT NULL,
    block_time timestamptz NOT NULL,
    head_height bigint NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT app_now()
);

-- The last scanned blocks, for walking back after a reorg.
CREATE TABLE chain_blocks (
    network text NOT NULL,
    height bigint NOT NULL,
    hash text NOT NULL,
    parent_hash text NOT NULL,
    block_time timestamptz NOT NULL,
    PRIMARY KEY (network, height)
);

CREATE TABLE deposits (
    id uuid PRIMARY KEY,
    network text NOT NULL,
    txid text NOT NULL,
    -- EVM: 'native', or the ordinal of the log within its own receipt.
    ordinal text NOT NULL,
    currency text NOT NULL,
    -- In the ledger's scale of the currency.
    amount_units units NOT NULL,
    address text NOT NULL,
    sender text NOT NULL DEFAULT '',
    owner_kind text NOT NULL CHECK (owner_kind IN ('invoice', 'wallet')),
    owner_id uuid NOT NULL,
    merchant_id uuid NOT NULL REFERENCES merchants,
    -- pending: on chain, not deep enough; confirmed: in suspense; credited: given to the merchant; reversed: reorged away.
    status text NOT NULL CHECK (status IN ('pending', 'confirmed', 'credited', 'reversed')),
    -- Why it does not count towards its invoice, if so.
    stray_reason text CHECK (stray_reason IN ('asset', 'network', 'dust')),
    block_height bigint NOT NULL,
    block_hash text NOT NULL,
    block_time timestamptz NOT NULL,
    -- The deposit's time for quote and expiry: its block's, or the earlier one at which it was first seen.
    seen_at timestamptz NOT NULL,
    detected_at timestamptz NOT NULL DEFAULT app_now(),
    confirmed_at timestamptz,
    -- Counts its lives: one more each time a reorg took it and it came back. Names its ledger bookings.
    round integer NOT NULL DEFAULT 0,
    -- How its credit was divided; what a reversal takes back.
    net_units units NOT NULL DEFAULT 0,
    fee_units units NOT NULL DEFAULT 0,
    fee_fixed_units units NOT NULL DEFAULT 0,
    rounding_units units NOT NULL DEFAULT 0,
    UNIQUE (network, txid, ordinal)
);
CREATE INDEX deposits_by_owner ON deposits (owner_id);
CREATE INDEX deposits_pending ON deposits (network, block_height) WHERE status = 'pending';
CREATE INDEX deposits_by_block ON deposits (network, block_height);

-- Credits that wait for the network's maturity depth before they are available.
CREATE TABLE maturing_credits (
    deposit_id uuid NOT NULL REFERENCES deposits,
    round integer NOT NULL,
    merchant_id uuid NOT NULL REFERENCES merchants,
    network text NOT NULL,
    block_height bigint NOT NULL,
    currency text NOT NULL,
    units units NOT NULL,
    PRIMARY KEY (deposit_id, round)
);
CREATE INDEX maturing_credits_due ON maturing_credits (network, block_height);

-- Ledger -----------------------------------------------------------------------------------------------------
-- One row is one transfer, so an unbalanced entry cannot be written. Asset accounts (custody) are debited when they grow.

CREATE TABLE accounts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- A merchant's or owner's id, or the all-zero uuid for the gateway itself.
    holder uuid NOT NULL,
    kind text NOT NULL,
    currency text NOT NULL,
    -- Custody is kept per network; elsewhere ''.
    network text NOT NULL DEFAULT '',
    UNIQUE (holder, kind, currency, network)
);

-- Only for accounts that may not go below zero; every other sum is read from the transfers.
CREATE TABLE balances (
    account_id bigint PRIMARY KEY REFERENCES accounts,
    units units NOT NULL DEFAULT 0
);

CREATE TABLE ledger_transfers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What this books, e.g. 'deposit:<id>:1:credit'; with leg, unique: nothing is booked twice.
    reference text NOT NULL,
    leg smallint NOT NULL,
    debit_account bigint NOT NULL REFERENCES accounts,
    credit_account bigint NOT NULL REFERENCES accounts,
    currency text NOT NULL,
    units units NOT NULL CHECK (units > 0),
    booked_at timestamptz NOT NULL DEFAULT app_now(),
    UNIQUE (reference, leg),
    CHECK (debit_account <> credit_account)
);
CREATE INDEX ledger_transfers_debit ON ledger_transfers (debit_account);
CREATE INDEX ledger_transfers_credit ON ledger_transfers (credit_account);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER ledger_transfers_append_only BEFORE UPDATE OR DELETE ON ledger_transfers
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_transfers_no_truncate BEFORE TRUNCATE ON ledger_transfers
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Calls: a queue message that somebody waits for --------------------------------------------------------------

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

-- Outbox -----------------------------------------------------------------------------------------------------

CREATE TABLE webhook_endpoints (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    url text NOT NULL,
    secret_box text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    replaced_at timestamptz
);
CREATE UNIQUE INDEX webhook_endpoints_active ON webhook_endpoints (merchant_id) WHERE replaced_at IS NULL;

CREATE TABLE webhook_deliveries (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    event text NOT NULL,
    object_id uuid NOT NULL,
    -- The object's own url_callback; NULL means the merchant's current endpoint at the time of each attempt.
    url text,
    body text NOT NULL,
    request_id text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'retrying', 'delivered', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz DEFAULT app_now(),
    lease uuid,
    leased_until timestamptz,
    last_status_code integer,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT app_now(),
    delivered_at timestamptz
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at, merchant_id)
    WHERE status IN ('pending', 'retrying');
CREATE INDEX webhook_deliveries_kept ON webhook_deliveries (created_at)
    WHERE body <> '' AND status IN ('delivered', 'dead');
CREATE INDEX webhook_deliveries_by_object ON webhook_deliveries (object_id);
CREATE INDEX webhook_deliveries_by_merchant ON webhook_deliveries (merchant_id, created_at DESC, id DESC);

-- Quotes of the outside world, refreshed by ticks --------------------------------------------------------------

-- The price of one unit of a currency (fiat or coin) in US dollars.
CREATE TABLE rates (
    currency text PRIMARY KEY,
    usd numeric(40, 18) NOT NULL CHECK (usd > 0 AND usd <> 'NaN'),
    source text NOT NULL,
    quoted_at timestamptz NOT NULL
);

-- What one payout of a pair costs on chain now, in the ledger's units of that currency.
CREATE TABLE network_fees (
    network text NOT NULL,
    currency text NOT NULL,
    units units NOT NULL,
    quoted_at timestamptz NOT NULL,
    PRIMARY KEY (network, currency)
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
