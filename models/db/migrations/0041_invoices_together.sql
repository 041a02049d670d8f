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
