-- Invoices, their quotes and events, and the statement that creates them.

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
    -- '': as the reader's device says.
    theme text NOT NULL DEFAULT '' CHECK (theme IN ('', 'dark', 'light')),
    is_payment_multiple boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    rate_expires_at timestamptz NOT NULL,
    -- The quote that was extended because its rate could not be renewed, which happens once.
    extended_generation integer,
    -- Before this moment no further quote begins: a payment held the last one until then.
    quoted_until timestamptz,
    -- A decided invoice credits its deposits in pages; this says that some are left. NULL: no.
    is_credit_due boolean,
    -- The link that an invoice was checked out by. Without a foreign key, which every invoice would pay for; the audit
    -- compares instead.
    link_id uuid,
    -- When the receipt was written. Not told from the e-mails, which are forgotten.
    receipt_at timestamptz,
    -- The X-Request-Id of the call that created it, which its events name.
    request_id text,
    -- The number of the payment's newest event, and whether money confirmed since then that no event has announced.
    -- NULL before the first: create_invoice() inserts every column that its caller does not name as NULL.
    revision integer,
    is_growth_due boolean,
    -- The confirmations that the deposit at deposit_height takes at least, whatever its network asks for: a block
    -- reward takes 100. NULL before the first deposit.
    deposit_depth_min integer,
    -- Whose payment it is that was checked out over a link: a keyed digest of the buyer's address, '' where that is
    -- unknown.
    link_source text,
    -- How long each of its quotes holds, in seconds, by the settings of its creation. NULL: 900.
    quote_s integer,
    CHECK ((status = 'select') <= (pay_currency IS NULL)),
    CHECK ((pay_currency IS NULL) = (network IS NULL)),
    CHECK ((pay_currency IS NULL) = (payer_units IS NULL))
);
CREATE INDEX invoices_by_merchant ON invoices (merchant_id, id DESC);
-- The invoices whose balances are compared with their deposits: those that await a network's own coin. Creation of the
-- many that await tokens pays nothing for it.
CREATE INDEX invoices_in_coin ON invoices (network, expires_at)
    WHERE pay_currency IN ('ETH', 'BNB', 'POL', 'AVAX');
CREATE INDEX invoices_credit_due ON invoices (id) WHERE is_credit_due;
-- Lists by what is rare, or what nothing has, past all that a merchant ever sold, in their own order. A sale that is
-- open is in no index by status: its creation pays nothing for it, and what is open is few.
CREATE INDEX invoices_by_status ON invoices (merchant_id, status, id DESC)
    WHERE status IN ('paid', 'paid_over', 'wrong_amount', 'expired');
CREATE INDEX invoices_by_currency ON invoices (merchant_id, price_currency, id DESC);
CREATE INDEX invoices_by_network ON invoices (merchant_id, network, id DESC);
-- After the others: while nothing is known of a small table all indexes that begin with the merchant cost the same, a
-- planner takes the youngest of them, and a session keeps its plan. By another one, whoever creates an invoice would
-- walk through all of its merchant's.
CREATE INDEX invoices_of_order ON invoices (merchant_id, order_id, created_at DESC)
    WHERE order_id IS NOT NULL;
-- A link's payments, newest first, and those of them that wait for their buyers. No other invoice pays for either. By
-- the moment, which orders no other index: by the id, a planner would walk back through everybody's.
CREATE INDEX invoices_of_link ON invoices (link_id, created_at DESC, id DESC)
    WHERE link_id IS NOT NULL;
CREATE INDEX invoices_unpaid_of_link ON invoices (link_id)
    WHERE link_id IS NOT NULL AND status IN ('select', 'check');
-- What is due is read network by network, so that invoices that wait for a scan which does not move are in nobody's
-- way.
CREATE INDEX invoices_to_end ON invoices (COALESCE(network, ''), expires_at)
    WHERE status IN ('select', 'check');
-- A list of what is open went past all that a merchant ever sold. What is open is few, so its index is small; a sale
-- pays for one entry, and for one less when it ends.
CREATE INDEX invoices_open_by_status ON invoices (merchant_id, status, id DESC)
    WHERE status IN ('select', 'check');
-- A status that is rare for one merchant may be common for the others: taken for common there, it was looked for from
-- the newest sale of the gateway on, past all of them.
CREATE STATISTICS invoices_of_statuses (mcv) ON merchant_id, status FROM invoices;

-- What a payer owed, and when: a deposit is judged by the quote in force at its time.
CREATE TABLE quotes (
    invoice_id uuid NOT NULL REFERENCES invoices,
    generation integer NOT NULL,
    payer_units units NOT NULL,
    fee_fixed_units units NOT NULL,
    valid_from timestamptz NOT NULL,
    rate_expires_at timestamptz NOT NULL,
    -- Of the quote that revives an expired invoice: the former expiry. A payment that was seen later is judged by no
    -- earlier quote. NULL: a quote of another kind.
    earlier_until timestamptz,
    PRIMARY KEY (invoice_id, generation)
);

-- What happens to an invoice and leaves no row of its own with its moment. The rest of its timeline is told from the
-- rows that there are, so that creating an invoice writes nothing for it.
CREATE TABLE invoice_events (
    invoice_id uuid NOT NULL REFERENCES invoices,
    id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT app_now(),
    event text NOT NULL CHECK (event IN ('selected', 'reorged', 'expired', 'resolved')),
    -- As its merchant is shown it.
    detail jsonb NOT NULL,
    PRIMARY KEY (invoice_id, id)
);
CREATE TRIGGER invoice_events_append_only BEFORE UPDATE OR DELETE ON invoice_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER invoice_events_no_truncate BEFORE TRUNCATE ON invoice_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The hot transaction: one statement creates an invoice, its call, quote and address.
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

-- Calls that waited side by side are answered by one statement and one commit.
-- p_calls: a call each, as create_invoice() takes it, its invoice inside it. Creates the invoices that are plainly new
-- and returns their calls' answers. The rest is left to create_invoice(): whose key or order is somebody's at this
-- moment, whose call, key or order has an answer already, whose terms are of another version. Nothing of those is
-- written. No two of p_calls may share a key or an order.
CREATE FUNCTION create_invoices(p_calls json) RETURNS TABLE (call_id uuid, response text) LANGUAGE plpgsql AS $$
DECLARE
    ours uuid[];
    made timestamptz := date_trunc('milliseconds', app_now());
    made_text text := iso_time(made);
BEGIN
    -- Locked in a statement of their own: the next one sees what those committed who held a lock before.
    SELECT array_agg(c.call_id) INTO ours
        FROM json_to_recordset(p_calls) AS c (call_id uuid, merchant_id uuid, idem_key text, order_id text)
        WHERE (c.idem_key IS NULL OR pg_try_advisory_xact_lock(hashtextextended(c.merchant_id || c.idem_key, 1)))
            AND (c.order_id IS NULL OR pg_try_advisory_xact_lock(hashtextextended(c.merchant_id || c.order_id, 2)));
    RETURN QUERY WITH new AS MATERIALIZED (
        SELECT c.*, date_trunc('second', made) + make_interval(secs => c.lifetime_s) AS expires_at,
            date_trunc('second', made) + make_interval(secs => LEAST(c.lifetime_s, c.quote_s)) AS rate_expires_at
        FROM json_to_recordset(p_calls) AS c (
            call_id uuid, merchant_id uuid, idem_key text, order_id text, fingerprint bytea, terms_version integer,
            lifetime_s integer, quote_s integer, family text, response text, invoice jsonb
        )
        WHERE c.call_id = ANY (ours)
            AND c.terms_version = (SELECT m.terms_version FROM merchants m WHERE m.id = c.merchant_id)
            -- Counted, and not looked for: a plan made while the tables were small would look in the wrong order.
            AND (c.idem_key IS NULL OR 0 = (SELECT count(*) FROM calls k
                WHERE k.merchant_id = c.merchant_id AND k.idem_key = c.idem_key AND k.state = 'done'))
            AND (c.order_id IS NULL OR 0 = (SELECT count(*) FROM invoices i
                WHERE i.merchant_id = c.merchant_id AND i.order_id = c.order_id
                    AND (i.status IN ('select', 'check') OR (i.status = 'wrong_amount' AND NOT i.is_final))))
    ), called AS (
        -- In one order everywhere, so that two deliveries of the same calls wait for each other and not in a circle.
        INSERT INTO calls (call_id, merchant_id, idem_key, fingerprint, state, response)
        SELECT n.call_id, n.merchant_id, n.idem_key, n.fingerprint, 'done', n.response
            || ',"expired_at":' || extract(epoch FROM n.expires_at)::bigint
            || ',"rate_expires_at":' || extract(epoch FROM n.rate_expires_at)::bigint
            || ',"created_at":"' || made_text || '","updated_at":"' || made_text || '"}'
        FROM new n ORDER BY n.call_id
        ON CONFLICT ON CONSTRAINT calls_pkey DO NOTHING RETURNING calls.call_id, calls.response
    ), created AS (
        INSERT INTO invoices SELECT i.* FROM new n JOIN called USING (call_id),
            jsonb_populate_record(NULL::invoices, n.invoice || jsonb_build_object(
                'created_at', made, 'updated_at', made, 'expires_at', n.expires_at, 'rate_expires_at', n.rate_expires_at
            )) AS i
        RETURNING id, generation, pay_currency, address_ordinal, payer_units, fee_fixed_units, rate_expires_at
    ), owned AS (
        INSERT INTO address_owners (family, ordinal, owner_kind, owner_id, assigned_at)
        SELECT n.family, i.address_ordinal, 'invoice', i.id, made
        FROM created i JOIN new n ON i.id = (n.invoice ->> 'id')::uuid WHERE i.pay_currency IS NOT NULL
    ), quoted AS (
        INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)
        SELECT i.id, i.generation, i.payer_units, i.fee_fixed_units, made, i.rate_expires_at
        FROM created i WHERE i.pay_currency IS NOT NULL
    ) SELECT c.call_id, c.response FROM called c;
END $$;
